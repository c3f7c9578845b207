package bus_test

import (
	"context"
	"testing"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/testkit"
)

// These are not parallel: other tests have consumers of the same name.

func TestWhatAConsumerHasNotBeenGivenIsMeasured(t *testing.T) {
	w := newWorld(t)
	w.watched()
	first := sale(t, "first")
	w.publish("", first)
	w.awaitHandled(first)
	if _, err := w.bus.JetStream().PauseConsumer(t.Context(), bus.Sales.Name, consumer, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.publish("", sales(t, 5)...)
	testkit.Eventually(t, soon, "five are measured", func() bool { return testkit.Metric(t, "partilha_consumer_lag", "consumer", consumer) == 5 })
	if _, err := w.bus.JetStream().ResumeConsumer(t.Context(), bus.Sales.Name, consumer); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, "none are measured", func() bool { return testkit.Metric(t, "partilha_consumer_lag", "consumer", consumer) == 0 })
}

func TestWhatBecomesOfEventsIsCounted(t *testing.T) {
	count := func(name string) float64 {
		t.Helper()
		return max(testkit.Metric(t, name, "consumer", consumer), 0)
	}
	handled, retried, parked := count("partilha_events_handled_total"), count("partilha_events_retried_total"), count("partilha_events_parked_total")
	w := newWorld(t)
	tried := 0
	w.start(bus.On(consumer, recordUnless(func(ref string) error {
		switch {
		case ref == "wrong":
			return fault.New(fault.Rule, "rule_violated", "it can never be handled")
		case ref == "early" && tried < 2:
			tried++
			return fault.New(fault.NotYet, "not_yet", "its cause has not arrived")
		}
		return nil
	})))
	for _, ref := range []string{"right", "wrong", "early"} {
		w.publish("", sale(t, ref))
	}
	testkit.Eventually(t, soon, "two are handled, one is parked, and one came again", func() bool {
		return count("partilha_events_handled_total") == handled+2 && count("partilha_events_parked_total") == parked+1 &&
			count("partilha_events_retried_total") == retried+2
	})
}

func TestWhatWaitsForAnOperatorIsMeasuredOfEachConsumer(t *testing.T) {
	events := []event.Sealed{sale(t, "one"), sale(t, "two")}
	l := park(t, events...)
	idle := bus.On("test-idle", record)
	measured := func(want float64) {
		t.Helper()
		if err := bus.MeasureParked(t.Context(), l.pool, []bus.Consumer{l.consumer, idle}); err != nil {
			t.Fatal(err)
		}
		if got := testkit.Metric(t, "partilha_parked_events", "consumer", consumer); got != want {
			t.Errorf("%v are measured, want %v", got, want)
		}
		if got := testkit.Metric(t, "partilha_parked_events", "consumer", idle.Name); got != 0 {
			t.Errorf("of the consumer that has parked none %v are measured", got)
		}
	}
	measured(2)
	if err := bus.DropParked(t.Context(), l.pool, events[0].ID); err != nil {
		t.Fatal(err)
	}
	measured(1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := bus.MeasureParked(ended, l.pool, []bus.Consumer{l.consumer}); err == nil {
		t.Error("what was not counted is no error")
	}
	measured(1)
}

func TestWhetherNATSCanBeReachedIsMeasured(t *testing.T) {
	w := newWorld(t)
	connected := func(want float64) {
		t.Helper()
		testkit.Eventually(t, soon, "it is measured", func() bool { return testkit.Metric(t, "partilha_nats_connected", "client", t.Name()) == want })
	}
	connected(1)
	w.nats.Stop()
	connected(0)
	w.nats.Start()
	connected(1)
}
