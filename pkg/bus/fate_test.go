package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestOneBadEventIsParkedAndItsNeighboursAreHandled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const bad = 317
	events := sales(t, 500)
	w.publish("", events...)
	calls := 0
	w.start(bus.On(consumer, func(ctx context.Context, tx *postgres.Tx, batch []event.Event[event.SaleRecorded]) error {
		calls++
		return recordUnless(func(ref string) error {
			if ref == fmt.Sprintf("sale %d", bad) {
				return fault.New(fault.Invalid, "wrong_sum", "the commission is not what the rate makes of the amount")
			}
			return nil
		})(ctx, tx, batch)
	}))
	w.awaitSettled()
	w.awaitHandled(append(events[:bad:bad], events[bad+1:]...)...)
	parked := w.parked()
	if len(parked) != 1 {
		t.Fatalf("%d events are parked", len(parked))
	}
	p, e := parked[0], events[bad]
	if p.Consumer != consumer || p.ID != e.ID || p.Name != e.Name || p.TenantID != tenant || string(p.Body) != string(e.Body) || p.Times != 1 {
		t.Errorf("parked is %+v", p)
	}
	if !strings.Contains(p.Reason, "the commission is not what the rate makes of the amount") {
		t.Errorf("the reason is %q", p.Reason)
	}
	if receipts := w.count("receipts"); receipts != len(events)-1 {
		t.Errorf("there are %d receipts", receipts)
	}
	if calls > 60 { // a batch is halved, not taken apart one by one
		t.Errorf("the handler was called %d times", calls)
	}
}

func TestAFaultDecidesWhetherAnEventIsParkedOrComesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure error
		parked  bool
	}{
		"invalid":       {fault.New(fault.Invalid, "code", "words"), true},
		"rule":          {fault.New(fault.Rule, "code", "words"), true},
		"not found":     {fault.New(fault.NotFound, "code", "words"), true},
		"conflict":      {fault.New(fault.Conflict, "code", "words"), true},
		"wrapped":       {fmt.Errorf("earn: %w", fault.New(fault.Invalid, "code", "words")), true},
		"not yet":       {fault.New(fault.NotYet, "code", "words"), false},
		"unavailable":   {fault.Unreachable(errors.New("a cable was cut")), false},
		"unknown":       {errors.New("a surprise"), false},
		"a lost cancel": {context.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var attempts atomic.Int64
			bad, good := sale(t, "bad"), sale(t, "good")
			w.publish("", bad, good)
			w.start(bus.On(consumer, recordUnless(func(ref string) error {
				if ref == "bad" && attempts.Add(1) <= 3 {
					return c.failure
				}
				return nil
			})))
			if !c.parked {
				w.awaitHandled(bad, good)
				w.awaitSettled()
				if parked := w.parked(); len(parked) != 0 {
					t.Errorf("parked: %+v", parked)
				}
				return
			}
			w.awaitSettled()
			w.awaitHandled(good)
			if parked := w.parked(); len(parked) != 1 || parked[0].ID != bad.ID || !strings.Contains(parked[0].Reason, "words") {
				t.Errorf("parked: %+v", parked)
			}
		})
	}
}

func TestAnEventComesAgainUntilItsCauseIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refused := make(chan struct{}, 1000)
	w.start(bus.On(consumer, func(ctx context.Context, tx *postgres.Tx, events []event.Event[event.SaleRecorded]) error {
		if err := record(ctx, tx, events); err != nil {
			return err
		}
		for _, e := range events {
			var known bool
			err := tx.QueryRow(ctx, `select exists (select from effects where ref = $1)`, strings.TrimPrefix(e.Data.ExternalRef, "refund of ")).Scan(&known)
			if err != nil {
				return err
			}
			if !known {
				refused <- struct{}{}
				return fault.New(fault.NotYet, "sale_unknown", "the sale has not arrived")
			}
		}
		return nil
	}))
	cause, effect := sale(t, "sale"), sale(t, "refund of sale")
	w.publish("", effect)
	testkit.Eventually(t, soon, "the effect is refused twice", func() bool { return len(refused) >= 2 })
	w.publish("", cause)
	w.awaitHandled(cause, effect)
	w.awaitSettled()
	if parked := w.parked(); len(parked) != 0 {
		t.Errorf("parked: %+v", parked)
	}
}

func TestAnEventWhoseCauseStaysAwayIsParkedInTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var tries, others atomic.Int64
	c := bus.On(consumer, recordUnless(func(ref string) error {
		switch {
		case ref == "refund" && tries.Add(1) <= 4:
			return fault.New(fault.NotYet, "sale_unknown", "the sale has not arrived")
		case ref == "other" && others.Add(1) <= 4:
			return errors.New("a surprise")
		}
		return nil
	}))
	refund, other := saleAt(t, "refund", time.Now().Add(-48*time.Hour)), sale(t, "other")
	w.publish("", refund)
	w.run(func(ctx context.Context) error { return w.bus.RunAwaiting(ctx, w.pool, c, 4) })
	w.awaitSettled()
	parked := w.parked()
	if len(parked) != 1 || parked[0].ID != refund.ID || !strings.Contains(parked[0].Reason, "the sale has not arrived") || tries.Load() != 4 {
		t.Fatalf("after %d tries there are parked: %+v", tries.Load(), parked)
	}
	w.publish("", other)
	w.awaitHandled(other) // for nothing else an event is parked because it has come so often
	if err := bus.RetryParked(t.Context(), w.pool, []bus.Consumer{c}, refund.ID); err != nil {
		t.Fatal(err)
	}
	w.awaitHandled(refund, other)
	if parked := w.parked(); len(parked) != 0 {
		t.Errorf("parked: %+v", parked)
	}
}

func TestWhileADependencyIsDownTheWholeBatchWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := sales(t, 200)
	w.publish("", events...)
	var down atomic.Bool
	down.Store(true)
	var calls atomic.Int64
	w.start(bus.On(consumer, recordUnless(func(ref string) error {
		if !down.Load() {
			return nil
		}
		calls.Add(1)
		return fault.Unreachable(errors.New("a cable was cut"))
	})))
	testkit.Eventually(t, soon, "it was tried", func() bool { info := w.info(); return info != nil && info.NumRedelivered == len(events) })
	if n := calls.Load(); n > 100 { // 200 events one by one would be at least 200
		t.Errorf("the handler was called %d times", n)
	}
	down.Store(false)
	w.awaitHandled(events...)
}

func TestWhatIsNoEventIsParkedAndBlocksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	whole := string(sale(t, "any").Body)
	bodies := []string{
		"", "{", "null", "[]", "\xff\xfe\x00", "\x00",
		strings.Replace(whole, `"data":`, `"date":`, 1),
		strings.Replace(whole, `"hold_days":0`, `"hold_days":"many"`, 1),
		strings.Replace(whole, `"sale.recorded"`, `"sale.refunded"`, 1),
		strings.Replace(whole, `"sale.recorded"`, `"sale\u0000recorded"`, 1),
		strings.Replace(whole, `"amount_brl":0.00`, `"amount_brl":1E1000000000`, 1),
	}
	for i, body := range bodies {
		if i > 6 { // each an event of its own
			body = strings.Replace(body, `"evt_`+sale(t, "any").ID.String()[4:6], fmt.Sprintf(`"evt_%02x`, i), 1)
		}
		w.publishBytes(body)
	}
	good := sale(t, "good")
	w.publish("", good)
	w.start(bus.On(consumer, record))
	w.awaitSettled()
	w.awaitHandled(good)
	parked := w.parked()
	if len(parked) != len(bodies) {
		t.Errorf("%d messages, %d are parked", len(bodies), len(parked))
	}
	for _, p := range parked {
		if p.Reason == "" || p.Name == "" {
			t.Errorf("parked without a name or reason: %+v", p)
		}
		if err := bus.RetryParked(t.Context(), w.pool, []bus.Consumer{bus.On(consumer, record)}, p.ID); err == nil {
			t.Errorf("%q was handled after all", p.Body)
		}
	}
	if got := len(w.parked()); got != len(bodies) {
		t.Errorf("after a retry %d are parked", got)
	}
}

func TestAnEventOlderThanEveryPartitionIsParkedWithItsReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := saleAt(t, "old", time.Now().AddDate(0, 0, -30))
	events := append(sales(t, 20), old)
	w.publish("", events...)
	w.start(bus.On(consumer, record))
	w.awaitSettled()
	w.awaitHandled(events[:20]...)
	parked := w.parked()
	if len(parked) != 1 || parked[0].ID != old.ID || !strings.Contains(parked[0].Reason, "no partition") {
		t.Fatalf("parked: %+v", parked)
	}
}
