package sales

import (
	"fmt"
	"testing"
)

func TestTheFirstReportOfASaleRecordsIt(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	answer := f.post("/api/v1/sales", f.sale("order-1")).want(201)
	if answer.text("idempotent") != "false" || answer.text("commission_amount_brl") != "5.03" {
		t.Errorf("answered %s", answer.raw)
	}
	shown := f.get("/api/v1/sales/" + answer.text("sale_id")).want(200)
	for member, want := range map[string]string{
		"external_ref": "order-1", "amount_brl": "100.50", "commission_pct": "5", "commission_amount_brl": "5.03",
		"commission_id": answer.text("commission_id"), "partner_id": f.partner, "campaign_id": f.campaign, "plan_id": f.plan,
		"refunded_total_brl": "0.00", "referral_code": f.code,
	} {
		if got := shown.text(member); got != want {
			t.Errorf("%s is shown as %s, want %s", member, got, want)
		}
	}
	if n := f.rows("outbox"); n != 2 { // partner.created and sale.recorded
		t.Errorf("%d events in the outbox, want 2", n)
	}
}

func TestARepeatAnswersTheFirstResult(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	first := f.post("/api/v1/sales", f.sale("order-1")).want(201)
	again := f.post("/api/v1/sales", f.sale("order-1")).want(200)
	for _, member := range []string{"sale_id", "commission_id", "commission_amount_brl"} {
		if first.text(member) != again.text(member) {
			t.Errorf("%s: first %s, then %s", member, first.text(member), again.text(member))
		}
	}
	if again.text("idempotent") != "true" {
		t.Errorf("answered %s", again.raw)
	}
	if got := again.Header.Get("Idempotency-Mismatch"); got != "" {
		t.Errorf("the same report is said to differ in %s", got)
	}
	if n := f.rows("sales"); n != 1 {
		t.Errorf("%d sales are recorded, want 1", n)
	}
}

func TestARepeatThatSaysSomethingElseIsToldWhat(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.post("/api/v1/sales", f.sale("order-1", "sold_at", `"2026-03-01T12:00:00-03:00"`, "notes", `"a"`)).want(201)
	for name, row := range map[string]struct {
		body string
		want string
	}{
		"the same in other spellings":  {f.sale("order-1", "amount_brl", "1005e-1", "sold_at", `"2026-03-01T15:00:00.000Z"`, "notes", `"a"`), ""},
		"no sold_at":                   {f.sale("order-1", "notes", `"a"`), ""},
		"another amount":               {f.sale("order-1", "amount_brl", "7", "notes", `"a"`), "amount_brl"},
		"another amount and no notes":  {f.sale("order-1", "amount_brl", "7"), "amount_brl, notes"},
		"another moment":               {f.sale("order-1", "sold_at", `"2026-03-01T12:00:00Z"`, "notes", `"a"`), "sold_at"},
		"a partner nobody knows":       {f.sale("order-1", "referral_code", `"nobody"`, "notes", `"a"`), "referral_code"},
		"a customer":                   {f.sale("order-1", "customer_ref", `"c"`, "notes", `"a"`), "customer_ref"},
		"a campaign that is not there": {f.sale("order-1", "campaign_id", quoted(f.plan), "notes", `"a"`), "campaign_id"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := f.in(t).post("/api/v1/sales", row.body).want(200)
			if got := answer.Header.Get("Idempotency-Mismatch"); got != row.want {
				t.Errorf("Idempotency-Mismatch is %q, want %q", got, row.want)
			}
			if answer.text("commission_amount_brl") != "5.03" {
				t.Errorf("answered %s, not the first result", answer.raw)
			}
		})
	}
}

func TestCommissionsAreRoundedHalfAwayFromZero(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for i, row := range []struct{ amount, pct, want string }{
		{"100.50", "5", "5.03"}, {"0.95", "30", "0.29"}, {"0.05", "10", "0.01"}, {"2.00", "28.75", "0.58"}, {"0.01", "10", "0.00"},
	} {
		plan := f.post("/api/v1/campaigns/"+f.campaign+"/plans", `{"name":"p","commission_pct":`+row.pct+`}`).want(201).text("plan_id")
		answer := f.post("/api/v1/sales", f.sale(fmt.Sprint("r", i), "plan_id", quoted(plan), "amount_brl", row.amount)).want(201)
		if got := answer.text("commission_amount_brl"); got != row.want {
			t.Errorf("%s × %s %% is %s, want %s", row.amount, row.pct, got, row.want)
		}
	}
}
