package bus_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestAConsumerOutlivesTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(bus.On(consumer, record))
	before, after := sale(t, "before"), sale(t, "after")
	w.publish("", before)
	w.awaitHandled(before)
	w.nats.Kill()
	testkit.Eventually(t, soon, "the connection is lost", func() bool { return !w.bus.Connected() })
	w.nats.Start()
	w.publish("", after)
	w.awaitHandled(before, after)
}

// As after a mistake in a new password, or a change of passwords that was left half done.
func TestAPasswordThatIsRefusedIsTriedUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	nats := testkit.NATS(t)
	restart := func(password string) {
		nats.Stop()
		nats.Admit("sales", password)
		nats.Start()
	}
	restart("right")
	core, logs := observer.New(zap.ErrorLevel)
	url := strings.Replace(nats.URL(), "//", "//sales:right@", 1)
	b, err := bus.Connect(bus.Config{URL: url, Name: t.Name()}, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	testkit.Eventually(t, soon, "the connection", b.Connected)
	restart("wrong")
	testkit.Eventually(t, soon, "the password is refused many times", func() bool { return logs.FilterMessage("nats refuses something").Len() > 4 })
	restart("right")
	testkit.Eventually(t, soon, "the connection is back", b.Connected)
}

func TestAConsumerStartsWhileTheServerIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nats.Stop()
	w.bus = w.connect() // as a process that starts now
	if w.bus.Connected() || w.bus.ServerID() != "" {
		t.Fatal("there is a server")
	}
	w.start(bus.On(consumer, record))
	w.nats.Start()
	e := sale(t, "one")
	w.publish("", e)
	w.awaitHandled(e)
}

func TestAConsumerStartsBeforeItsStreamIsThere(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	w.nats = testkit.NATS(t)
	w.bus = w.connect()
	w.start(bus.On(consumer, record))
	w.makeStream()
	e := sale(t, "one")
	w.publish("", e)
	w.awaitHandled(e)
}

func TestAConsumerOutlivesItsStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(bus.On(consumer, record))
	before, after := sale(t, "before"), sale(t, "after")
	w.publish("", before)
	w.awaitHandled(before)
	w.awaitSettled()
	if err := w.bus.JetStream().DeleteStream(t.Context(), bus.Sales.Name); err != nil {
		t.Fatal(err)
	}
	w.makeStream()
	w.publish("", before, after)
	w.awaitHandled(before, after)
	w.awaitSettled()
	w.awaitHandled(before, after)
}

func TestAConsumerThatTheServerForgotIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(func(ctx context.Context) error { // without a watchdog: the server tells
		return w.bus.RunHastily(ctx, w.pool, bus.On(consumer, record), time.Minute, time.Hour)
	})
	before, after := sale(t, "before"), sale(t, "after")
	w.publish("", before)
	w.awaitHandled(before)
	w.awaitSettled()
	if err := w.bus.JetStream().DeleteConsumer(t.Context(), bus.Sales.Name, consumer); err != nil {
		t.Fatal(err)
	}
	w.publish("", after)
	w.awaitHandled(before, after)
	w.awaitSettled()
	w.awaitHandled(before, after)
}

func TestReplicasShareTheEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.connect()
	var mu sync.Mutex
	by := map[string]int{}
	replica := func(name string) bus.Consumer {
		return bus.On(consumer, func(ctx context.Context, tx *postgres.Tx, events []event.Event[event.SaleRecorded]) error {
			mu.Lock()
			by[name] += len(events)
			mu.Unlock()
			return record(ctx, tx, events)
		})
	}
	w.start(replica("one"))
	w.run(func(ctx context.Context) error { return other.Run(ctx, w.pool, replica("other")) })
	var all []event.Sealed
	both := func() bool { mu.Lock(); defer mu.Unlock(); return by["one"] > 0 && by["other"] > 0 }
	testkit.Eventually(t, soon, "both replicas are given events", func() bool {
		e := sale(t, "sale "+time.Now().String())
		w.publish("", e)
		all = append(all, e)
		return both()
	})
	more := sales(t, 1000)
	w.publish("", more...)
	w.awaitHandled(append(all, more...)...)
	w.awaitSettled()
	w.awaitHandled(append(all, more...)...)
}

func TestAnEventIsAcknowledgedAfterTheCommitOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const ackWait = 500 * time.Millisecond
	run := func(b *bus.Bus, c bus.Consumer) (stop func()) {
		return w.run(func(ctx context.Context) error { return b.RunHastily(ctx, w.pool, c, ackWait, time.Hour) })
	}
	written := make(chan struct{})
	dying := w.connect()
	stop := run(dying, bus.On(consumer, func(ctx context.Context, tx *postgres.Tx, events []event.Event[event.SaleRecorded]) error {
		if err := record(ctx, tx, events); err != nil {
			return err
		}
		close(written)
		<-ctx.Done() // the process is killed between the insert and the commit
		return nil
	}))
	e := sale(t, "one")
	w.publish("", e)
	<-written
	dying.Close()
	stop()
	if w.count("effects")+w.count("receipts") != 0 {
		t.Fatal("it was committed")
	}
	run(w.bus, bus.On(consumer, record))
	w.awaitHandled(e)
	w.awaitSettled()
	if info := w.info(); info.Delivered.Consumer != 2 {
		t.Errorf("it was delivered %d times", info.Delivered.Consumer)
	}
}

func TestAReplicaThatStopsGivesBackWhatItHasTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := sales(t, 700) // a batch that is being handled, and more behind it
	w.publish("", events...)
	written := make(chan struct{}, 1)
	stop := w.start(bus.On(consumer, func(ctx context.Context, tx *postgres.Tx, events []event.Event[event.SaleRecorded]) error {
		written <- struct{}{}
		<-ctx.Done()
		return record(ctx, tx, events)
	}))
	<-written
	testkit.Eventually(t, soon, "all are taken", func() bool { return w.info().NumAckPending == len(events) })
	stop()
	w.start(bus.On(consumer, record)) // gets them long before the server would deem them lost
	w.awaitHandled(events...)
}
