package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/testkit"
)

// A consumer that is paused on the server looks like one that has stalled: it lives,
// messages are pending, and none arrives.
func TestAConsumerThatHasStalledIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	restarts := w.watched()
	before, after := sale(t, "before"), sale(t, "after")
	w.publish("", before)
	w.awaitHandled(before)
	js := w.bus.JetStream()
	if _, err := js.PauseConsumer(t.Context(), bus.Sales.Name, consumer, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.publish("", after)
	testkit.Eventually(t, soon, "the stall is noticed, more than once", func() bool { return restarts.Len() >= 2 })
	if why := restarts.All()[0].ContextMap()["error"]; why != "messages are pending and none arrives" {
		t.Errorf("it started again because of %q", why)
	}
	if _, err := js.ResumeConsumer(t.Context(), bus.Sales.Name, consumer); err != nil {
		t.Fatal(err)
	}
	w.awaitHandled(before, after)
}

func TestAConsumerThatHasNothingToDoIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn, err := nats.Connect(w.nats.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	looks, err := conn.SubscribeSync("$JS.API.CONSUMER.INFO." + bus.Sales.Name + "." + consumer)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	restarts := w.watched()
	for range 12 { // three times as long as a stall takes
		if _, err := looks.NextMsg(soon); err != nil {
			t.Fatal(err)
		}
	}
	if restarts.Len() != 0 {
		t.Errorf("it started again: %v", restarts.All()[0].ContextMap())
	}
}

// watched runs a consumer that takes 200 ms without a message for a stall, and
// returns the log of its restarts.
func (w *world) watched() *observer.ObservedLogs {
	w.t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	b := w.connectWithLog(zap.New(core))
	w.run(func(ctx context.Context) error {
		return b.RunHastily(ctx, w.pool, bus.On(consumer, record), time.Minute, 200*time.Millisecond)
	})
	return logs
}
