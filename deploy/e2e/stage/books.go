package stage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/testkit"
)

// Books compares what was answered with what every service has made of it.
type Books struct {
	*Platform
	*Shop
}

// Settle waits until everything has followed from the sales, and then compares every
// id and every centavo. Receipts are all 201s and 200s that callers got.
func (b Books) Settle(t testing.TB, receipts map[string]Receipt) {
	t.Helper()
	b.compareSales(t, receipts)
	sales := len(receipts)
	b.Await(t, "commissions", "every sale has its commission", sales, "select count(*)::text from commissions where tenant_id = $1")
	b.Await(t, "goals", "the goal has counted every sale", sales, "select coalesce(sum(progress), 0)::text from totals where tenant_id = $1")
	reached := 0
	if sales >= GoalTarget {
		reached = 1
	}
	b.Await(t, "webhooks", "every event has reached the webhooks service", 2*sales+reached,
		"select count(*)::text from events where tenant_id = $1 and name in ('sale.recorded', 'commission.available', 'goal.reached')")
	b.Await(t, "webhooks", "no delivery is under way", 0,
		"select count(*)::text from pending where tenant_id = $1")
	b.CompareCommissions(t, receipts)
	b.Verify(t)
	if got := b.Progress(t); got != sales {
		t.Errorf("the goal shows %d sales, want %d", got, sales)
	}
	b.Receiver.AssertOnce(t)
}

// Await waits until a count of the tenant's rows is what it must become.
func (b Books) Await(t testing.TB, service, what string, want int, count string) {
	t.Helper()
	got := ""
	defer func() {
		if got != fmt.Sprint(want) {
			t.Logf("%s: %s so far, want %d", what, got, want)
		}
	}()
	testkit.Eventually(t, Patience, what, func() bool {
		got = b.Query(t, service, count, b.TenantID)[0]
		return got == fmt.Sprint(want)
	})
}

// compareSales fails unless the recorded sales are those that were acknowledged.
func (b Books) compareSales(t testing.TB, receipts map[string]Receipt) {
	t.Helper()
	var want []string
	for ref, r := range receipts {
		want = append(want, strings.Join([]string{ref, r.SaleID, r.CommissionID, r.CommissionAmount.String()}, " "))
	}
	SameRows(t, "sales", want, b.Query(t, "sales", `
		select concat_ws(' ', external_ref, sale_id, commission_id, round(commission_centavos / 100.0, 2)) from sales where tenant_id = $1`, b.TenantID))
}

// CompareCommissions fails unless there is exactly one commission for each receipt,
// with its id, its sale and its amount.
func (b Books) CompareCommissions(t testing.TB, receipts map[string]Receipt) {
	t.Helper()
	var want []string
	for _, r := range receipts {
		want = append(want, strings.Join([]string{r.SaleID, r.CommissionID, r.CommissionAmount.String()}, " "))
	}
	SameRows(t, "commissions", want, b.Query(t, "commissions", `
		select concat_ws(' ', source_sale_id, commission_id, round(commission_amount_centavos / 100.0, 2)) from commissions where tenant_id = $1`, b.TenantID))
}

// Verify fails unless the ledger balances, and owes what the commissions say.
func (b Books) Verify(t testing.TB) {
	t.Helper()
	var found struct {
		OK     bool
		Checks []struct{ Name, Detail string }
	}
	b.Must(t, 200, "GET", "/api/v1/ledger/verify", nil).Into(t, &found)
	if !found.OK || len(found.Checks) == 0 {
		t.Errorf("the books do not balance: %+v", found)
	}
	SameRows(t, "balances",
		b.Query(t, "commissions", `
			select concat_ws(' ', partner_id, sum(commission_amount_centavos - reversed_centavos)) from commissions where tenant_id = $1 group by partner_id`, b.TenantID),
		b.Query(t, "commissions", `
			select concat_ws(' ', partner_id, pending_centavos + available_centavos + reserved_centavos + paid_centavos - debt_centavos) from accounts where tenant_id = $1`, b.TenantID))
}

// AllDelivered fails unless the receiver has every event of the tenant exactly once.
func (b Books) AllDelivered(t testing.TB) {
	t.Helper()
	if other := b.States(t); len(other) != 1 || other["delivered"] == 0 {
		t.Errorf("deliveries are %v, want all delivered", other)
	}
	SameRows(t, "webhooks received", b.EventIDs(t, "true"), slices.Collect(maps.Keys(b.Receiver.Counts())))
}

// States counts the tenant's deliveries by what became of them.
func (b Books) States(t testing.TB) map[string]int {
	t.Helper()
	states := map[string]int{}
	for _, state := range b.Query(t, "webhooks", "select state from deliveries where tenant_id = $1 union all select 'pending' from pending where tenant_id = $1", b.TenantID) {
		states[state]++
	}
	return states
}

// EventIDs are the ids, as the wire shows them, of the events of the tenant's
// deliveries that the condition selects.
func (b Books) EventIDs(t testing.TB, condition string) []string {
	t.Helper()
	return b.Query(t, "webhooks", "select 'evt_' || replace(event_id::text, '-', '') from deliveries where tenant_id = $1 and "+condition, b.TenantID)
}

// SameRows fails where two sets of rows differ, in whatever order they are.
func SameRows(t testing.TB, what string, want, got []string) {
	t.Helper()
	want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
	if slices.Equal(want, got) {
		return
	}
	missing, surplus := without(want, got), without(got, want)
	t.Errorf("%s: %d rows, want %d; missing %d %.300q, surplus %d %.300q", what, len(got), len(want),
		len(missing), first(missing, 3), len(surplus), first(surplus, 3))
}

// without returns the rows of a that b lacks; a row that is there twice must be in b twice.
func without(a, b []string) (rest []string) {
	count := map[string]int{}
	for _, row := range b {
		count[row]++
	}
	for _, row := range a {
		if count[row]--; count[row] < 0 {
			rest = append(rest, row)
		}
	}
	return rest
}

func first(rows []string, n int) []string { return rows[:min(n, len(rows))] }
