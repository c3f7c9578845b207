package sales

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestAConversionByNobodyWhoSellsHereIsRefusedInTheSameWords(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	other := f.stranger()
	for _, status := range []string{"pending", "suspended", "banned"} {
		id := f.post("/api/v1/partners", `{"name":"x","referral_code":"`+status+`","status":"`+status+`"}`).want(201).text("partner_id")
		f.call("PUT", "/api/v1/campaigns/"+f.campaign+"/partners/"+id, "").want(204)
	}
	unknown := f.post("/api/v1/conversions", f.conversion("refused", "referral_code", `"nobody"`)).refused(404, "partner_not_found").anonymous()
	f.recordsNothing(func() {
		for _, code := range []string{"pending", "suspended", "banned", other.code, "Ana.Souza", " ana.souza ", "né👍", strings.Repeat("a", 64)} {
			for _, plan := range []string{quoted(f.plan), ""} {
				if got := f.post("/api/v1/conversions", f.conversion("refused", "referral_code", quoted(code), "plan_id", plan)).anonymous(); got != unknown {
					t.Errorf("%q: answered %s, but for an unknown code %s", code, got, unknown)
				}
			}
		}
		f.post("/api/v1/conversions", f.conversion("refused", "referral_code", `"nobody"`, "campaign_id", quoted(other.campaign), "occurred_at", `"2090-01-01T00:00:00Z"`)).
			refused(404, "partner_not_found")
	})
}

func TestAConversionThatBreaksARuleIsRefusedAndToldWhich(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	other := f.stranger()
	second := f.post("/api/v1/campaigns", `{"name":"second"}`).want(201).text("campaign_id")
	secondPlan := f.post("/api/v1/campaigns/"+second+"/plans", `{"name":"p","commission_pct":1}`).want(201).text("plan_id")
	paused := f.post("/api/v1/campaigns", `{"name":"x","status":"paused"}`).want(201).text("campaign_id")
	bounded := f.post("/api/v1/campaigns", `{"name":"b","starts_at":"2026-01-01T00:00:00Z","ends_at":"2026-02-01T00:00:00Z"}`).want(201).text("campaign_id")
	f.call("PUT", "/api/v1/campaigns/"+bounded+"/partners/"+f.partner, "").want(204)
	within := func(changes ...string) []string {
		return append([]string{"campaign_id", quoted(bounded), "plan_id", ""}, changes...)
	}
	in := func(after time.Duration) string { return quoted(time.Now().Add(after).Format(time.RFC3339)) }
	const absent, foreign = "there is no campaign with this campaign_id", "the plan does not belong to the campaign"
	f.recordsNothing(func() {
		for name, row := range map[string]struct {
			changes []string
			message string
		}{
			"unknown campaign":           {[]string{"campaign_id", quoted(uuid.NewString())}, absent},
			"unknown campaign, no plan":  {[]string{"campaign_id", quoted(uuid.NewString()), "plan_id", ""}, absent},
			"another tenant's campaign":  {[]string{"campaign_id", quoted(other.campaign), "plan_id", ""}, absent},
			"another tenant's, its plan": {[]string{"campaign_id", quoted(other.campaign), "plan_id", quoted(other.plan)}, absent},
			"paused campaign":            {[]string{"campaign_id", quoted(paused), "plan_id", ""}, "the campaign is not active"},
			"unknown plan":               {[]string{"plan_id", quoted(uuid.NewString())}, foreign},
			"a plan of zeros":            {[]string{"plan_id", quoted(uuid.Nil.String())}, foreign},
			"plan of another campaign":   {[]string{"plan_id", quoted(secondPlan)}, foreign},
			"another tenant's plan":      {[]string{"plan_id", quoted(other.plan)}, foreign},
			"not linked":                 {[]string{"campaign_id", quoted(second), "plan_id", quoted(secondPlan)}, "the partner is not linked to the campaign"},
			"not linked, no plan":        {[]string{"campaign_id", quoted(second), "plan_id", ""}, "the partner is not linked to the campaign"},
			"25 hours ahead":             {[]string{"occurred_at", in(25 * time.Hour)}, "occurred_at lies more than 24 hours ahead"},
			"before the campaign":        {within("occurred_at", `"2025-12-31T23:59:59.999999Z"`), "occurred_at lies before the campaign's starts_at"},
			"after the campaign":         {within("occurred_at", `"2026-02-01T00:00:00.000001Z"`), "occurred_at lies after the campaign's ends_at"},
			"now, after the campaign":    {within(), "occurred_at lies after the campaign's ends_at"},
		} {
			t.Run(name, func(t *testing.T) {
				for range 2 { // the second time nothing may have been remembered wrongly
					f.in(t).post("/api/v1/conversions", f.conversion("refused", row.changes...)).refused(422, "create_failed").shows("message", row.message)
				}
			})
		}
	})
	for _, at := range []string{"2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"} {
		f.post("/api/v1/conversions", f.conversion("at "+at, within("occurred_at", quoted(at))...)).want(201)
	}
	f.post("/api/v1/conversions", f.conversion("refused", "occurred_at", in(23*time.Hour))).want(201) // its reference was not used up
	f.post("/api/v1/conversions", f.conversion("25 hours ahead", "occurred_at", in(25*time.Hour))).refused(422, "create_failed")
}

// What is remembered for a conversion without a plan must not let a sale, or one with
// another plan, pass; nor the other way round.
func TestWhatIsRememberedWithAPlanIsNotTakenForWhatIsWithout(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	zeros := quoted(uuid.Nil.String())
	f.post("/api/v1/conversions", f.conversion("none", "plan_id", "")).want(201).shows("commission_id", "<nil>")
	f.post("/api/v1/conversions", f.conversion("zeros", "plan_id", zeros)).refused(422, "create_failed")
	f.post("/api/v1/sales", f.sale("zeros", "plan_id", zeros)).refused(422, "create_failed")
	f.post("/api/v1/conversions", f.conversion("paid")).want(201).shows("commission_amount_brl", "4.75")
	f.post("/api/v1/conversions", f.conversion("none again", "plan_id", "")).want(201).shows("commission_id", "<nil>")
}

func TestARepeatOfAConversionAnswersTheFirstResultWhateverHasBecomeOfTheCatalogue(t *testing.T) {
	t.Parallel()
	here := start(t, nowhere)
	there := here.replica()
	for name, change := range map[string]func(f *fixture){
		"the partner is banned":  func(f *fixture) { f.patch("/api/v1/partners/"+f.partner, `{"status":"banned"}`).want(200) },
		"the campaign has ended": func(f *fixture) { f.patch("/api/v1/campaigns/"+f.campaign, `{"status":"ended"}`).want(200) },
		"the plan pays nothing": func(f *fixture) {
			f.patch("/api/v1/plans/"+f.plan, `{"conversion_amount_brl":null}`).want(200)
		},
		"the link is gone":    func(f *fixture) { f.call("DELETE", f.link, "").want(204) },
		"nothing has changed": func(*fixture) {},
	} {
		t.Run(name, func(t *testing.T) {
			f := here.in(t).stranger()
			first := f.post("/api/v1/conversions", f.conversion("lead-1")).want(201)
			again := strings.Replace(string(first.raw), `"idempotent":false`, `"idempotent":true`, 1)
			change(f)
			f.recordsNothing(func() {
				for _, at := range []*fixture{f, f.at(there), f} {
					if answer := at.post("/api/v1/conversions", f.conversion("lead-1")).want(200); string(answer.raw) != again || answer.Header.Get("Idempotency-Mismatch") != "" {
						t.Errorf("answered %s, want %s", answer.raw, again)
					}
				}
				f.post("/api/v1/conversions", f.conversion("lead-1", "value_brl", "10.555")).invalid("/value_brl too_many_decimals")
			})
		})
	}
}
