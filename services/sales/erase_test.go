package sales

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// erase forgets a customer of the fixture's tenant.
func (f *fixture) erase(ref string) erasure {
	f.t.Helper()
	done, err := f.service.eraseCustomer(f.t.Context(), uuid.MustParse(f.tenant), ref)
	if err != nil {
		f.t.Fatal(err)
	}
	return done
}

// occurrences tells how often a text occurs in what is recorded.
func (f *fixture) occurrences(text string) (times int) {
	f.t.Helper()
	for _, rows := range f.content() {
		times += strings.Count(rows, text)
	}
	return times
}

func TestAnErasedCustomerIsForgottenAndNothingElseIs(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	maria := []string{"customer_ref", `"maria-51"`, "notes", `"for maria-51, at her door"`}
	joana := []string{"customer_ref", `"joana-7"`, "notes", `"for joana-7"`}
	sale, refunds := f.sell("order-1", maria...)
	f.sell("order-2", "customer_ref", `"maria-51"`)
	kept, keptRefunds := f.sell("order-3", joana...)
	f.sell("order-4", "notes", `"nobody in particular"`)
	f.post(refunds, refundOf("return-1", "10", "reason", `"maria-51 is away"`)).want(201)
	f.post(keptRefunds, refundOf("return-2", "10", "reason", `"joana-7 is away"`)).want(201)
	f.post("/api/v1/conversions", f.conversion("lead-1", maria...)).want(201)
	f.post("/api/v1/conversions", f.conversion("lead-2", joana...)).want(201)
	other := f.stranger()
	other.sell("order-1", maria...)
	othersSaid := f.occurrences("maria-51")
	before := f.get("/api/v1/sales/" + sale).want(200).object()

	if done := f.erase("maria-51"); done != (erasure{sales: 2, conversions: 1, refunds: 1}) {
		t.Errorf("erased of %s", done)
	}
	if left := f.occurrences("maria-51"); othersSaid != 8 || left != 2 {
		t.Errorf("maria-51 was told %d times and is %d times, want 8 and the other tenant's 2", othersSaid, left)
	}
	if left := f.occurrences("joana-7"); left != 5 {
		t.Errorf("joana-7 is told %d times, want 5", left)
	}
	f.get("/api/v1/sales/"+kept).want(200).shows("customer_ref", "joana-7", "notes", "for joana-7")
	after := f.get("/api/v1/sales/" + sale).want(200).object()
	for member, was := range before {
		switch now := after[member]; {
		case member == "customer_ref" || member == "notes":
			if now != nil {
				t.Errorf("%s is still %v", member, now)
			}
		case fmt.Sprint(now) != fmt.Sprint(was):
			t.Errorf("%s was %v and is %v", member, was, now)
		}
	}
	f.recordsNothing(func() {
		if done := f.erase("maria-51"); done != (erasure{}) {
			t.Errorf("a second time erases of %s", done)
		}
		f.erase("maria")
	})
}

func TestARepeatAfterTheErasureIsAnsweredAsBefore(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	sale := f.sale("order-1", "customer_ref", `"maria-51"`, "notes", `"at her door"`)
	first := f.post("/api/v1/sales", sale).want(201)
	refunds := "/api/v1/sales/" + first.text("sale_id") + "/refunds"
	conversion := f.conversion("lead-1", "customer_ref", `"maria-51"`, "notes", `"at her door"`)
	lead := f.post("/api/v1/conversions", conversion).want(201)
	back := f.post(refunds, refundOf("return-1", "10", "reason", `"she is away"`)).want(201)
	f.erase("maria-51")

	f.recordsNothing(func() {
		f.post("/api/v1/sales", sale).want(200).mismatches("").shows("idempotent", "true", "sale_id", first.text("sale_id"))
		f.post("/api/v1/sales", f.sale("order-1", "amount_brl", "1", "customer_ref", `"joana-7"`)).want(200).mismatches("amount_brl")
		f.post("/api/v1/conversions", conversion).want(200).mismatches("").shows("conversion_id", lead.text("conversion_id"))
		f.post(refunds, refundOf("return-1", "10", "reason", `"she is away"`)).want(200).mismatches("").shows("refund_id", back.text("refund_id"))
	})
	// What is said of her sale later could never be found again.
	late := refundOf("return-2", "20", "reason", `"maria is still away"`)
	f.post(refunds, late).want(201)
	f.post(refunds, late).want(200).mismatches("")
	if said := f.occurrences("still away"); said != 0 {
		t.Errorf("the reason of a later refund is kept %d times", said)
	}
}

func TestAnErasureGoesThroughTheSalesInBatches(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for i := range 7 {
		f.sell(fmt.Sprintf("order-%d", i), "customer_ref", []string{`"maria-51"`, `"joana-7"`}[i%2])
	}
	e := eraser{uuid.MustParse(f.tenant), "maria-51", event.Instant(f.deps.Now()), 3}
	var after uuid.UUID
	var erased []int64
	for more := true; more; {
		err := postgres.Transact(t.Context(), f.deps.Pool, func(tx *postgres.Tx) (err error) {
			var done erasure
			done, after, more, err = e.sales(t.Context(), tx, after)
			erased = append(erased, done.sales)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(erased) != "[2 1 1]" {
		t.Errorf("the batches erased %v", erased)
	}
	if left := f.occurrences("maria-51") + 10*f.occurrences("joana-7"); left != 30 {
		t.Errorf("left are %d", left)
	}
}

func TestAnErasureIsAskedForRightly(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for _, args := range [][]string{
		{}, {"--tenant", f.tenant}, {"--ref", "x"}, {"--tenant", "loja", "--ref", "x"}, {"--tenant", f.tenant, "--ref", ""},
		{"--tenant", f.tenant, "--ref", "x", "y"}, {"--tenant", uuid.NewString(), "--ref", "x"}, {"--customer", "x"},
	} {
		if err := runEraseCommand(context.Background(), f.deps, args); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("customer erase %q: %v", args, err)
		}
	}
}
