package outbox_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/testkit"
)

// reconciling runs a relay that compares all the time, once it has seen the stream.
func (w *world) reconciling() *outbox.Relay {
	w.t.Helper()
	r := outbox.NewReconcilingRelay(w.pool, w.bus, bus.Sales, zap.NewNop())
	w.run(r.Run)
	w.awaitChecked()
	return r
}

// awaitCompared waits until the stream has been compared, from beginning to end, after
// this moment.
func (w *world) awaitCompared() {
	w.t.Helper()
	var since time.Time
	if err := w.pool.QueryRow(w.t.Context(), `select now()`).Scan(&since); err != nil {
		w.t.Fatal(err)
	}
	// The first to be noted may have begun before; the next one has not.
	for range 2 {
		testkit.Eventually(w.t, soon, "the stream is compared", func() bool {
			return w.ask(`select count(*) from outbox_stream where compared_at > $1`, since) == 1
		})
		if err := w.pool.QueryRow(w.t.Context(), `select compared_at from outbox_stream`).Scan(&since); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) missed() int { w.t.Helper(); return w.ask(`select missed from outbox_stream`) }

// remove deletes the message of an event from the stream.
func (w *world) remove(e event.Sealed) {
	w.t.Helper()
	stream, err := w.bus.JetStream().Stream(w.t.Context(), bus.Sales.Name)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range w.messages() {
		if m.Header.Get("Nats-Msg-Id") == e.ID.String() {
			if err := stream.DeleteMsg(w.t.Context(), m.Sequence); err != nil {
				w.t.Fatal(err)
			}
			return
		}
	}
	w.t.Fatalf("%s is not on the stream", e.ID)
}

func TestAMessageThatIsDeletedFromTheMiddleIsPublishedAgainHoweverOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reconciling()
	first, old, recent, last := sale(t, "first"), saleAt(t, "old", time.Now().AddDate(0, 0, -5)), sale(t, "recent"), sale(t, "last")
	for _, e := range []event.Sealed{first, old, recent, last} {
		w.add(r, e)
		testkit.Eventually(t, soon, "it is published", func() bool { return w.pending() == 0 })
	}
	w.awaitCompared()
	w.remove(old)
	w.awaitStream(slices.Concat(ids(0, first, recent, last), ids(1, old))...)
	w.remove(recent)
	w.awaitStream(slices.Concat(ids(0, first, last), ids(1, old), ids(2, recent))...)
	w.awaitCompared()
	w.awaitStream(slices.Concat(ids(0, first, last), ids(1, old), ids(2, recent))...)
	if w.missed() != 2 {
		t.Errorf("%d events were found missing, want 2", w.missed())
	}
}

func TestAnEventThatNeverReachedTheStreamThoughItCountsAsPublishedIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reconciling()
	lost, there := sale(t, "lost"), sale(t, "there")
	w.logOnly(lost)
	w.add(r, there)
	w.awaitStream(slices.Concat(ids(0, there), ids(1, lost))...)
	w.awaitCompared()
	w.awaitStream(slices.Concat(ids(0, there), ids(1, lost))...)
}

// A server that lost its tail and has stored as many messages since looks as if it had
// lost nothing.
func TestAfterARestartTheLastHourIsComparedEventByEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reconciling()
	there, older := saleAt(t, "there", time.Now().Add(-30*time.Minute)), saleAt(t, "older", time.Now().Add(-3*time.Hour))
	w.add(r, there)
	w.awaitStream(ids(0, there)...)
	w.exec(`delete from outbox_drained`)
	lost := saleAt(t, "lost", time.Now().Add(-40*time.Minute))
	w.logOnly(lost, older)
	w.awaitCompared()
	w.awaitStream(ids(0, there)...)
	w.restart() // which is the first repair
	w.awaitStream(slices.Concat(ids(0, there), ids(2, lost))...)
	w.awaitCompared()
	w.awaitStream(slices.Concat(ids(0, there), ids(2, lost))...)
}

func TestAComparisonOfTheFutureHoldsUpNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reconciling()
	w.awaitCompared()
	// As when the database's clock is set back.
	w.exec(`update outbox_stream set compared_at = now() + interval '1 hour', compared_until = now() + interval '1 hour'`)
	testkit.Eventually(t, soon, "the stream is compared now", func() bool {
		return w.ask(`select count(*) from outbox_stream where compared_at <= now() and compared_until <= now()`) == 1
	})
}

func TestWhatIsPublishedMeanwhileIsNeverTakenForMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reconciling()
	w.add(w.newRelay(), saleAt(t, "from the sweep", time.Now().Add(-time.Minute)))
	end := time.Now().Add(4 * time.Second)
	for i := 0; time.Now().Before(end); i++ {
		events := sales(t, 20)
		for j := range events {
			events[j].ID = event.IDOf("sale.recorded", time.Now().String()+events[j].ID.String())
		}
		w.add(r, events...)
	}
	w.awaitCompared()
	w.awaitCompared()
	if w.missed() != 0 || w.repairs() != 0 {
		t.Errorf("%d events were taken for missing, %d repairs", w.missed(), w.repairs())
	}
}

func TestAnOperatorHasEverythingComparedAndLearnsWhatWasMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start() // which never compares within this test
	events := make([]event.Sealed, 12000)
	for i := range events { // more than are read at a time, in an order of their own
		events[i] = saleAt(t, time.Duration(i).String(), time.Now().Add(-time.Duration(i*7919%12000)*time.Second))
	}
	w.add(r, events...)
	testkit.Eventually(t, soon, "all are published", func() bool { return w.pending() == 0 && w.length() == len(events) })
	w.awaitChecked()
	lost := saleAt(t, "lost", time.Now().Add(-time.Hour))
	w.logOnly(lost, saleAt(t, "beyond retention", time.Now().Add(-bus.Retention-time.Hour)))
	w.remove(events[17])

	began := time.Now()
	found, err := outbox.ReconcileNow(t.Context(), w.pool, w.bus, bus.Sales)
	if err != nil {
		t.Fatal(err)
	}
	var missing []event.ID
	for _, e := range found.Missing {
		missing = append(missing, e.ID)
	}
	want := []event.ID{lost.ID, events[17].ID}
	if events[17].CreatedAt.Before(lost.CreatedAt) {
		slices.Reverse(want)
	}
	young := 0 // too young to be expected on the stream by then, at most
	for _, e := range events {
		if e.CreatedAt.After(began.Add(-15 * time.Second)) {
			young++
		}
	}
	if !slices.Equal(missing, want) || found.Events > len(events)+1 || found.Events < len(events)-young-1 {
		t.Errorf("of %d events %v were missing, want %v", found.Events, missing, want)
	}
	testkit.Eventually(t, soon, "they are published", func() bool { return w.pending() == 0 && w.length() == len(events)+1 })
	if found, err = outbox.ReconcileNow(t.Context(), w.pool, w.bus, bus.Sales); err != nil || len(found.Missing) != 0 {
		t.Errorf("the second time %d are missing, %v", len(found.Missing), err)
	}
	status, err := outbox.ReadStatus(t.Context(), w.pool)
	if err != nil {
		t.Fatal(err)
	}
	if status.Pending != 0 || status.Missed != 2 || status.Repairs != 1 || status.ComparedAt == nil || status.Stream != "SALES" || status.LastWindow != nil {
		t.Errorf("the status is %+v", status)
	}
}

func TestWhatWaitsToBePublishedIsNotMissingAndIsLookedForLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // in which no relay runs
	w.exec(`insert into outbox_stream (stream, created, last_seq) values ($1, now(), 0)`, bus.Sales.Name)
	waiting := saleAt(t, "waiting", time.Now().Add(-time.Minute))
	w.add(w.newRelay(), waiting)
	found, err := outbox.ReconcileNow(t.Context(), w.pool, w.bus, bus.Sales)
	if err != nil || found.Events != 1 || len(found.Missing) != 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	if n := w.ask(`select count(*) from outbox_stream where compared_until <= $1`, waiting.CreatedAt); n != 1 {
		t.Error("the next comparison begins after it")
	}
	if w.repairs() != 0 || w.ask(`select count(*) from outbox_pending where repair > 0`) != 0 {
		t.Error("it is queued once more")
	}
}

func TestWhatIsSuspectedDuringAComparisonIsComparedOnceMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start() // which never compares within this test
	first, middle, last := sale(t, "first"), sale(t, "middle"), sale(t, "last")
	w.add(r, first, middle, last)
	w.awaitStream(ids(0, first, middle, last)...)
	w.awaitChecked()
	const suspected = `select count(*) from outbox_stream where suspect_since is not null`
	compare := func(meanwhile func()) {
		t.Helper()
		w.exec(`update outbox_stream set suspect_since = now() - interval '8 days'`)
		holder, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Rollback(context.Background())
		if _, err := holder.Exec(t.Context(), `lock table outbox`); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := outbox.ReconcileNow(t.Context(), w.pool, w.bus, bus.Sales)
			ended <- err
		}()
		testkit.Eventually(t, soon, "the comparison has begun", func() bool {
			return w.ask(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == 1
		})
		meanwhile()
		if err := holder.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	compare(func() {})
	if w.ask(suspected) != 0 {
		t.Error("what was compared is suspected still")
	}
	compare(func() {
		w.remove(middle)
		testkit.Eventually(t, soon, "the hole is seen", func() bool { return w.ask(`select holes from outbox_stream`) == 1 })
	})
	if w.ask(suspected) != 1 {
		t.Error("what was suspected meanwhile is forgotten")
	}
}

// As after an outage, or after all was published again: the stream got everything long
// after it was made, and in another order.
func TestHoweverLateTheStreamGotItsEventsAComparisonKeepsFewInMemoryAndFindsAll(t *testing.T) {
	t.Parallel()
	const many, few, gone = 3000, 100, 250
	w := newWorld(t)
	r := w.newRelay()
	r.CompareLittle(few)
	w.run(r.Run) // it never compares by itself within this test
	made := time.Now().AddDate(0, 0, -3)
	events, lost := make([]event.Sealed, many), make([]event.Sealed, gone)
	for i := range events {
		events[i] = saleAt(t, time.Duration(i).String(), made.Add(time.Duration(i*1009%many)*time.Second))
	}
	for i := range lost { // one among twelve of the others
		lost[i] = saleAt(t, time.Duration(-i-1).String(), made.Add(time.Duration(i*12)*time.Second+time.Millisecond))
	}
	w.add(r, events...)
	testkit.Eventually(t, soon, "all are published", func() bool { return w.pending() == 0 && w.length() == many })
	w.logOnly(lost...)
	w.awaitChecked()
	w.exec(`update outbox_stream set suspect_since = now() - interval '8 days'`)

	const suspected = `select count(*) from outbox_stream where suspect_since is not null`
	var missing []event.ID
	for rounds := 1; w.ask(suspected) != 0; rounds++ {
		found, err := r.ReconcileALittle(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(found.Missing); n >= 2*few || rounds > 4 {
			t.Fatalf("round %d found %d at once, up to %s", rounds, n, found.Until)
		}
		for _, e := range found.Missing {
			missing = append(missing, e.ID)
		}
		testkit.Eventually(t, soon, "they are published", func() bool { return w.pending() == 0 })
	}
	want := make([]event.ID, gone)
	for i, e := range lost {
		want[i] = e.ID
	}
	if !slices.Equal(missing, want) {
		t.Errorf("%d were missing, want %d", len(missing), gone)
	}
	if w.length() != many+gone {
		t.Errorf("the stream has %d messages", w.length())
	}
}
