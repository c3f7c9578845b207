package commissions

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
)

func heldFor(days int) func(*event.SaleRecorded) {
	return func(s *event.SaleRecorded) { s.HoldDays = days }
}

func TestAHeldCommissionIsReleasedWhenItsTimeHasComeAndNotBefore(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partner := newID(), newID()
	sold := sale(tenant, f.now, soldBy(partner), heldFor(2))
	f.mustEarn(sold)
	if got := f.books(tenant, partner); got != (balances{Pending: 32_42}) {
		t.Errorf("earned: %+v", got)
	}
	f.now = sold.CreatedAt.Add(2*day - time.Microsecond)
	if n := f.mustRelease(); n != 0 {
		t.Errorf("%d are released a microsecond early", n)
	}
	f.now = sold.CreatedAt.Add(2 * day)
	if n := f.mustRelease(); n != 1 {
		t.Errorf("%d are released", n)
	}
	if n := f.mustRelease(); n != 0 {
		t.Errorf("%d are released again", n)
	}
	if got := f.books(tenant, partner); got != (balances{Available: 32_42}) {
		t.Errorf("released: %+v", got)
	}
	c, err := f.commission(t.Context(), tenant, sold.Data.CommissionID)
	if err != nil || c.Status != statusAvailable || !c.AvailableAt.Equal(sold.CreatedAt.Add(2*day)) {
		t.Errorf("commission %+v, %v", c, err)
	}
	f.balanced(tenant)
}

func TestAReleaseIsToldWithWhatRefundsHaveLeft(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	sold := sale(tenant, f.now, heldFor(1))
	f.mustEarn(sold)
	f.mustReverse(refundOf(sold, 2_42))
	f.now = f.now.Add(day)
	f.mustRelease()
	told := only[event.CommissionReleased](f)
	d, s := told.Data, sold.Data
	if told.ID != event.IDOf("commission.released", s.CommissionID.String()) || told.TenantID != tenant || !told.CreatedAt.Equal(f.now) ||
		d.CommissionID != s.CommissionID || d.PartnerID != s.PartnerID || *d.CampaignID != s.CampaignID || *d.SourceSaleID != s.SaleID ||
		d.Amount != 30_00 || d.CommissionAmount != 32_42 || d.Reason != "hold_ended" || !d.AvailableAt.Equal(f.now) || !d.ReleasedAt.Equal(f.now) {
		t.Errorf("told %+v", told)
	}
	if told.Traceparent == "" {
		t.Error("it is told without a trace")
	}
}

func TestWhatWasTakenBackWhileItWasHeldIsNotReleased(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partner := newID(), newID()
	sold := sale(tenant, f.now, soldBy(partner), heldFor(1))
	f.mustEarn(sold)
	f.mustReverse(refundOf(sold, 32_42))
	f.now = f.now.Add(day)
	f.mustRelease()
	if got := f.books(tenant, partner); got != (balances{}) {
		t.Errorf("balances %+v", got)
	}
	if c, err := f.commission(t.Context(), tenant, sold.Data.CommissionID); err != nil || c.Status != statusReversed {
		t.Errorf("commission %+v, %v", c, err)
	}
	if told := f.dump(`select name from outbox where name = 'commission.released'`); len(told) != 0 {
		t.Errorf("%d releases are told", len(told))
	}
	f.balanced(tenant)
}

func TestAHeldCommissionOfNothingIsReleasedToo(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	sold := sale(tenant, f.now, worth(1, 10_0000, 0), heldFor(1))
	f.mustEarn(sold)
	f.now = f.now.Add(day)
	if n := f.mustRelease(); n != 1 {
		t.Errorf("%d are released", n)
	}
	if c, err := f.commission(t.Context(), tenant, sold.Data.CommissionID); err != nil || c.Status != statusAvailable {
		t.Errorf("commission %+v, %v", c, err)
	}
	f.balanced(tenant)
}

func TestWhateverBecomesAvailablePaysBackDebtFirst(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	for name, enter := range map[string]func(tenant, partner uuid.UUID){
		"a sale": func(tenant, partner uuid.UUID) { f.mustEarn(sale(tenant, f.now, soldBy(partner))) },
		"a conversion": func(tenant, partner uuid.UUID) {
			c := conversion(tenant, f.now, 32_42)
			c.Data.PartnerID = partner
			if err := handle(f, f.earnFromConversions, c); err != nil {
				t.Error(err)
			}
		},
		"a bonus": func(tenant, partner uuid.UUID) {
			g := goalReached(tenant, f.now, 32_42)
			g.Data.PartnerID = partner
			if err := handle(f, f.earnFromGoals, g); err != nil {
				t.Error(err)
			}
		},
		"a release": func(tenant, partner uuid.UUID) {
			f.mustEarn(sale(tenant, f.now, soldBy(partner), heldFor(1)))
			if got := f.books(tenant, partner); got.Debt == 0 || got.Pending != 32_42 {
				t.Errorf("what is held back has paid: %+v", got)
			}
			f.now = f.now.Add(day)
			f.mustRelease()
		},
	} {
		for owed, want := range map[money.BRL]balances{
			20_00: {Available: 12_42}, 32_42: {}, 40_00: {Debt: 7_58},
		} {
			tenant, partner := newID(), newID()
			f.indebt(tenant, partner, owed)
			want.Paid = owed
			enter(tenant, partner)
			if got := f.books(tenant, partner); got != want {
				t.Errorf("%s after a debt of %s: %+v, want %+v", name, owed, got, want)
			}
			f.balanced(tenant)
		}
	}
}

// indebt has the partner owe that much: it was paid out, and then its sale refunded.
func (f *fixture) indebt(tenant, partner uuid.UUID, owed money.BRL) {
	f.t.Helper()
	sold := sale(tenant, f.now, soldBy(partner), worth(owed, 100_0000, owed))
	f.mustEarn(sold)
	f.payOut(tenant, partner)
	f.mustReverse(refundOf(sold, owed))
	if got := f.books(tenant, partner); got != (balances{Paid: owed, Debt: owed}) {
		f.t.Fatalf("the balances are %+v", got)
	}
}

func TestReplicasReleaseEachCommissionOnce(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partners := newID(), []uuid.UUID{newID(), newID(), newID()}
	const sold = 2000
	for chunk := range slices.Chunk(make([]int, sold), 500) {
		var sales []event.Event[event.SaleRecorded]
		for i := range chunk {
			sales = append(sales, sale(tenant, f.now, soldBy(partners[i%len(partners)]), heldFor(1)))
		}
		f.mustEarn(sales...)
	}
	f.now = f.now.Add(day)
	replicas := []*fixture{f, f.replica(), f.replica(), f.replica()}
	var group sync.WaitGroup
	ended := make([]int, len(replicas))
	for i, replica := range replicas {
		group.Go(func() {
			for {
				batch, err := replica.release(t.Context(), held{}, releaseBatch)
				if err != nil {
					t.Error(err)
				}
				if len(batch) == 0 {
					return
				}
				ended[i] += len(batch)
			}
		})
	}
	group.Wait()
	total := 0
	for _, n := range ended {
		total += n
	}
	if total != sold {
		t.Errorf("the replicas have ended %v holds", ended)
	}
	for what, query := range map[string]string{
		"commissions": `select 1 from commissions where status = 'available'`,
		"transfers":   `select 1 from transfers where kind = 'release'`,
		"events":      `select distinct event_id from outbox where name = 'commission.released'`,
	} {
		if n := len(f.dump(query)); n != sold {
			t.Errorf("%d %s", n, what)
		}
	}
	f.balanced(tenant)
}

// Somebody has taken away by hand what is pending of two partners.
func TestACommissionThatCannotBeReleasedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	core, logs := observer.New(zap.ErrorLevel)
	f.deps.Log = zap.New(core)
	f.wire()
	tenant := newID()
	var partners []uuid.UUID
	var sales []event.Event[event.SaleRecorded]
	for i := range 40 {
		partners = append(partners, newID())
		sales = append(sales, sale(tenant, f.now.Add(time.Duration(i)*time.Millisecond), soldBy(partners[i]), heldFor(1)))
	}
	f.mustEarn(sales...)
	cooked := []int{0, 17}
	for _, i := range cooked {
		f.exec(`update accounts set pending_centavos = 0 where partner_id = $1`, partners[i])
	}
	f.now = f.now.Add(2 * day)
	f.releaseDue(t.Context())
	for i, partner := range partners {
		want := balances{Available: 32_42}
		if slices.Contains(cooked, i) {
			want = balances{}
		}
		if got := f.books(tenant, partner); got != want {
			t.Errorf("partner %d has %+v, want %+v", i, got, want)
		}
	}
	if held := f.dump(`select * from holds`); len(held) != 2 || logs.FilterMessage("cannot release commission").Len() != 2 {
		t.Errorf("%d are held, and the log has %v", len(held), logs.All())
	}
	f.exec(`update accounts set pending_centavos = 3242 where pending_centavos = 0 and available_centavos = 0`)
	f.releaseDue(t.Context())
	if held := f.dump(`select * from holds`); len(held) != 0 {
		t.Errorf("%d are held once the books are mended", len(held))
	}
	f.balanced(tenant)
}

func TestTheRunningServiceReleasesByItself(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partner := newID(), newID()
	f.mustEarn(sale(tenant, f.now, soldBy(partner), heldFor(1)))
	f.now = f.now.Add(day)
	f.run()
	testkit.Eventually(t, soon, "the commission is available", func() bool { return f.books(tenant, partner).Available == 32_42 })
}

func TestFiveHundredReleasesTakeFourRoundTrips(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	sent := f.counted()
	f.wire()
	var sales []event.Event[event.SaleRecorded]
	for range releaseBatch {
		sales = append(sales, sale(newID(), f.now, heldFor(1)))
	}
	f.mustEarn(sales...)
	f.now = f.now.Add(day)
	sent.forget()
	if n := f.mustRelease(); n != releaseBatch {
		t.Errorf("%d are released", n)
	}
	sent.expect(t, 9, 4) // begin, holds; books begun and locked; commissions; transfers, books kept, the outbox, commit
}
