package outbox_test

import (
	"testing"

	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// PostgreSQL shows a pending event whose commit waited for the standby until the service
// gave up. Were it told then, it might tell of what is lost with the primary.
func TestTheSweepTellsNothingThatTheStandbyLacks(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.PostgresPair(t)
	url := primary.URL("postgres")
	if err := postgres.Migrate(t.Context(), url, outbox.Schema); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	pool, err := postgres.Open(t.Context(), url, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.pool = pool
	r := w.newRelay()
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	e := sale(t, "one")
	if err := w.transact(func(tx *postgres.Tx) error { r.Add(tx, e); return nil }); err == nil {
		t.Fatal("the event is stored, and the standby knows nothing of it")
	}
	testkit.Eventually(t, soon, "the primary shows the event", func() bool { return w.pending() == 1 })
	w.run(r.Run)
	testkit.Eventually(t, soon, "the sweep waits for the standby", func() bool {
		return w.ask(`select count(*) from pg_stat_activity where wait_event = 'SyncRep' and query like '%skip locked%'`) > 0
	})
	if n := w.length(); n != 0 {
		t.Errorf("%d events are on the stream, and the standby knows nothing of them", n)
	}
	if err := standby.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitStream(ids(0, e)...)
}
