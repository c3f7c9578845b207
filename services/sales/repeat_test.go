package sales

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestASaleByNobodyWhoSellsHereIsRefusedInTheSameWords(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	other := f.stranger()
	for _, status := range []string{"pending", "suspended", "banned"} {
		id := f.post("/api/v1/partners", `{"name":"x","referral_code":"`+status+`","status":"`+status+`"}`).want(201).text("partner_id")
		f.call("PUT", "/api/v1/campaigns/"+f.campaign+"/partners/"+id, "").want(204)
	}
	unknown := f.post("/api/v1/sales", f.sale("refused", "referral_code", `"nobody"`)).refused(404, "partner_not_found").anonymous()
	f.recordsNothing(func() {
		for name, code := range map[string]string{
			"pending": "pending", "suspended": "suspended", "banned": "banned", "another tenant's": other.code,
			"another letter case": "Ana.Souza", "spaces around it": " ana.souza ", "characters that no code has": "né👍", "64 characters": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		} {
			t.Run(name, func(t *testing.T) {
				answer := f.in(t).post("/api/v1/sales", f.sale("refused", "referral_code", quoted(code))).refused(404, "partner_not_found")
				if got := answer.anonymous(); got != unknown {
					t.Errorf("answered %s, but for an unknown code %s", got, unknown)
				}
			})
		}
		f.post("/api/v1/sales", f.sale("refused", "referral_code", `"nobody"`, "campaign_id", quoted(other.campaign), "sold_at", `"2090-01-01T00:00:00Z"`)).refused(404, "partner_not_found")
	})
}

func TestASaleThatBreaksARuleIsRefusedAndToldWhich(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	other := f.stranger()
	second := f.post("/api/v1/campaigns", `{"name":"second"}`).want(201).text("campaign_id")
	secondPlan := f.post("/api/v1/campaigns/"+second+"/plans", `{"name":"p","commission_pct":1}`).want(201).text("plan_id")
	inState := map[string]string{}
	for _, status := range []string{"draft", "paused", "ended"} {
		inState[status] = f.post("/api/v1/campaigns", `{"name":"x","status":"`+status+`"}`).want(201).text("campaign_id")
	}
	bounded := f.post("/api/v1/campaigns", `{"name":"b","starts_at":"2026-01-01T00:00:00Z","ends_at":"2026-02-01T00:00:00Z"}`).want(201).text("campaign_id")
	boundedPlan := f.post("/api/v1/campaigns/"+bounded+"/plans", `{"name":"p","commission_pct":1}`).want(201).text("plan_id")
	f.call("PUT", "/api/v1/campaigns/"+bounded+"/partners/"+f.partner, "").want(204)
	in := func(after time.Duration) string { return quoted(time.Now().Add(after).Format(time.RFC3339)) }
	const inactive, foreign, unlinked = "the campaign is not active", "the plan does not belong to the campaign", "the partner is not linked to the campaign"
	f.recordsNothing(func() {
		for name, row := range map[string]struct {
			changes []string
			message string
		}{
			"unknown campaign":           {[]string{"campaign_id", quoted(uuid.NewString())}, "there is no campaign with this campaign_id"},
			"another tenant's campaign":  {[]string{"campaign_id", quoted(other.campaign)}, "there is no campaign with this campaign_id"},
			"another tenant's, its plan": {[]string{"campaign_id", quoted(other.campaign), "plan_id", quoted(other.plan)}, "there is no campaign with this campaign_id"},
			"draft campaign":             {[]string{"campaign_id", quoted(inState["draft"])}, inactive},
			"paused campaign":            {[]string{"campaign_id", quoted(inState["paused"])}, inactive},
			"ended campaign":             {[]string{"campaign_id", quoted(inState["ended"])}, inactive},
			"unknown plan":               {[]string{"plan_id", quoted(uuid.NewString())}, foreign},
			"plan of another campaign":   {[]string{"plan_id", quoted(secondPlan)}, foreign},
			"another tenant's plan":      {[]string{"plan_id", quoted(other.plan)}, foreign},
			"not linked":                 {[]string{"campaign_id", quoted(second), "plan_id", quoted(secondPlan)}, unlinked},
			"25 hours ahead":             {[]string{"sold_at", in(25 * time.Hour)}, "sold_at lies more than 24 hours ahead"},
			"before the campaign":        {[]string{"campaign_id", quoted(bounded), "plan_id", quoted(boundedPlan), "sold_at", `"2025-12-31T23:59:59.999999Z"`}, "sold_at lies before the campaign's starts_at"},
			"after the campaign":         {[]string{"campaign_id", quoted(bounded), "plan_id", quoted(boundedPlan), "sold_at", `"2026-02-01T00:00:00.000001Z"`}, "sold_at lies after the campaign's ends_at"},
			"now, after the campaign":    {[]string{"campaign_id", quoted(bounded), "plan_id", quoted(boundedPlan)}, "sold_at lies after the campaign's ends_at"},
		} {
			t.Run(name, func(t *testing.T) {
				for range 2 { // the second time nothing may have been remembered wrongly
					f.in(t).post("/api/v1/sales", f.sale("refused", row.changes...)).refused(422, "create_failed").shows("message", row.message)
				}
			})
		}
	})
	for _, at := range []string{"2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"} {
		f.post("/api/v1/sales", f.sale("at "+at, "campaign_id", quoted(bounded), "plan_id", quoted(boundedPlan), "sold_at", quoted(at))).want(201)
	}
	f.post("/api/v1/sales", f.sale("23 hours ahead", "sold_at", in(23*time.Hour))).want(201)
	f.post("/api/v1/sales", f.sale("25 hours ahead", "sold_at", in(25*time.Hour))).refused(422, "create_failed") // also with the terms in memory
}

func TestACampaignOfAnotherTenantReadsLikeNone(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	other := f.stranger()
	for _, members := range [][2]string{{"campaign_id", other.campaign}, {"plan_id", other.plan}, {"referral_code", other.code}} {
		unknown := uuid.NewString()
		a := f.post("/api/v1/sales", f.sale("r", members[0], quoted(members[1])))
		b := f.post("/api/v1/sales", f.sale("r", members[0], quoted(unknown)))
		if a.anonymous() != b.anonymous() {
			t.Errorf("%s of another tenant: %s; of nobody: %s", members[0], a.anonymous(), b.anonymous())
		}
	}
}

func TestARepeatAnswersTheFirstResultWhateverHasBecomeOfTheCatalogue(t *testing.T) {
	t.Parallel()
	here := start(t, nowhere)
	there := here.replica()
	for name, change := range map[string]func(f *fixture){
		"the partner is suspended": func(f *fixture) { f.patch("/api/v1/partners/"+f.partner, `{"status":"suspended"}`).want(200) },
		"the partner is banned":    func(f *fixture) { f.patch("/api/v1/partners/"+f.partner, `{"status":"banned"}`).want(200) },
		"the campaign is paused":   func(f *fixture) { f.patch("/api/v1/campaigns/"+f.campaign, `{"status":"paused"}`).want(200) },
		"the campaign has ended":   func(f *fixture) { f.patch("/api/v1/campaigns/"+f.campaign, `{"status":"ended"}`).want(200) },
		"the campaign's dates are past": func(f *fixture) {
			f.patch("/api/v1/campaigns/"+f.campaign, `{"ends_at":"2020-01-01T00:00:00Z"}`).want(200)
		},
		"the plan pays more":  func(f *fixture) { f.patch("/api/v1/plans/"+f.plan, `{"commission_pct":50}`).want(200) },
		"the link is gone":    func(f *fixture) { f.call("DELETE", f.link, "").want(204) },
		"nothing has changed": func(*fixture) {},
	} {
		t.Run(name, func(t *testing.T) {
			f := here.in(t).stranger()
			first := f.post("/api/v1/sales", f.sale("order-1")).want(201)
			change(f)
			f.recordsNothing(func() {
				for _, at := range []*fixture{f, f.at(there), f} {
					again := at.post("/api/v1/sales", f.sale("order-1")).want(200).shows("idempotent", "true",
						"sale_id", first.text("sale_id"), "commission_id", first.text("commission_id"), "commission_amount_brl", "5.03")
					if got := again.Header.Get("Idempotency-Mismatch"); got != "" {
						t.Errorf("the same report is said to differ in %s", got)
					}
				}
				f.post("/api/v1/sales", f.sale("order-1", "referral_code", `"nobody"`, "campaign_id", quoted(uuid.NewString()), "sold_at", `"2090-01-01T00:00:00Z"`)).
					want(200).shows("sale_id", first.text("sale_id"))
				f.post("/api/v1/sales", f.sale("order-1", "amount_brl", "10.555")).invalid("/amount_brl too_many_decimals")
			})
		})
	}
}

func TestACallThatWasRefusedDoesNotUseUpItsReference(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.post("/api/v1/sales", f.sale("order-1", "plan_id", quoted(uuid.NewString()))).refused(422, "create_failed")
	f.post("/api/v1/sales", f.sale("order-1", "referral_code", `"nobody"`)).refused(404, "partner_not_found")
	f.post("/api/v1/sales", f.sale("order-1", "amount_brl", "0")).refused(400, "invalid_body")
	f.post("/api/v1/sales", f.sale("order-1")).want(201).shows("idempotent", "false")
	f.post("/api/v1/sales", f.sale("order-1")).want(200)
}
