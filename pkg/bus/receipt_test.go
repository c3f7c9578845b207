package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestAnEventIsHandledOnceHoweverOftenItIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := sales(t, 60)
	w.publish("", events...)
	w.publish(":r1", events...)
	w.start(bus.On(consumer, record))
	w.awaitHandled(events...)
	slices.Reverse(events)
	w.publish(":r2", events...)
	w.awaitSettled()
	w.awaitHandled(events...)
	if got := w.count("receipts"); got != len(events) {
		t.Errorf("there are %d receipts", got)
	}
}

func TestTwinsInOneBatchAreHandledOnce(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	one, other := sale(t, "one"), sale(t, "other")
	c := bus.On(consumer, record)
	if err := c.Apply(t.Context(), w.pool, one, other, one, one); err != nil {
		t.Fatal(err)
	}
	w.awaitHandled(one, other)
	called := false
	again := bus.On(consumer, func(context.Context, *postgres.Tx, []event.Event[event.SaleRecorded]) error {
		called = true
		return nil
	})
	if err := again.Apply(t.Context(), w.pool, other, one); err != nil {
		t.Fatal(err)
	}
	if called {
		t.Error("the handler was called with nothing new")
	}
}

func TestTwoConsumersHandleTheSameEventOnceEach(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	e := sale(t, "one")
	for _, name := range []string{"test-one", "test-other", "test-one"} {
		if err := bus.On(name, record).Apply(t.Context(), w.pool, e); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.handled()["one"]; got != 2 {
		t.Errorf("it was handled %d times", got)
	}
}

func TestReceiptsCommitWithTheEffectsOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	attempts := 0
	w.publish("", sale(t, "one"))
	w.start(bus.On(consumer, recordUnless(func(string) error {
		attempts++
		if rows := w.count("effects") + w.count("receipts"); rows != 0 {
			return errors.New("something was kept of an attempt that failed")
		}
		if attempts < 3 {
			return errors.New("it fails after the insert")
		}
		return nil
	})))
	w.awaitHandled(sale(t, "one"))
	w.awaitSettled()
	if attempts != 3 {
		t.Errorf("there were %d attempts", attempts)
	}
}

func TestReplicasThatClaimTheSameEventsDoNotWaitForOneAnother(t *testing.T) {
	t.Parallel()
	w := newOffline(t)
	c := bus.On(consumer, record)
	var all []event.Sealed
	for range 30 {
		events := sales(t, 400)
		reversed := slices.Clone(events)
		slices.Reverse(reversed)
		var replicas sync.WaitGroup
		for _, batch := range [][]event.Sealed{events, reversed} {
			replicas.Go(func() {
				if err := c.Apply(t.Context(), w.pool, batch...); err != nil {
					t.Error(err)
				}
			})
		}
		replicas.Wait()
		all = append(all, events...)
	}
	if got := w.count("effects"); got != len(all) {
		t.Errorf("%d events were handled %d times", len(all), got)
	}
}

func TestTheTraceOfAnEventReachesItsHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	traced, plain := sale(t, "traced"), sale(t, "plain")
	traced.Traceparent = parent
	w.publish("", traced, plain)
	w.start(bus.On(consumer, record))
	w.awaitHandled(traced, plain)
	cameWith := func(ref string) (got string) {
		if err := w.pool.QueryRow(t.Context(), `select traceparent from effects where ref = $1`, ref).Scan(&got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := cameWith("traced"); got != parent {
		t.Errorf("it came with %q", got)
	}
	if got := cameWith("plain"); len(got) != len(parent) || got == parent || !strings.HasSuffix(got, "-00") {
		t.Errorf("what came without a trace began %q", got)
	}
}

func TestEachKindReachesItsConsumerAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	partner, err := event.Seal(tenant, "partner", sale(t, "any").CreatedAt, event.PartnerCreated{Name: "João"}, "")
	if err != nil {
		t.Fatal(err)
	}
	one := sale(t, "one")
	w.publish("", partner, one)
	w.start(bus.On(consumer, record))
	names := make(chan string, 10)
	w.start(bus.OnAny("test-any", []string{event.NamePartnerCreated, event.NameSaleRecorded},
		func(_ context.Context, _ *postgres.Tx, events []event.Sealed) error {
			for _, e := range events {
				names <- e.Name
			}
			return nil
		}))
	w.awaitHandled(one)
	testkit.Eventually(t, soon, "both reach the consumer of any", func() bool { return len(names) == 2 })
	if got := []string{<-names, <-names}; !slices.Contains(got, event.NamePartnerCreated) || !slices.Contains(got, event.NameSaleRecorded) {
		t.Errorf("it was given %v", got)
	}
}
