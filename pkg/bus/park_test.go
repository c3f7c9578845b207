package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// lot is a world in which events have been parked, and the switch that mends their
// cause.
type lot struct {
	*world
	consumer bus.Consumer
	mended   bool
}

// park makes a lot with the events, parked in this order.
func park(t *testing.T, events ...event.Sealed) *lot {
	t.Helper()
	l := &lot{world: newWorld(t)}
	l.consumer = bus.On(consumer, recordUnless(func(string) error {
		if l.mended {
			return nil
		}
		return fault.New(fault.Rule, "rule_violated", "the plan is unknown")
	}))
	stop := l.start(l.consumer)
	for i, e := range events {
		l.publish("", e)
		testkit.Eventually(t, soon, "the event is parked", func() bool { return l.count("parked_events") == i+1 })
	}
	stop()
	return l
}

func (l *lot) retry(id event.ID) error {
	return bus.RetryParked(l.t.Context(), l.pool, []bus.Consumer{bus.On("test-other", record), l.consumer}, id)
}

func TestTheNewestParkedEventsAreListedFirst(t *testing.T) {
	t.Parallel()
	first, second, third := sale(t, "first"), sale(t, "second"), sale(t, "third")
	l := park(t, first, second, third)
	found, err := bus.ListParked(t.Context(), l.pool, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].ID != third.ID || found[1].ID != second.ID {
		t.Errorf("listed %+v", found)
	}
}

func TestAParkedEventIsShownOfEachConsumer(t *testing.T) {
	t.Parallel()
	e := sale(t, "one")
	l := park(t, e)
	l.start(bus.On("test-other", recordUnless(func(string) error { return fault.New(fault.Conflict, "conflict", "it is there") })))
	testkit.Eventually(t, soon, "both have parked it", func() bool { return l.count("parked_events") == 2 })
	found, err := bus.ShowParked(t.Context(), l.pool, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Consumer != "test-other" || found[1].Consumer != consumer || found[0].Reason == found[1].Reason {
		t.Errorf("shown %+v", found)
	}
}

func TestARetryAfterTheCauseIsMendedHandlesTheEvent(t *testing.T) {
	t.Parallel()
	e, other := sale(t, "one"), sale(t, "other")
	e.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	l := park(t, e, other)
	l.mended = true
	if err := l.retry(e.ID); err != nil {
		t.Fatal(err)
	}
	l.awaitHandled(e)
	if parked := l.parked(); len(parked) != 1 || parked[0].ID != other.ID {
		t.Errorf("parked: %+v", parked)
	}
	var traceparent string
	if err := l.pool.QueryRow(t.Context(), `select traceparent from effects`).Scan(&traceparent); err != nil || traceparent != e.Traceparent {
		t.Errorf("it was handled with the trace %q, %v", traceparent, err)
	}
	if err := l.retry(e.ID); !errors.Is(err, bus.ErrNotParked) {
		t.Errorf("a second retry answers %v", err)
	}
	l.awaitHandled(e)
}

// Whoever mends the cause may take longer than receipts are kept, and what was parked may
// have been older than that from the beginning.
func TestARetryHandlesAnEventHoweverOldItIs(t *testing.T) {
	t.Parallel()
	for _, days := range []int{0, 30} {
		t.Run(fmt.Sprintf("%d days old when it was parked", days), func(t *testing.T) {
			t.Parallel()
			e := saleAt(t, "one", time.Now().AddDate(0, 0, -days))
			l := park(t, e)
			l.mended = true
			tables := bus.Schema.Partitions
			drop := func() {
				t.Helper()
				dropped, err := postgres.DropPartitions(t.Context(), l.pool, tables, time.Now().AddDate(0, 0, 20))
				if err != nil || len(dropped) == 0 {
					t.Fatalf("dropped %v, %v", dropped, err)
				}
			}
			drop()
			if err := l.retry(e.ID); err != nil {
				t.Fatal(err)
			}
			l.awaitHandled(e)
			if parked := l.parked(); len(parked) != 0 || l.count("receipts") != 1 {
				t.Errorf("%d receipts, parked: %+v", l.count("receipts"), parked)
			}
			drop() // the day that was made for it goes as the others do
			if n := l.count("receipts"); n != 0 {
				t.Errorf("%d receipts are left", n)
			}
		})
	}
}

func TestARetryThatFailsKeepsTheEventParked(t *testing.T) {
	t.Parallel()
	e := sale(t, "one")
	l := park(t, e)
	if err := l.retry(e.ID); fault.KindOf(err) != fault.Rule {
		t.Errorf("the retry answers %v", err)
	}
	if l.count("parked_events") != 1 || l.count("effects")+l.count("receipts") != 0 {
		t.Error("it is not parked as before")
	}
}

func TestARetryByAServiceWithoutTheConsumerKeepsTheEventParked(t *testing.T) {
	t.Parallel()
	e := sale(t, "one")
	l := park(t, e)
	err := bus.RetryParked(t.Context(), l.pool, []bus.Consumer{bus.On("test-other", record)}, e.ID)
	if err == nil || !strings.Contains(err.Error(), consumer) {
		t.Errorf("the retry answers %v", err)
	}
	if l.count("parked_events") != 1 || l.count("effects") != 0 {
		t.Error("it is not parked as before")
	}
}

func TestARetryOfWhatHasBeenHandledSinceIsHarmless(t *testing.T) {
	t.Parallel()
	e := sale(t, "one")
	l := park(t, e)
	l.mended = true
	l.publish(":r1", e)
	l.start(l.consumer)
	l.awaitHandled(e)
	if err := l.retry(e.ID); err != nil {
		t.Fatal(err)
	}
	l.awaitHandled(e)
	if parked := l.parked(); len(parked) != 0 {
		t.Errorf("parked: %+v", parked)
	}
}

func TestAnEventThatIsParkedAgainIsOneRowAndCountsItsTimes(t *testing.T) {
	t.Parallel()
	e := sale(t, "one")
	l := park(t, e)
	l.publish(":r1", e)
	l.start(l.consumer)
	testkit.Eventually(t, soon, "it is parked twice", func() bool { return l.parked()[0].Times == 2 })
	l.awaitSettled()
	if parked := l.parked(); len(parked) != 1 || parked[0].Times != 2 {
		t.Errorf("parked: %+v", parked)
	}
}

func TestADroppedEventIsForgotten(t *testing.T) {
	t.Parallel()
	e, other := sale(t, "one"), sale(t, "other")
	l := park(t, e, other)
	if err := bus.DropParked(t.Context(), l.pool, e.ID); err != nil {
		t.Fatal(err)
	}
	if parked := l.parked(); len(parked) != 1 || parked[0].ID != other.ID {
		t.Errorf("parked: %+v", parked)
	}
}

func TestWhatIsNotParkedIsSaidToBeNot(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	id := sale(t, "never").ID
	_, showing := bus.ShowParked(t.Context(), w.pool, id)
	for what, err := range map[string]error{
		"show":  showing,
		"retry": bus.RetryParked(t.Context(), w.pool, []bus.Consumer{bus.On(consumer, record)}, id),
		"drop":  bus.DropParked(t.Context(), w.pool, id),
	} {
		if !errors.Is(err, bus.ErrNotParked) {
			t.Errorf("%s answers %v", what, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bus.ShowParked(gone, w.pool, id); err == nil || errors.Is(err, bus.ErrNotParked) {
		t.Errorf("while the database cannot be asked, show answers %v", err)
	}
}
