package bus_test

import (
	"testing"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// PostgreSQL shows a receipt whose commit waited for the standby until the service gave
// up. Were its event acknowledged then, the effects would be lost with the primary.
func TestAReceiptThatTheStandbyLacksAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.PostgresPair(t)
	url := primary.URL("postgres")
	if err := postgres.Migrate(t.Context(), url, bus.Schema, effects); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, pool: openPool(t, url)}
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	e, c := sale(t, "one"), bus.On(consumer, record)
	for range 2 {
		if err := c.Apply(t.Context(), w.pool, e); err == nil {
			t.Error("the event is handled, and the standby knows nothing of it")
		}
		testkit.Eventually(t, soon, "the primary shows the receipt", func() bool { return w.count("receipts") == 1 })
	}
	if err := standby.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), w.pool, e); err != nil {
		t.Error(err)
	}
	w.awaitHandled(e)
}
