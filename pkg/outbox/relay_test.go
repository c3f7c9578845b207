package outbox_test

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestTheSweepPublishesWhatMemoryMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := sales(t, 30)
	w.add(w.newRelay(), events[:10]...) // before a relay runs, as after a crash
	w.start()
	w.add(w.newRelay(), events[10:]...) // while one does
	w.awaitStream(ids(0, events...)...)
}

func TestWhileTheServerIsDownEventsWaitAndThenDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	before := sales(t, 3)
	w.add(r, before...)
	w.awaitStream(ids(0, before...)...)
	w.awaitChecked()
	w.nats.Kill()
	testkit.Eventually(t, soon, "the connection is lost", func() bool { return !w.bus.Connected() })
	waiting := saleAt(t, "waiting", time.Now().Add(-2*time.Hour)) // so that the restart itself does not bring it back
	w.add(r, waiting)
	if w.pending() != 1 {
		t.Fatalf("%d events are pending", w.pending())
	}
	w.nats.Start()
	testkit.Eventually(t, soon, "the outbox is drained", func() bool { return w.pending() == 0 && w.length() > len(before) })
	found := false
	for _, m := range w.messages() {
		found = found || string(m.Data) == string(waiting.Body)
	}
	if !found {
		t.Error("what waited is not on the stream")
	}
}

func TestAServiceStartsWithoutAServerAndMakesItsStreamLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nats.Stop()
	w.nats.Wipe()
	w.bus = w.connect()
	e := sale(t, "one")
	w.add(w.start(), e)
	w.nats.Start()
	w.awaitStream(ids(0, e)...)
}

func TestReplicasPublishEveryEventBetweenThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := sales(t, 2500) // more than one round of a sweep
	w.add(w.newRelay(), events...)
	one := w.start()
	other := outbox.NewHastyRelay(w.pool, w.connect(), bus.Sales, zap.NewNop())
	w.run(other.Run)
	late, later := sale(t, "late"), sale(t, "later")
	w.add(one, late)
	w.add(other, later)
	w.awaitStream(ids(0, append(events, late, later)...)...)
	if n := w.repairs(); n != 0 { // neither took the other's progress for a loss
		t.Errorf("there were %d repairs", n)
	}
}

func TestAReplicaDoesNotWaitForEventsThatAnotherIsPublishing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := sales(t, 1500)
	oldest, rest := events[:1000], events[1000:]
	for i := range oldest {
		oldest[i].CreatedAt = oldest[i].CreatedAt.Add(-time.Minute)
	}
	w.add(w.newRelay(), events...)
	err := w.transact(func(tx *postgres.Tx) error {
		const hold = `select from outbox_pending order by created_at, event_id limit 1000 for update`
		if _, err := tx.Exec(t.Context(), hold); err != nil {
			return err
		}
		w.start()
		testkit.Eventually(t, soon, "the others are published", func() bool { return w.pending() == len(oldest) && w.length() == len(rest) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.awaitStream(ids(0, events...)...)
}

func TestSettlingAPublicationSparesTheRepairThatCameSince(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	e, other := sale(t, "one"), sale(t, "other")
	w.add(w.newRelay(), e, other)
	w.exec(`update outbox_pending set repair = 2 where event_id = $1`, [16]byte(e.ID))
	settle := func(repair int, events ...event.Sealed) {
		t.Helper()
		var stored []bus.Outgoing
		for _, e := range events {
			stored = append(stored, bus.Outgoing{Sealed: e, MessageID: outbox.MessageID(e.ID, repair)})
		}
		if err := w.transact(func(tx *postgres.Tx) error { return outbox.Forget(t.Context(), tx, stored) }); err != nil {
			t.Fatal(err)
		}
	}
	settle(0, e, other)
	if w.pending() != 1 {
		t.Fatalf("%d events are pending", w.pending())
	}
	settle(1, e)
	if w.pending() != 1 {
		t.Fatal("an earlier repair settled it")
	}
	settle(2, e)
	if w.pending() != 0 {
		t.Error("its own repair did not settle it")
	}
}

func TestWhatAFullStreamRefusesWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	core, logs := observer.New(zap.WarnLevel)
	r := outbox.NewHastyRelay(w.pool, w.bus, bus.Sales, zap.New(core))
	w.run(r.Run)
	w.awaitChecked()
	w.limit(4)
	events := sales(t, 20)
	w.add(r, events[:10]...)
	w.add(w.newRelay(), events[10:]...)
	testkit.Eventually(t, soon, "sweeps are refused", func() bool { return logs.FilterMessage("cannot publish yet").Len() >= 2 })
	if w.length() != 4 || w.pending() != len(events)-4 {
		t.Errorf("the stream has %d messages, and %d events are pending", w.length(), w.pending())
	}
	w.limit(-1)
	w.awaitStream(ids(0, events...)...)
}

// limit sets how many messages the stream takes; -1 is any number.
func (w *world) limit(messages int64) {
	w.t.Helper()
	js := w.bus.JetStream()
	stream, err := js.Stream(w.t.Context(), bus.Sales.Name)
	if err != nil {
		w.t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxMsgs = messages
	if _, err := js.UpdateStream(w.t.Context(), config); err != nil {
		w.t.Fatal(err)
	}
}
