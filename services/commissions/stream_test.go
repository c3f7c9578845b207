package commissions

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
)

const soon = time.Minute

// others stands for the owners of the streams that the service hears.
type others struct {
	t *testing.T
	*bus.Bus
	rounds    int
	published uint64 // messages
}

func newOthers(t *testing.T, url string) *others {
	t.Helper()
	s := &others{t: t, Bus: connect(t, url)}
	for _, stream := range []bus.Stream{bus.Sales, bus.Goals} {
		if err := s.EnsureStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// publish sends the events in this order, each time under message ids of their own.
func (s *others) publish(events ...event.Sealed) {
	s.t.Helper()
	s.rounds++
	outgoing := make([]bus.Outgoing, len(events))
	for i, e := range events {
		outgoing[i] = bus.Outgoing{Sealed: e, MessageID: fmt.Sprintf("%s:r%d", e.ID, s.rounds)}
	}
	if stored, err := s.Publish(s.t.Context(), outgoing); err != nil || len(stored) != len(events) {
		s.t.Fatalf("published %d of %d: %v", len(stored), len(events), err)
	}
	s.published += uint64(len(events))
}

// sealed fixes the bytes of an event as the sales service would.
func sealed[T event.Payload](t *testing.T, tenant uuid.UUID, cause string, at time.Time, data T) event.Sealed {
	t.Helper()
	e, err := event.Seal(tenant, cause, at, data, "")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func sealedSale(t *testing.T, sold event.Event[event.SaleRecorded]) event.Sealed {
	t.Helper()
	return sealed(t, sold.TenantID, sold.Data.SaleID.String(), sold.CreatedAt, sold.Data)
}

// settle waits until everything that was published is handled or parked, and the
// outbox is empty.
func (f *fixture) settle(sales *others) {
	f.t.Helper()
	testkit.Eventually(f.t, soon, "the stream is handled", func() bool {
		return f.handled(sales) && len(f.dump(`select * from outbox_pending`)) == 0
	})
}

// handled tells whether everything that was published is handled or parked.
func (f *fixture) handled(sales *others) bool {
	f.t.Helper()
	var delivered uint64 // each event has one consumer
	for _, consumer := range f.Consumers() {
		stream := bus.Sales
		if consumer.Events[0] == event.NameGoalReached {
			stream = bus.Goals
		}
		durable, err := f.deps.Bus.JetStream().Consumer(f.t.Context(), stream.Name, consumer.Name)
		if err != nil || durable.CachedInfo().NumPending > 0 || durable.CachedInfo().NumAckPending > 0 {
			return false
		}
		delivered += durable.CachedInfo().Delivered.Consumer
	}
	return delivered >= sales.published
}

// published is how many events the service's own stream holds.
func (f *fixture) published() uint64 {
	f.t.Helper()
	stream, err := f.deps.Bus.JetStream().Stream(f.t.Context(), bus.Commissions.Name)
	if err != nil {
		f.t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

func same(t *testing.T, before, after map[string][]string) {
	t.Helper()
	for _, table := range slices.Sorted(maps.Keys(before)) {
		if !slices.Equal(before[table], after[table]) {
			t.Errorf("%s was\n%s\nand is\n%s", table, strings.Join(before[table], "\n"), strings.Join(after[table], "\n"))
		}
	}
}

// season is a stream of some tenants' partners, sales, refunds, conversions and goals,
// with how many commissions are earned by it and how many events are to tell of them.
func season(t *testing.T, now time.Time) (events []event.Sealed, commissions, told int) {
	for range 3 {
		tenant, partner := newID(), newID()
		events = append(events,
			sealed(t, tenant, partner.String(), now, created(tenant, partner).Data),
			sealed(t, tenant, partner.String()+"/1", now, changed(tenant, partner, 1, "Ana", "active").Data),
			sealed(t, tenant, partner.String()+"/2", now, changed(tenant, partner, 2, "Ana Lima", "suspended").Data))
		for i := range 40 {
			sold := sale(tenant, now.Add(time.Duration(i)*time.Millisecond), soldBy(partner), func(s *event.SaleRecorded) { s.HoldDays = i % 3 })
			events = append(events, sealedSale(t, sold))
			commissions, told = commissions+1, told+1
			for _, part := range []money.BRL{10_00, 22_42}[:i%4/2*2] {
				refund := refundOf(sold, part)
				events = append(events, sealed(t, tenant, refund.Data.RefundID.String(), refund.CreatedAt, refund.Data))
				told++
			}
		}
		for range 3 {
			paid, unpaid, goal := conversion(tenant, now, 4_75), conversion(tenant, now, 0), goalReached(tenant, now, 250_00)
			events = append(events,
				sealed(t, tenant, paid.Data.ConversionID.String(), now, paid.Data),
				sealed(t, tenant, unpaid.Data.ConversionID.String(), now, unpaid.Data),
				sealed(t, tenant, goal.Data.GoalID.String(), now, goal.Data))
			commissions, told = commissions+2, told+2
		}
	}
	return events, commissions, told
}

func TestWhateverEarnsBecomesOneCommissionAndOneEvent(t *testing.T) {
	t.Parallel()
	nats := testkit.NATS(t)
	f := prepare(t, nats.URL()).wire()
	events, earned, told := season(t, f.now)
	sales := newOthers(t, nats.URL())
	sales.publish(events...)
	f.run()
	f.settle(sales)
	if n := len(f.dump(`select commission_id from commissions`)); n != earned {
		t.Errorf("%d commissions, want %d", n, earned)
	}
	if n := f.published(); n != uint64(told) {
		t.Errorf("%d events, want %d", n, told)
	}
	if partners := f.dump(`select name, version from partners`); !slices.Equal(partners, []string{`("Ana Lima",2)`, `("Ana Lima",2)`, `("Ana Lima",2)`}) {
		t.Errorf("partners %v", partners)
	}
	if parked := f.dump(`select * from parked_events`); len(parked) != 0 {
		t.Errorf("parked %v", parked)
	}
}

func TestTheWholeStreamAgainInAnyOrderChangesNothing(t *testing.T) {
	t.Parallel()
	nats := testkit.NATS(t)
	f := prepare(t, nats.URL()).wire()
	sales := newOthers(t, nats.URL())
	events, _, _ := season(t, f.now)
	sales.publish(events...)
	stop := f.run()
	f.settle(sales)
	before, told := f.state(), f.published()

	f.now = f.now.Add(time.Hour) // whatever were written now would bear another time
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	sales.publish(events...)
	f.settle(sales)
	stop()
	same(t, before, f.state())
	if n := f.published(); n != told {
		t.Errorf("%d events are told, %d were", n, told)
	}
}

func TestTheOrderOfTheStreamDecidesNothing(t *testing.T) {
	t.Parallel()
	events, _, _ := season(t, event.Instant(time.Now()))
	var outcomes []map[string][]string
	for range 2 {
		nats := testkit.NATS(t)
		f := prepare(t, nats.URL()).wire()
		sales := newOthers(t, nats.URL())
		sales.publish(events...)
		f.run()
		f.settle(sales)
		outcomes = append(outcomes, map[string][]string{
			"commissions": f.dump(`select * from commissions`),
			"balances":    f.dump(`select tenant_id, partner_id, ` + balanceColumns + ` from accounts`),
			"partners":    f.dump(`select * from partners`),
			"events told": f.dump(`select event_id, tenant_id from outbox where name <> 'window.commissions'`),
		})
		rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	}
	same(t, outcomes[0], outcomes[1])
}

func TestARefundThatOvertookItsSaleIsPostedOnceTheSaleIsThere(t *testing.T) {
	t.Parallel()
	nats := testkit.NATS(t)
	f := prepare(t, nats.URL()).wire()
	sales := newOthers(t, nats.URL())
	tenant, partner := newID(), newID()
	early, ready := sale(tenant, f.now, soldBy(partner)), sale(tenant, f.now, soldBy(partner))
	publish := func(refund event.Event[event.SaleRefunded]) {
		sales.publish(sealed(t, tenant, refund.Data.RefundID.String(), f.now, refund.Data))
	}
	publish(refundOf(early, 10_00))
	publish(refundOf(early, 22_42))
	f.run()
	sales.publish(sealedSale(t, ready))
	publish(refundOf(ready, 2_42)) // is not held up by those before it
	testkit.Eventually(t, soon, "the refund of the sale that is there is posted", func() bool {
		return len(f.dump(`select * from transfers where kind = 'reversal'`)) == 1
	})
	if parked := f.dump(`select * from parked_events`); len(parked) != 0 {
		t.Errorf("parked %v", parked)
	}
	sales.publish(sealedSale(t, early))
	f.settle(sales)
	if got := f.books(tenant, partner); got != (balances{Available: 30_00}) {
		t.Errorf("balances %+v", got)
	}
	if c, err := f.commission(t.Context(), tenant, early.Data.CommissionID); err != nil || c.Status != statusReversed {
		t.Errorf("commission %+v, %v", c, err)
	}
	f.balanced(tenant)
}

func TestABadEventIsParkedAndItsNeighboursAreHandled(t *testing.T) {
	t.Parallel()
	nats := testkit.NATS(t)
	f := prepare(t, nats.URL()).wire()
	tenant := newID()
	good := []event.Event[event.SaleRecorded]{sale(tenant, f.now), sale(tenant, f.now), sale(tenant, f.now)}
	wrong := sealedSale(t, sale(tenant, f.now, worth(100_00, 5_0000, 5_01)))
	unreadable := sealedSale(t, sale(tenant, f.now))
	unreadable.Body = []byte(strings.Replace(string(unreadable.Body), `"amount_brl":259.35`, `"amount_brl":"259.35"`, 1))
	second := sale(tenant, f.now, func(s *event.SaleRecorded) { s.SaleID = good[0].Data.SaleID })
	doubled := sealed(t, tenant, "another cause", f.now, second.Data)
	nobody := sealed(t, tenant, "nobody", f.now, created(tenant, uuid.Nil).Data)
	partner := sealed(t, tenant, "somebody", f.now, created(tenant, newID()).Data)

	sales := newOthers(t, nats.URL())
	sales.publish(sealedSale(t, good[0]), wrong, sealedSale(t, good[1]), unreadable, doubled, nobody, partner, sealedSale(t, good[2]))
	f.run()
	f.settle(sales)

	for _, sold := range good {
		if _, err := f.commission(t.Context(), tenant, sold.Data.CommissionID); err != nil {
			t.Errorf("a neighbour: %v", err)
		}
	}
	if n := len(f.dump(`select * from commissions`)); n != len(good) {
		t.Errorf("%d commissions", n)
	}
	if n := len(f.dump(`select * from partners`)); n != 1 {
		t.Errorf("%d partners", n)
	}
	parked, err := bus.ListParked(t.Context(), f.deps.Pool, 100)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[event.ID]string{}
	for _, p := range parked {
		reasons[p.ID] = p.Reason
	}
	for id, reason := range map[event.ID]string{
		wrong.ID:      "commission_amount_brl is 5.01, but 5 percent of 100.00 is 5.00",
		unreadable.ID: "read event sale.recorded",
		doubled.ID:    "the sale has a commission already",
		nobody.ID:     "partner_id is missing",
	} {
		if !strings.Contains(reasons[id], reason) {
			t.Errorf("parked as %q, want %q", reasons[id], reason)
		}
	}
	if len(parked) != 4 {
		t.Errorf("%d events are parked", len(parked))
	}
}
