package outbox_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestAfterTheServerLostEverythingEachEventIsPublishedAgainAndHandledOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(func(ctx context.Context) error { return w.bus.Run(ctx, w.pool, bus.On("test-note", note)) })
	r := w.start()
	published := sales(t, 40)
	w.add(r, published...)
	w.awaitStream(ids(0, published...)...)
	w.awaitHandled(len(published))
	days := []event.Sealed{saleAt(t, "an hour ago", time.Now().Add(-time.Hour)), saleAt(t, "six days ago", time.Now().AddDate(0, 0, -6))}
	w.logOnly(append(days, saleAt(t, "beyond retention", time.Now().Add(-bus.Retention-time.Hour)))...)
	w.awaitChecked()

	w.nats.Stop()
	w.nats.Wipe()
	testkit.Eventually(t, soon, "the connection is lost", func() bool { return !w.bus.Connected() })
	waiting := sale(t, "while it was away")
	w.add(w.newRelay(), waiting)
	w.nats.Start()
	everything := slices.Concat(published, days, []event.Sealed{waiting})
	testkit.Eventually(t, soon, "all is on the stream again", func() bool { return w.length() >= len(everything) && w.pending() == 0 })
	again := map[string]int{}
	for _, m := range w.messages() {
		again[m.Header.Get("Nats-Msg-Id")]++
	}
	for _, id := range ids(1, slices.Concat(published, days)...) {
		if again[id] != 1 {
			t.Errorf("%s is there %d times", id, again[id])
		}
		delete(again, id)
	}
	for _, id := range slices.Concat(ids(0, waiting), ids(1, waiting)) { // one of the two, or both
		delete(again, id)
	}
	if len(again) != 0 {
		t.Errorf("there is more: %v", again)
	}
	w.awaitHandled(len(everything))
	w.awaitChecked()
	w.awaitChecked()
	if w.repairs() != 1 || w.pending() != 0 {
		t.Errorf("%d repairs, %d pending", w.repairs(), w.pending())
	}
	w.awaitHandled(len(everything))
}

func TestAfterARestartOnlyTheLastMinuteIsPublishedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fresh, old := saleAt(t, "fresh", tomorrow()), saleAt(t, "old", time.Now().Add(-5*time.Minute))
	w.logOnly(old)
	w.add(w.start(), fresh)
	w.awaitStream(ids(0, fresh)...)
	w.awaitChecked()
	w.restart()
	w.awaitStream(slices.Concat(ids(0, fresh), ids(1, fresh))...)
	w.awaitChecked()
	w.awaitStream(slices.Concat(ids(0, fresh), ids(1, fresh))...)
	w.restart()
	w.awaitStream(slices.Concat(ids(0, fresh), ids(1, fresh), ids(2, fresh))...)
}

func TestAfterARestartWhatHadWaitedAndWasPublishedInTheLastMinuteIsPublishedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, waited := saleAt(t, "old", time.Now().Add(-2*time.Hour)), saleAt(t, "waited", time.Now().Add(-time.Hour))
	w.logOnly(old)
	w.add(w.newRelay(), waited)
	w.start()
	w.awaitStream(ids(0, waited)...)
	w.awaitChecked()
	w.restart()
	w.awaitStream(slices.Concat(ids(0, waited), ids(1, waited))...)
}

func TestWhatWasDrainedAMinuteAgoIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`insert into outbox_drained values (now() - interval '2 minutes', now() - interval '1 hour'), (now(), now() - interval '2 hours')`)
	w.start()
	testkit.Eventually(t, soon, "the older mark is gone", func() bool { return w.ask(`select count(*) from outbox_drained`) == 1 })
	if n := w.ask(`select extract(epoch from now() - oldest)::int from outbox_drained`); n < 7000 {
		t.Error("the younger mark is gone")
	}
}

func TestAStreamThatIsPurgedIsFilledAgainOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := sales(t, 5)
	w.add(w.start(), events...)
	w.awaitStream(ids(0, events...)...)
	w.awaitChecked()
	stream, err := w.bus.JetStream().Stream(t.Context(), bus.Sales.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitStream(ids(1, events...)...)
	w.awaitChecked()
	w.awaitChecked()
	w.awaitStream(ids(1, events...)...)
}

func TestAStreamThatIsDeletedIsMadeAndFilledAgainOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := sales(t, 5)
	w.add(w.start(), events...)
	w.awaitStream(ids(0, events...)...)
	w.awaitChecked()
	if err := w.bus.JetStream().DeleteStream(t.Context(), bus.Sales.Name); err != nil {
		t.Fatal(err)
	}
	w.awaitStream(ids(1, events...)...)
	w.awaitChecked()
	w.awaitChecked()
	w.awaitStream(ids(1, events...)...)
}

func TestAStreamThatIsShorterThanItWasIsMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, old := sale(t, "one"), saleAt(t, "old", time.Now().Add(-5*time.Minute))
	w.logOnly(old)
	w.add(w.start(), e)
	w.awaitStream(ids(0, e)...)
	w.awaitChecked()
	w.exec(`update outbox_stream set last_seq = 1000`)
	w.awaitStream(slices.Concat(ids(0, e), ids(1, e))...)
}

func TestServersThatWereSeenBeforeAreRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.awaitChecked()
	w.exec(`update outbox_stream set servers = '{another member}'`)
	w.awaitChecked()
	var servers []string
	if err := w.pool.QueryRow(t.Context(), `select servers from outbox_stream`).Scan(&servers); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(servers, []string{"another member", w.bus.ServerID()}) {
		t.Errorf("remembered are %q", servers)
	}
}

func TestAnOperatorPublishesAgainWhatWasMadeSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before, since := saleAt(t, "before", time.Now().Add(-3*time.Hour)), saleAt(t, "since", time.Now().Add(-time.Hour))
	w.logOnly(before, since)
	w.awaitChecked()
	n, err := outbox.Republish(t.Context(), w.pool, time.Now().Add(-2*time.Hour))
	if err != nil || n != 1 {
		t.Fatalf("%d events, %v", n, err)
	}
	w.awaitStream(ids(1, since)...)
}

// The stream may have acknowledged a pending event and lost it since: under the same id
// it would take the event for a duplicate.
func TestARepairTakesPendingEventsAlong(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	w.exec(`insert into outbox_stream (stream, created, last_seq, repairs) values ($1, now(), 5, 6)`, bus.Sales.Name)
	r := w.newRelay()
	settled, pending := sale(t, "settled"), sale(t, "pending")
	w.logOnly(settled)
	w.add(r, pending)
	if n, err := outbox.Republish(t.Context(), w.pool, time.Now().Add(-time.Minute)); err != nil || n != 2 {
		t.Fatalf("%d events, %v", n, err)
	}
	if w.pending() != 2 || w.ask(`select count(*) from outbox_pending where repair = 7`) != 2 {
		t.Error("not both are of the seventh repair")
	}
}

// note notes the id of every event that it is given.
func note(ctx context.Context, tx *postgres.Tx, events []event.Event[event.SaleRecorded]) error {
	for _, e := range events {
		if _, err := tx.Exec(ctx, `insert into effects values ($1)`, [16]byte(e.ID)); err != nil {
			return err
		}
	}
	return nil
}

// awaitHandled waits until that many events have been handled, and fails if one of
// them was handled twice.
func (w *world) awaitHandled(events int) {
	w.t.Helper()
	testkit.Eventually(w.t, soon, "the events are handled", func() bool { return w.ask(`select count(*) from effects`) >= events })
	if all, distinct := w.ask(`select count(*) from effects`), w.ask(`select count(distinct event_id) from effects`); all != events || distinct != events {
		w.t.Errorf("%d events were handled %d times; want %d", distinct, all, events)
	}
}
