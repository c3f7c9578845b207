package sales

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
)

// mismatches fails the test unless the answer says that these members differ.
func (r *response) mismatches(names string) *response {
	r.t.Helper()
	if got := r.Header.Get("Idempotency-Mismatch"); got != names {
		r.t.Errorf("%s: Idempotency-Mismatch is %q, want %q", r.about, got, names)
	}
	return r
}

// inReais writes centavos as a number of reais.
func inReais(centavos int64) string { return money.BRL(centavos).String() }

func centavosOf(t *testing.T, reais string) int64 {
	t.Helper()
	amount, err := money.ParseBRL(reais)
	if err != nil {
		t.Fatal(err)
	}
	return amount.Centavos()
}

func TestARefundIsAnsweredWithWhatItTakesBackAndShownWithItsSale(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	sale, refunds := f.sell("order-1") // 100.50 at 5 %: a commission of 5.03
	first := f.post(refunds, refundOf("return-1", "50.25", "reason", `"came back ☂"`)).want(201).
		shows("sale_id", sale, "amount_brl", "50.25", "commission_reversed_brl", "2.52", "idempotent", "false")
	if n := len(first.object()); n != 5 {
		t.Errorf("answered %s", first.raw)
	}
	f.get("/api/v1/sales/"+sale).want(200).shows("refunded_total_brl", "50.25", "amount_brl", "100.50", "commission_amount_brl", "5.03")
	second := f.post(refunds, refundOf("return-2", "50.250", "reason", "null")).want(201).shows("amount_brl", "50.25", "commission_reversed_brl", "2.51")
	f.get("/api/v1/sales/"+sale).want(200).shows("refunded_total_brl", "100.50")

	rows := f.get(refunds).want(200).object()["data"].([]any)
	if len(rows) != 2 {
		t.Fatalf("listed are %v", rows)
	}
	for i, want := range []map[string]string{
		{"refund_id": second.text("refund_id"), "external_ref": "return-2", "commission_reversed_brl": "2.51", "reason": "<nil>"},
		{"refund_id": first.text("refund_id"), "external_ref": "return-1", "commission_reversed_brl": "2.52", "reason": "came back ☂"},
	} {
		want["sale_id"], want["amount_brl"] = sale, "50.25"
		row := rows[i].(map[string]any)
		for member, text := range want {
			if got := fmt.Sprint(row[member]); got != text {
				t.Errorf("%s is listed as %s, want %s", member, got, text)
			}
		}
		if len(row) != 7 || row["created_at"] == nil {
			t.Errorf("listed as %v", row)
		}
	}
}

func TestTheRefundsOfASaleNeverExceedIt(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	sale, refunds := f.sell("order-1")
	tooMuch := func(amount, left string) {
		t.Helper()
		f.recordsNothing(func() {
			f.post(refunds, refundOf("return of "+amount, amount)).refused(422, "rule_violated").
				shows("message", "the refunds of a sale cannot exceed its amount, of which "+left+" is left")
		})
	}
	tooMuch("100.51", "100.50")
	tooMuch("999999999.99", "100.50")
	f.post(refunds, refundOf("return-1", "100.49")).want(201).shows("commission_reversed_brl", "5.03") // 5.0295
	tooMuch("0.02", "0.01")
	f.post(refunds, refundOf("return of 0.02", "0.01")).want(201).shows("commission_reversed_brl", "0.00") // the reference was not used up
	tooMuch("0.01", "0.00")
	f.get("/api/v1/sales/"+sale).want(200).shows("refunded_total_brl", "100.50")

	largest, refunds := f.sell("largest", "amount_brl", "999999999.99")
	f.post(refunds, refundOf("all of it", "999999999.99")).want(201).shows("commission_reversed_brl", "50000000.00")
	f.get("/api/v1/sales/"+largest).want(200).shows("refunded_total_brl", "999999999.99")
}

func TestARepeatOfARefundAnswersTheFirstResultAndSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	sale, refunds := f.sell("order-1")
	_, others := f.sell("order-2")
	nobodys := "/api/v1/sales/" + uuid.NewString() + "/refunds"
	first := f.post(refunds, refundOf("return-1", "100.50", "reason", `"a"`)).want(201)
	f.recordsNothing(func() {
		for name, row := range map[string]struct{ path, body, differ string }{
			"the same":                       {refunds, refundOf("return-1", "100.50", "reason", `"a"`), ""},
			"the same in another spelling":   {refunds, refundOf("return-1", "1005e-1", "reason", `"\u0061"`), ""},
			"another amount":                 {refunds, refundOf("return-1", "1", "reason", `"a"`), "amount_brl"},
			"more than the sale":             {refunds, refundOf("return-1", "100.51", "reason", `"a"`), "amount_brl"},
			"no reason":                      {refunds, refundOf("return-1", "100.50"), "reason"},
			"another reason":                 {refunds, refundOf("return-1", "100.50", "reason", `"A"`), "reason"},
			"another sale":                   {others, refundOf("return-1", "100.50", "reason", `"a"`), "sale_id"},
			"a sale that there is not":       {nobodys, refundOf("return-1", "100.50", "reason", `"a"`), "sale_id"},
			"everything else":                {nobodys, refundOf("return-1", "7", "reason", `"b"`), "amount_brl, reason, sale_id"},
			"the sale's id in capitals, too": {"/api/v1/sales/" + strings.ToUpper(sale) + "/refunds", refundOf("return-1", "100.50", "reason", `"a"`), ""},
		} {
			t.Run(name, func(t *testing.T) {
				f.in(t).post(row.path, row.body).want(200).mismatches(row.differ).shows("idempotent", "true",
					"refund_id", first.text("refund_id"), "sale_id", sale, "amount_brl", "100.50", "commission_reversed_brl", "5.03")
			})
		}
		f.post(refunds, refundOf("return-1", "10.555")).invalid("/amount_brl too_many_decimals")
		f.post(nobodys, refundOf("return-1", "0")).invalid("/amount_brl too_small")
		f.post(nobodys, refundOf("return-2", "1")).refused(404, "not_found")
		f.post(nobodys, refundOf("return-2", "999999999.99")).refused(404, "not_found")
	})
	f.post(others, refundOf("return-2", "1")).want(201) // no refused call has used it up
	f.patch("/api/v1/partners/"+f.partner, `{"status":"banned"}`).want(200)
	f.patch("/api/v1/campaigns/"+f.campaign, `{"status":"ended"}`).want(200)
	f.post(refunds, refundOf("return-1", "100.50", "reason", `"a"`)).want(200).mismatches("")
	f.post(others, refundOf("return-3", "1")).want(201) // who may no longer sell still owes what was sold
}

func TestAReferenceMayNameASaleAndARefundOfEveryTenant(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	other := f.stranger()
	seen := map[string]bool{}
	for _, f := range []*fixture{f, other} {
		_, refunds := f.sell("one name")
		id := f.post(refunds, refundOf("one name", "1")).want(201).text("refund_id")
		if seen[id] {
			t.Error("two tenants have one refund")
		}
		seen[id] = true
	}
}

func TestTheRefundsOfAnotherTenantsSaleReadLikeNobodys(t *testing.T) {
	t.Parallel()
	owner := start(t, nowhere)
	stranger := owner.stranger()
	_, theirs := owner.sell("order-1")
	owner.post(theirs, refundOf("return-1", "1")).want(201)
	nobodys := "/api/v1/sales/" + uuid.NewString() + "/refunds"
	owner.recordsNothing(func() {
		for _, body := range []string{refundOf("return-1", "1"), refundOf("return-2", "1"), refundOf("return-2", "999999999.99")} {
			a, b := stranger.post(theirs, body).refused(404, "not_found"), stranger.post(nobodys, body).refused(404, "not_found")
			if a.anonymous() != b.anonymous() {
				t.Errorf("of another tenant %s, of nobody %s", a.anonymous(), b.anonymous())
			}
		}
		a, b := stranger.get(theirs).refused(404, "not_found"), stranger.get(nobodys).refused(404, "not_found")
		if a.anonymous() != b.anonymous() {
			t.Errorf("of another tenant %s, of nobody %s", a.anonymous(), b.anonymous())
		}
	})
}

func TestRandomPartsOfASaleTakeBackExactlyItsCommission(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		plan := f.post("/api/v1/campaigns/"+f.campaign+"/plans", fmt.Sprintf(`{"name":"p","commission_pct":%d.%04d}`, random.IntN(100), random.IntN(10_000))).want(201).text("plan_id")
		left := 1 + random.Int64N(1_000_000)
		sale, refunds := f.sell(fmt.Sprint("order-", i), "plan_id", quoted(plan), "amount_brl", inReais(left))
		want := centavosOf(t, f.get("/api/v1/sales/"+sale).want(200).text("commission_amount_brl"))
		for n := 0; left > 0; n++ {
			part := left
			if n < 12 {
				part = 1 + random.Int64N(left)
			}
			left -= part
			want -= centavosOf(t, f.post(refunds, refundOf(fmt.Sprint(i, "/", n), inReais(part))).want(201).text("commission_reversed_brl"))
		}
		if want != 0 {
			t.Errorf("sale %d: %d centavos of the commission were not taken back", i, want)
		}
	}
	if n := f.rows("sales where refunded_centavos <> (select sum(amount_centavos) from refunds r where r.sale_id = sales.sale_id)"); n != 0 {
		t.Errorf("%d sales say that something else was refunded than their refunds do", n)
	}
}

// PostgreSQL shows a refund whose commit waits for the standby. A repeat that names a sale
// which there is not locks no row, and has to wait as well.
func TestARepeatedRefundOfNoSaleAcknowledgesNothingThatTheStandbyLacks(t *testing.T) {
	t.Parallel()
	f, standby := startWithStandby(t)
	_, refunds := f.sell("order-1")
	f.post(refunds, refundOf("return-1", "1")).want(201)
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	repeated := make(chan int, 1)
	go func() {
		answer, err := f.try("POST", "/api/v1/sales/"+uuid.NewString()+"/refunds", strings.NewReader(refundOf("return-1", "1")), "Authorization", "Bearer "+f.key)
		if err != nil {
			t.Error(err)
			close(repeated)
			return
		}
		repeated <- answer.StatusCode
	}()
	testkit.Eventually(t, soon, "the repeat waits for the standby", func() bool {
		return f.rows("pg_stat_activity where wait_event = 'SyncRep' and query not like '%api_keys%'") == 1
	})
	if err := standby.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := <-repeated; status != 200 && status != 503 {
		t.Errorf("answered %d", status)
	}
}
