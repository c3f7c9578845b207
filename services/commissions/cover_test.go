package commissions

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

// earns has the partner earn so much, each a second after the one before, and returns the
// sales.
func (w *teller) earns(partner uuid.UUID, amounts ...money.BRL) (sales []event.Event[event.SaleRecorded]) {
	w.t.Helper()
	for _, amount := range amounts {
		w.now = w.now.Add(time.Second)
		sales = append(sales, sale(w.tenant, w.now, soldBy(partner), worth(2*amount, 50_0000, amount)))
	}
	w.mustEarn(sales...)
	return sales
}

// statuses are those of the partner's commissions, each with its place, the oldest first.
func (w *teller) statuses(partner uuid.UUID) []string {
	w.t.Helper()
	return w.dump(fmt.Sprintf(`select row_number() over (order by created_at, commission_id), status from commissions where partner_id = '%s'`, partner))
}

// covered does the worker's work until there is none.
func (f *fixture) covered() {
	f.t.Helper()
	for {
		n, err := f.coverDue(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

func (w *teller) expects(partner uuid.UUID, statuses ...string) {
	w.t.Helper()
	var want []string
	for i, status := range statuses {
		want = append(want, fmt.Sprintf("(%d,%s)", i+1, status))
	}
	if got := w.statuses(partner); !slices.Equal(got, want) {
		w.t.Errorf("the commissions are %v, want %v", got, want)
	}
	w.balanced(w.tenant)
}

func (w *teller) pays(partner uuid.UUID, amount money.BRL) {
	w.t.Helper()
	w.mustStep(w.tenant, w.mustAsk(w.tenant, partner, amount), statusApproved, statusPaid)
}

func TestWhatIsPaidCoversCommissionsOldestFirst(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	partner := newID()
	w.earns(partner, 10_00, 20_00, 5_00)
	w.expects(partner, "available", "available", "available")
	w.pays(partner, 9_99)
	w.expects(partner, "available", "available", "available")
	w.pays(partner, 1)
	w.expects(partner, "paid", "available", "available")
	w.pays(partner, 19_00) // more than the third is worth, but the second comes first
	w.expects(partner, "paid", "available", "available")
	w.pays(partner, 6_00)
	w.expects(partner, "paid", "paid", "paid")
	w.earns(partner, 7_00)
	w.covered()
	w.expects(partner, "paid", "paid", "paid", "available")
}

func TestARefundOfAPaidCommissionLeavesItsMoneyToOthers(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	partner := newID()
	sales := w.earns(partner, 30_00)
	w.pays(partner, 30_00)
	w.expects(partner, "paid")
	w.mustReverse(refundOf(sales[0], 10_00))
	w.covered()
	w.expects(partner, "paid")
	w.mustReverse(refundOf(sales[0], 20_00))
	w.covered()
	w.expects(partner, "reversed")
	if got := w.books(w.tenant, partner); got != (balances{Paid: 30_00, Debt: 30_00}) {
		t.Errorf("%+v", got)
	}
	w.earns(partner, 12_00, 12_00, 12_00) // 30.00 of them are owed
	w.covered()
	w.expects(partner, "reversed", "paid", "paid", "available")
	w.pays(partner, 6_00)
	w.expects(partner, "reversed", "paid", "paid", "paid")
}

func TestARefundThatMakesACommissionSmallEnoughHasItCovered(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	partner := newID()
	sales := w.earns(partner, 30_00, 2_00)
	w.pays(partner, 8_00)
	w.mustReverse(refundOf(sales[0], 22_00))
	w.covered()
	w.expects(partner, "paid", "available")
	other := newID()
	sales = w.earns(other, 30_00, 2_00)
	w.pays(other, 8_00)
	w.mustReverse(refundOf(sales[0], 30_00))
	w.covered()
	w.expects(other, "reversed", "paid")
}

func TestACommissionThatIsReleasedIsCoveredInItsTurn(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	partner := newID()
	first := w.earns(partner, 30_00)
	w.pays(partner, 30_00)
	w.mustEarn(sale(w.tenant, w.now, soldBy(partner), heldFor(1)))
	w.mustReverse(refundOf(first[0], 30_00))
	w.covered()
	w.now = w.now.Add(2 * day)
	w.mustRelease()
	w.covered()
	if got := w.books(w.tenant, partner); got != (balances{Available: 2_42, Paid: 30_00}) {
		t.Errorf("%+v", got)
	}
	w.expects(partner, "reversed", "available") // 32.42, of which 30.00 are paid
	w.pays(partner, 2_42)
	w.expects(partner, "reversed", "paid")
}

// A payment that covers many commissions marks some of them at once, and leaves the rest
// to the worker, in steps of the same size.
func TestAPaymentOfManyCommissionsIsCoveredInBoundedSteps(t *testing.T) {
	t.Parallel()
	const rows = 2*coverMost + 500
	w := newTeller(t)
	partner := newID()
	sales := make([]event.Event[event.SaleRecorded], rows)
	for i := range sales {
		sales[i] = sale(w.tenant, w.now, soldBy(partner), worth(200, 50_0000, 100))
	}
	w.mustEarn(sales...)
	paidOf := func() int {
		return len(w.dump(fmt.Sprintf(`select 1 from commissions where status = 'paid' and partner_id = '%s'`, partner)))
	}
	w.pays(partner, (rows-1)*100)
	if n := paidOf(); n != coverMost {
		t.Errorf("%d commissions are paid at once", n)
	}
	w.balanced(w.tenant)
	if n, err := w.coverDue(t.Context()); n != 1 || err != nil || paidOf() != 2*coverMost {
		t.Errorf("%d books, %d commissions, %v", n, paidOf(), err)
	}
	w.covered()
	if n := paidOf(); n != rows-1 {
		t.Errorf("%d commissions are paid in the end, want %d", n, rows-1)
	}
	w.balanced(w.tenant)
}
