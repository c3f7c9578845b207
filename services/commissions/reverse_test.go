package commissions

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

func TestARefundTakesTheMoneyFromWhereItIs(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	for name, row := range map[string]struct {
		days    int
		between func(tenant, partner uuid.UUID)
		want    balances
	}{
		"from pending while it is held":          {2, func(uuid.UUID, uuid.UUID) {}, balances{Pending: 22_42}},
		"from available where it never was held": {0, func(uuid.UUID, uuid.UUID) {}, balances{Available: 22_42}},
		"from available once it is released":     {2, func(uuid.UUID, uuid.UUID) { f.now = f.now.Add(2 * day); f.mustRelease() }, balances{Available: 22_42}},
		"as debt once it is paid out":            {0, func(tenant, partner uuid.UUID) { f.payOut(tenant, partner) }, balances{Paid: 32_42, Debt: 10_00}},
		"never from what is pending of other ones": {0, func(tenant, partner uuid.UUID) {
			f.payOut(tenant, partner)
			f.mustEarn(sale(tenant, f.now, soldBy(partner), heldFor(1)))
		}, balances{Pending: 32_42, Paid: 32_42, Debt: 10_00}},
		"as debt beyond what others left available": {0, func(tenant, partner uuid.UUID) {
			f.payOut(tenant, partner)
			f.mustEarn(sale(tenant, f.now, soldBy(partner), worth(100_00, 4_0000, 4_00)))
		}, balances{Paid: 32_42, Debt: 6_00}},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, partner := newID(), newID()
			sold := sale(tenant, f.now, soldBy(partner), heldFor(row.days))
			f.mustEarn(sold)
			row.between(tenant, partner)
			f.mustReverse(refundOf(sold, 10_00))
			if got := f.books(tenant, partner); got != row.want {
				t.Errorf("balances %+v, want %+v", got, row.want)
			}
			if c, err := f.commission(t.Context(), tenant, sold.Data.CommissionID); err != nil || c.Reversed != 10_00 || c.Status == statusReversed {
				t.Errorf("commission %+v, %v", c, err)
			}
			f.balanced(tenant)
		})
	}
}

func TestTheRefundsOfASaleReturnItsWholeCommissionInEveryOrder(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	for _, order := range orders(4) {
		for _, released := range []int{0, 2, 4} { // so many refunds come before the release
			tenant, partner := newID(), newID()
			f.now = f.now.Add(time.Second)
			sold := sale(tenant, f.now, soldBy(partner), heldFor(1), func(s *event.SaleRecorded) { s.SoldAt = f.now.Add(-day + time.Millisecond) })
			f.mustEarn(sold)
			parts := []money.BRL{10_00, 0, 22_41, 1}
			var refunds []event.Event[event.SaleRefunded]
			for _, part := range parts {
				refunds = append(refunds, refundOf(sold, part))
			}
			for i, at := range order {
				if i == released {
					f.now = f.now.Add(time.Millisecond)
					f.mustRelease()
				}
				f.mustReverse(refunds[at])
			}
			if got := f.books(tenant, partner); got != (balances{}) {
				t.Errorf("order %v: %+v", order, got)
			}
			if c, err := f.commission(t.Context(), tenant, sold.Data.CommissionID); err != nil || c.Reversed != 32_42 || c.Status != statusReversed {
				t.Errorf("order %v: commission %+v, %v", order, c, err)
			}
		}
	}
}

func TestARefundBeforeItsSaleWaits(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partner := newID(), newID()
	sold := sale(tenant, f.now, soldBy(partner))
	refund := refundOf(sold, 32_42)
	for _, earlier := range []func(){
		func() {}, // nothing is known of the partner
		func() { f.mustEarn(sale(tenant, f.now, soldBy(partner))) },
		func() {
			f.mustEarn(sale(newID(), f.now, func(s *event.SaleRecorded) { s.CommissionID = sold.Data.CommissionID }))
		},
	} {
		earlier()
		before := f.state()
		if err := handle(f, f.reverse, refund); fault.KindOf(err) != fault.NotYet {
			t.Errorf("refused as %v", err)
		}
		same(t, before, f.state())
	}
	f.now = f.now.Add(time.Second)
	f.mustEarn(sold)
	f.mustReverse(refund)
	if got := f.books(tenant, partner); got != (balances{Available: 32_42}) {
		t.Errorf("balances %+v", got)
	}
}

func TestARefundThatIsParkedWithItsSaleIsPostedOnceBothAreRetried(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partner := newID(), newID()
	sold := sale(tenant, f.now, soldBy(partner))
	refund := refundOf(sold, 10_00)
	first, second := sealedSale(t, sold), sealed(t, tenant, refund.Data.RefundID.String(), f.now, refund.Data)
	for consumer, e := range map[string]event.Sealed{earner: first, "commissions-reverse": second} {
		f.exec(`insert into parked_events (consumer, event_id, name, tenant_id, body, traceparent, reason, created_at)
			values ($1, $2, $3, $4, $5, '', 'not mended yet', $6)`, consumer, [16]byte(e.ID), e.Name, tenant, e.Body, e.CreatedAt)
	}
	retry := func(e event.Sealed) error { return bus.RetryParked(t.Context(), f.deps.Pool, f.Consumers(), e.ID) }
	if err := retry(second); fault.KindOf(err) != fault.NotYet {
		t.Errorf("before its sale it answers %v", err)
	}
	if parked := f.dump(`select * from parked_events`); len(parked) != 2 {
		t.Errorf("parked %v", parked)
	}
	for _, e := range []event.Sealed{first, second} {
		if err := retry(e); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.books(tenant, partner); got != (balances{Available: 22_42}) {
		t.Errorf("balances %+v", got)
	}
	if parked := f.dump(`select * from parked_events`); len(parked) != 0 {
		t.Errorf("parked %v", parked)
	}
	f.balanced(tenant)
}

// interruption does something the first time that a statement of these words is sent.
type interruption struct {
	words string
	do    func()
}

func (i *interruption) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if do := i.do; do != nil && strings.Contains(data.SQL, i.words) {
		i.do = nil
		do()
	}
	return ctx
}

func (*interruption) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The commission commits between the locking of the books, of which its partner has none
// yet, and the reading of the commissions.
func TestARefundThatFindsTheCommissionWithoutItsBookWaits(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	config, err := pgxpool.ParseConfig(f.deps.Pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	sold := sale(newID(), f.now)
	between := &interruption{words: "select t.reference"}
	config.ConnConfig.Tracer = between
	if f.deps.Pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.deps.Pool.Close)
	f.wire()
	between.do = func() { f.mustEarn(sold) }
	refund := refundOf(sold, 32_42)
	if err := handle(f, f.reverse, refund); fault.KindOf(err) != fault.NotYet {
		t.Errorf("refused as %v", err)
	}
	f.mustReverse(refund)
	f.balanced(sold.TenantID)
}

func TestARefundThatCannotBeIsRefusedWhole(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	sold, other := sale(tenant, f.now), sale(tenant, f.now)
	c := conversion(tenant, f.now, 4_75)
	f.mustEarn(sold, other)
	if err := handle(f, f.earnFromConversions, c); err != nil {
		t.Fatal(err)
	}
	posted := refundOf(sold, 10_00)
	f.mustReverse(posted)
	before := f.state()
	for name, row := range map[string]struct {
		change func(*event.SaleRefunded)
		kind   fault.Kind
	}{
		"no refund_id":                 {func(r *event.SaleRefunded) { r.RefundID = uuid.Nil }, fault.Invalid},
		"no sale_id":                   {func(r *event.SaleRefunded) { r.SaleID = uuid.Nil }, fault.Invalid},
		"no partner_id":                {func(r *event.SaleRefunded) { r.PartnerID = uuid.Nil }, fault.Invalid},
		"no commission_id":             {func(r *event.SaleRefunded) { r.CommissionID = uuid.Nil }, fault.Invalid},
		"less than nothing":            {func(r *event.SaleRefunded) { r.CommissionReversed = -1 }, fault.Invalid},
		"another sale's commission":    {func(r *event.SaleRefunded) { r.SaleID = other.Data.SaleID }, fault.Invalid},
		"a conversion's commission":    {func(r *event.SaleRefunded) { r.CommissionID, r.PartnerID = *c.Data.CommissionID, c.Data.PartnerID }, fault.Invalid},
		"another partner's commission": {func(r *event.SaleRefunded) { r.PartnerID = other.Data.PartnerID }, fault.Invalid},
		"a centavo more than is left":  {func(r *event.SaleRefunded) { r.CommissionReversed = 22_43 }, fault.Conflict},
		"a refund that was posted":     {func(r *event.SaleRefunded) { r.RefundID = posted.Data.RefundID }, fault.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := refundOf(sold, 1_00)
			row.change(&wrong.Data)
			if err := handle(f, f.reverse, refundOf(other, 1_00), wrong); fault.KindOf(err) != row.kind {
				t.Errorf("refused as %v", err)
			}
			same(t, before, f.state())
		})
	}
}

// Its two halves are transfers of different kinds, and the unique key alone would let a
// repeat make the one that the first time did not.
func TestARefundThatBecameDebtCannotBePostedAgainFromWhatIsAvailableLater(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partner := newID(), newID()
	sold := sale(tenant, f.now, soldBy(partner))
	f.mustEarn(sold)
	f.payOut(tenant, partner)
	refund := refundOf(sold, 10_00)
	f.mustReverse(refund)
	f.mustEarn(sale(tenant, f.now, soldBy(partner)))
	before := f.state()
	if err := handle(f, f.reverse, refund); fault.KindOf(err) != fault.Conflict {
		t.Errorf("refused as %v", err)
	}
	same(t, before, f.state())
}

func TestAReversalIsToldOnceWithTheTraceOfItsRefund(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	sold := sale(tenant, f.now)
	f.mustEarn(sold)
	first, nothing := refundOf(sold, 10_00), refundOf(sold, 0)
	f.mustReverse(nothing, first)
	first.Traceparent = ""
	f.exec(`delete from outbox`)
	last := refundOf(sold, 22_42)
	last.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f.mustReverse(last)
	told := only[event.CommissionReversed](f)
	d, s := told.Data, sold.Data
	if told.ID != event.IDOf("commission.reversed", last.Data.RefundID.String()) || told.TenantID != tenant || told.Traceparent != last.Traceparent ||
		d.CommissionID != s.CommissionID || d.PartnerID != s.PartnerID || *d.CampaignID != s.CampaignID || *d.SourceSaleID != s.SaleID ||
		d.RefundID != last.Data.RefundID || d.Amount != 22_42 || d.ReversedTotal != 32_42 || d.CommissionAmount != 32_42 ||
		d.Status != statusReversed || d.Reason != "sale_refunded" || !d.ReversedAt.Equal(f.now) {
		t.Errorf("told %+v", told)
	}
}

func TestARefundThatTakesNothingBackTellsNothing(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	sold := sale(newID(), f.now)
	f.mustEarn(sold)
	before := f.state()
	f.mustReverse(refundOf(sold, 0))
	same(t, before, f.state())
}
