package outbox_test

import (
	"maps"
	"testing"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/testkit"
)

// longAgo is the beginning of a window in which nothing is under way any more.
func longAgo() time.Time { return time.Now().UTC().Add(-30 * time.Minute).Truncate(time.Minute) }

func refunded(t *testing.T, cause string, at time.Time) event.Sealed {
	t.Helper()
	e, err := event.Seal(tenant, cause, at, event.SaleRefunded{Amount: 250, CommissionAmount: 7, CommissionReversed: 3}, "")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func soldFor(t *testing.T, cause string, at time.Time) event.Sealed {
	t.Helper()
	e, err := event.Seal(tenant, cause, at, event.SaleRecorded{ExternalRef: cause, Amount: 10050, CommissionAmount: 503}, "")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// told are the windows on the stream, the last count of each.
func (w *world) told() map[time.Time]event.Window {
	w.t.Helper()
	windows := map[time.Time]event.Window{}
	for _, m := range w.messages() {
		if m.Subject != bus.Sales.WindowName() {
			continue
		}
		window, err := event.OpenWindow(m.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		windows[window.Start] = window
	}
	return windows
}

func TestEachWindowIsToldWithItsCountsAndSums(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reconciling()
	start := longAgo()
	w.add(r,
		soldFor(t, "before", start.Add(-time.Microsecond)), soldFor(t, "a", start), soldFor(t, "b", start.Add(time.Minute-time.Microsecond)),
		refunded(t, "back", start.Add(time.Second)), soldFor(t, "after", start.Add(time.Minute)),
		soldFor(t, "much later", start.Add(25*time.Minute)), soldFor(t, "now", time.Now()))
	one := map[string]event.Tally{"sale.recorded": {Count: 1, Centavos: 10050, Commissions: 503}}
	want := map[time.Time]map[string]event.Tally{
		start.Add(-time.Minute): one, start.Add(time.Minute): one, start.Add(25 * time.Minute): one,
		start: {"sale.recorded": {Count: 2, Centavos: 20100, Commissions: 1006}, "sale.refunded": {Count: 1, Centavos: 250, Commissions: 7}},
	}
	testkit.Eventually(t, soon, "the windows are told", func() bool { return len(w.told()) >= len(want) })
	for at, window := range w.told() {
		if !maps.Equal(window.Events, want[at]) || !window.End.Equal(at.Add(time.Minute)) {
			t.Errorf("of %s until %s it tells %v, want %v", at, window.End, window.Events, want[at])
		}
	}
	told := w.ask(`select count(*) from outbox where name = 'window.sales'`)
	w.awaitCompared()
	if now := w.ask(`select count(*) from outbox where name = 'window.sales'`); now != told || told != len(want) {
		t.Errorf("%d windows were told %d times, then %d", len(want), told, now)
	}
	if w.missed() != 0 {
		t.Errorf("%d events were taken for missing", w.missed())
	}
}

// tellWindows has a relay tell of windows that are to be counted.
func (w *world) tellWindows(r *outbox.Relay) {
	w.t.Helper()
	if err := r.TellWindows(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// windowsMade are all counts of windows that were ever told.
func (w *world) windowsMade() int {
	w.t.Helper()
	return w.ask(`select count(*) from outbox where name = 'window.sales'`)
}

func TestAWindowIsToldOnceMoreForWhatCommittedHoweverLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reconciling()
	start := longAgo()
	w.add(r, soldFor(t, "in time", start), soldFor(t, "much younger", time.Now().Add(-5*time.Minute)))
	testkit.Eventually(t, soon, "the windows are told", func() bool { return len(w.told()) == 2 })
	w.add(r, soldFor(t, "late", start.Add(time.Second)))
	testkit.Eventually(t, soon, "it is told anew", func() bool { return w.told()[start].Events["sale.recorded"].Count == 2 })
	w.add(w.newRelay(), soldFor(t, "late, and from the sweep", start.Add(2*time.Second)))
	testkit.Eventually(t, soon, "it is told anew", func() bool { return w.told()[start].Events["sale.recorded"].Count == 3 })
}

func TestAWindowIsToldOnlyOnceAllOfItIsOnTheStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := longAgo()
	sent, waiting := soldFor(t, "sent", start), soldFor(t, "waiting", start.Add(time.Second))
	older, younger := soldFor(t, "older", start.Add(-time.Hour)), soldFor(t, "younger", start.Add(time.Minute))
	r := w.newRelay() // which does not run
	w.add(r, older, sent, waiting, younger)
	settle := func(e event.Sealed) {
		t.Helper()
		if err := outbox.Forget(t.Context(), w.pool, []bus.Outgoing{{Sealed: e, MessageID: outbox.MessageID(e.ID, 0)}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, e := range []event.Sealed{sent, younger, older, waiting} {
		settle(e)
		w.tellWindows(r)
		if want := []int{0, 0, 1, 3}[i]; w.windowsMade() != want {
			t.Errorf("after %d are published %d windows are told, want %d", i+1, w.windowsMade(), want)
		}
	}
}

func TestAnOperatorHasEveryWindowCountedAndToldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start() // which tells of no window by itself within this test
	start := longAgo()
	w.add(r, soldFor(t, "in time", start), soldFor(t, "older", start.AddDate(0, 0, -3)))
	testkit.Eventually(t, soon, "they are published", func() bool { return w.pending() == 0 && len(w.events()) == 2 })
	w.awaitChecked()
	w.tellWindows(r)
	testkit.Eventually(t, soon, "both windows are told", func() bool { return len(w.told()) == 2 && w.pending() == 0 })
	w.logOnly(soldFor(t, "unnoticed", start.Add(time.Second)))
	w.tellWindows(r)
	if w.windowsMade() != 2 {
		t.Fatalf("%d windows were told without a reason", w.windowsMade()-2)
	}
	if _, err := outbox.ReconcileNow(t.Context(), w.pool, w.bus, bus.Sales); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, "what was missing is published", func() bool { return w.pending() == 0 })
	w.tellWindows(r)
	testkit.Eventually(t, soon, "the windows are told anew", func() bool {
		return w.told()[start].Events["sale.recorded"].Count == 2 && w.windowsMade() == 4
	})
}

func TestAWindowThatNoConsumerKeepsIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`insert into outbox_windows select now() - make_interval(hours => h), now(), '{}' from unnest('{1,167,169,1000}'::int[]) as h`)
	w.tellWindows(w.newRelay())
	if n := w.ask(`select count(*) from outbox_windows`); n != 2 {
		t.Errorf("%d are left", n)
	}
}
