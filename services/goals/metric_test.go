package goals_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
)

const since2026 = `"starts_at":"2026-01-01T00:00:00Z"`

// standing is the progress of the only partner of a goal; "" if there is none.
func (w *world) standing(t tenant, goalID string) string {
	w.t.Helper()
	fields := strings.Fields(w.board(t, goalID, ""))
	if len(fields) == 0 {
		return ""
	}
	return fields[1]
}

func TestEachMetricCountsWhatItIsNamedAfter(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana, at := uuid.New(), w.now()
	goals := map[string]string{}
	for _, metric := range []string{"sales_count", "sales_amount", "commission_amount", "conversions_count"} {
		goals[metric] = w.goal(shop, fmt.Sprintf(`"metric":%q,"target":1000,`+since2026, metric))
	}
	first, second := sale(shop, ana, at), sale(shop, ana, at)
	for _, step := range []struct {
		what                                string
		happened                            any
		sales, amount, commission, converts string
	}{
		{"a sale of 10.00 that earned 1.00", first, "1", "10", "1", ""},
		{"another", second, "2", "20", "2", ""},
		{"a part of the first is refunded", refund(first, 250, 0), "2", "17.5", "1.75", ""},
		{"a lead that earned 3.00", conversion(shop, ana, at, 300), "2", "17.5", "4.75", "1"},
		{"a lead that earned nothing", conversion(shop, ana, at, 0), "2", "17.5", "4.75", "2"},
		{"the rest of the first is refunded", refund(first, 750, 250), "1", "10", "4", "2"},
		{"all of the second is refunded", refund(second, 1000, 0), "0", "0", "3", "2"},
	} {
		w.sell(step.happened)
		for metric, want := range map[string]string{
			"sales_count": step.sales, "sales_amount": step.amount, "commission_amount": step.commission, "conversions_count": step.converts,
		} {
			if got := w.standing(shop, goals[metric]); got != want {
				t.Errorf("%s: %s is %s, want %s", step.what, metric, got, want)
			}
		}
	}
	w.assertTotals()
}

func TestARefundTakesBackWhereItsSaleCounted(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana := uuid.New()
	monthly := w.goal(shop, `"metric":"sales_amount","target":100,"period":"month","timezone":"UTC",`+since2026)
	sold := sale(shop, ana, at("2026-03-31T23:59:59Z")) // and refunded today
	w.sell(refund(sold, 400, 0))                        // which is heard of first

	if got, want := w.board(shop, monthly, "?period_start=2026-03-01T00:00:00Z"), ana.String()+" -4 -4% false #1"; got != want {
		t.Errorf("ahead of its sale, the refund makes March %q, want %q", got, want)
	}
	w.sell(sold)
	if got, want := w.board(shop, monthly, "?period_start=2026-03-01T00:00:00Z"), ana.String()+" 6 6% false #1"; got != want {
		t.Errorf("March is %q, want %q", got, want)
	}
	if got := w.board(shop, monthly, ""); got != "" {
		t.Errorf("the present month is %q", got)
	}
}

func TestAGoalThatWasReachedStaysReachedWhenSalesAreRefunded(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	ana := uuid.New()
	id := w.goal(shop, `"target":1,`+since2026)
	first, second := sale(shop, ana, w.now()), sale(shop, ana, w.now())
	w.sell(first)
	w.sell(refund(first, 1000, 0))
	if got, want := w.board(shop, id, ""), ana.String()+" 0 0% true #1"; got != want {
		t.Errorf("the leaderboard is %q, want %q", got, want)
	}
	w.sell(second) // comes up to the target again
	if told := w.reached(); len(told) != 1 {
		t.Errorf("told %d times, want once", len(told))
	}
}

func TestAnImpossibleRefundOrConversionIsParked(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	ana := uuid.New()
	sold := sale(shop, ana, w.now())
	lead := func(change func(*event.ConversionRecorded)) event.Event[event.ConversionRecorded] {
		e := conversion(shop, ana, w.now(), 100)
		change(&e.Data)
		return e
	}
	back := func(change func(*event.SaleRefunded)) event.Event[event.SaleRefunded] {
		e := refund(sold, 500, 0)
		change(&e.Data)
		return e
	}
	wrong := []any{
		back(func(r *event.SaleRefunded) { r.Amount = 0 }),
		back(func(r *event.SaleRefunded) { r.CommissionReversed = -1 }),
		back(func(r *event.SaleRefunded) { r.RefundedTotal = 499 }),
		back(func(r *event.SaleRefunded) { r.RefundedTotal = 1001 }),
		back(func(r *event.SaleRefunded) { r.SoldAt = at("1999-12-31T23:59:59Z") }),
		back(func(r *event.SaleRefunded) { r.RefundID = uuid.Nil }),
		lead(func(c *event.ConversionRecorded) { *c.CommissionAmount = -1 }),
		lead(func(c *event.ConversionRecorded) { c.OccurredAt = at("9999-01-01T00:00:00Z") }),
		lead(func(c *event.ConversionRecorded) { c.PartnerID = uuid.Nil }),
	}
	w.publish(w.seal(append(wrong, refund(sold, 500, 0), conversion(shop, ana, w.now(), 100), sold)...))
	w.run()
	w.drained()

	parked, err := bus.ListParked(t.Context(), w.pool, 20)
	if err != nil {
		t.Fatal(err)
	}
	if len(parked) != len(wrong) {
		t.Errorf("%d events are parked, want %d: %+v", len(parked), len(wrong), parked)
	}
	if facts := w.rows("select kind from facts order by kind"); fmt.Sprint(facts) != "[conversion refund sale]" {
		t.Errorf("the facts are %v", facts)
	}
}
