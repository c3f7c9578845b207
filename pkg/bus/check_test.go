package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

// listener is a service that hears the sales and compares what it has of them.
type listener struct {
	*world
	consumer bus.Consumer
	log      *observer.ObservedLogs
	alarm    string // its consumer's
}

func (w *world) listen(name string, grace time.Duration) *listener {
	w.t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	l := &listener{world: w, log: logs, alarm: name, consumer: bus.On(name, record)}
	w.run(func(ctx context.Context) error { return w.bus.Run(ctx, w.pool, l.consumer) })
	w.run(func(ctx context.Context) error {
		return bus.CheckHastily(ctx, w.pool, []bus.Consumer{l.consumer}, zap.New(core), grace)
	})
	return l
}

// awaitAgreed waits until the consumer has been told of so many windows and has looked at
// each, and as many differ as they should.
func (l *listener) awaitAgreed(windows, differing int) {
	l.t.Helper()
	testkit.Eventually(l.t, soon, "the windows are compared", func() bool {
		return l.ask(`select count(*) from windows where checked_at is not null and (agrees or differs)`) == windows &&
			l.ask(`select count(*) from windows where differs`) == differing && l.alarmed() == differing
	})
}

// alarmed is what the metric of the consumer shows.
func (l *listener) alarmed() int {
	l.t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "partilha_reconcile_windows_differing" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "consumer" && label.GetValue() == l.alarm {
					return int(m.GetGauge().GetValue())
				}
			}
		}
	}
	return -1
}

// said counts the lines of the log with this message, about this window.
func (l *listener) said(message, window string) int {
	n := 0
	for _, line := range l.log.FilterMessage(message).All() {
		if line.ContextMap()["window"] == window {
			n++
		}
	}
	return n
}

// longAgo is the beginning of a window in which nothing is under way any more.
func longAgo() time.Time { return time.Now().UTC().Add(-30 * time.Minute).Truncate(time.Minute) }

func windowName(start time.Time) string { return "SALES/" + start.Format(time.RFC3339) }

// happen publishes sales of the minute that begins at start, one each second.
func (w *world) happen(start time.Time, n int) []event.Sealed {
	w.t.Helper()
	events := make([]event.Sealed, n)
	for i := range events {
		events[i] = saleAt(w.t, fmt.Sprintf("%s %d", start, i), start.Add(time.Duration(i)*time.Second))
	}
	w.publish("", events...)
	return events
}

// tell publishes the window of the minute that begins at start.
func (w *world) tell(start time.Time, sales int64, countedAt time.Time) {
	w.t.Helper()
	window := event.Window{Start: start, End: start.Add(time.Minute), CountedAt: countedAt,
		Events: map[string]event.Tally{event.NameSaleRecorded: {Count: sales}, event.NameSaleRefunded: {Count: 5}}}
	sealed, err := window.Seal(bus.Sales.WindowName())
	if err != nil {
		w.t.Fatal(err)
	}
	w.publish("", sealed)
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), statement, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ask(query string, args ...any) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), query, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestAConsumerThatHasEverythingAgrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen("test-agree", 0)
	start := longAgo()
	w.happen(start, 3)
	w.happen(start.Add(time.Minute), 1)
	w.tell(start, 3, time.Now())
	w.tell(start.Add(time.Minute), 1, time.Now())
	l.awaitAgreed(2, 0)
	if l.log.Len() != 0 {
		t.Errorf("the log says %v", l.log.All())
	}
}

func TestOfTwoCountsOfOneWindowTheLaterOneHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen("test-recount", 0)
	start, now := longAgo(), time.Now()
	w.happen(start, 3)
	w.tell(start, 2, now)
	l.awaitAgreed(1, 1)
	w.tell(start, 3, now.Add(time.Second))
	l.awaitAgreed(1, 0)
	w.tell(start, 1, now.Add(-time.Second))
	w.tell(start.Add(time.Minute), 0, now)
	l.awaitAgreed(2, 0)
}

func TestAWindowThatCannotBeReadHoldsUpNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen("test-unread", 0)
	for _, body := range []string{"", "no window", "{}", `{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:00:00Z","counted_at":"2026-01-01T00:00:00Z"}`} {
		if _, err := w.bus.JetStream().Publish(t.Context(), bus.Sales.WindowName(), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	start := longAgo()
	w.happen(start, 1)
	w.tell(start, 1, time.Now())
	l.awaitAgreed(1, 0)
	if n := w.count("parked_events"); n != 0 {
		t.Errorf("%d events are parked", n)
	}
}

func TestAConsumerWhoseReceiptIsGoneNamesTheWindowUntilItIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen("test-lack", 0)
	start := longAgo()
	b := w.happen(start, 2)[1]
	w.happen(start.Add(time.Minute), 1)
	w.tell(start, 2, time.Now())
	w.tell(start.Add(time.Minute), 1, time.Now())
	l.awaitAgreed(2, 0)

	w.exec(`delete from receipts where event_id = $1`, [16]byte(b.ID))
	l.awaitAgreed(2, 1)
	if l.said("window differs", windowName(start)) != 1 {
		t.Errorf("the log does not name %s once: %v", windowName(start), l.log.All())
	}
	found, err := bus.Differences(t.Context(), w.pool)
	if err != nil || len(found) != 1 || found[0].Window() != windowName(start) || found[0].Text != "2 events were told, 1 are here" {
		t.Errorf("it differs in %+v, %v", found, err)
	}
	w.exec(`insert into receipts (created_at, event_id, consumer) values ($1, $2, 'test-lack')`, b.CreatedAt, [16]byte(b.ID))
	l.awaitAgreed(2, 0)
	if l.said("window agrees again", windowName(start)) != 1 {
		t.Errorf("the log does not say that %s agrees again", windowName(start))
	}
}

func TestAnEventThatIsParkedOrDroppedIsAKnownDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen("test-parked", 0)
	start := longAgo()
	b := w.happen(start, 2)[1]
	w.tell(start, 2, time.Now())
	l.awaitAgreed(1, 0)
	w.exec(`delete from receipts where event_id = $1`, [16]byte(b.ID))
	l.awaitAgreed(1, 1)
	w.exec(`insert into parked_events (consumer, event_id, name, tenant_id, body, reason, created_at) values ('test-parked', $1, $2, $3, $4, 'no', $5)`,
		[16]byte(b.ID), b.Name, b.TenantID, b.Body, b.CreatedAt)
	l.awaitAgreed(1, 0)
	if err := bus.DropParked(t.Context(), w.pool, b.ID); err != nil {
		t.Fatal(err)
	}
	l.awaitAgreed(1, 0)
	windows, found, err := bus.CheckNow(t.Context(), w.pool, []bus.Consumer{l.consumer})
	if err != nil || windows != 1 || len(found) != 0 {
		t.Errorf("of %d windows differ %+v, %v", windows, found, err)
	}
}

func TestWithinItsTimeOfGraceAWindowThatDiffersIsNoAlarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen("test-grace", time.Hour)
	w.happen(longAgo(), 1)
	w.tell(longAgo(), 2, time.Now())
	testkit.Eventually(t, soon, "it is seen to differ", func() bool {
		return w.ask(`select count(*) from windows where not agrees and checked_at is not null`) == 1 && l.alarmed() == 0
	})
	found, err := bus.Differences(t.Context(), w.pool)
	if err != nil || len(found) != 1 || !found[0].Fresh || !strings.Contains(found[0].Text, "2 events were told") {
		t.Errorf("it differs in %+v, %v", found, err)
	}
	if l.alarmed() != 0 || l.log.FilterMessage("window differs").Len() != 0 {
		t.Error("it is an alarm already")
	}
}

// A release with one more consumer has run for a week and was taken back.
func TestWindowsOfAConsumerThatIsGoneHideNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`insert into windows (consumer, started_at, ended_at, stream, counted_at, events, centavos, commission_centavos)
		select 'test-gone', at, at + interval '1 minute', 'SALES', now(), 1, 0, 0 from generate_series(now() - interval '5 days', now(), interval '1 minute') at`)
	l := w.listen("test-left", 0)
	w.happen(longAgo(), 1)
	w.tell(longAgo(), 2, time.Now())
	testkit.Eventually(t, soon, "what is lost is an alarm", func() bool { return l.alarmed() == 1 })
	_, found, err := bus.CheckNow(t.Context(), w.pool, []bus.Consumer{l.consumer})
	if err != nil || len(found) != 1 || found[0].Consumer != "test-left" {
		t.Errorf("it differs in %+v, %v", found, err)
	}
}
