package sales

import (
	"strings"
	"sync"
	"testing"
)

// creations are the resources of the catalogue that an external_ref may name: the
// address that makes them, a body, the same body with something else in it, what
// differs then, a change, and the address of one.
func (f *fixture) creations() map[string]struct{ list, body, other, differs, change, id, one string } {
	return map[string]struct{ list, body, other, differs, change, id, one string }{
		"partner": {
			"/api/v1/partners", `{"name":"Rui","referral_code":"rui","external_ref":"ref"}`,
			`{"name":"Rua","referral_code":"rua","status":"pending","external_ref":"ref"}`, "name, referral_code, status",
			`{"name":"changed","status":"suspended"}`, "partner_id", "/api/v1/partners/",
		},
		"campaign": {
			"/api/v1/campaigns", `{"name":"Frio","starts_at":"2026-07-01T00:00:00Z","external_ref":"ref"}`,
			`{"name":"Frio","starts_at":"2026-07-02T00:00:00Z","ends_at":"2026-08-01T00:00:00Z","external_ref":"ref"}`, "ends_at, starts_at",
			`{"name":"changed","status":"ended","starts_at":null}`, "campaign_id", "/api/v1/campaigns/",
		},
		"plan": {
			"/api/v1/campaigns/" + f.campaign + "/plans", `{"name":"Ouro","commission_pct":12.50,"external_ref":"ref"}`,
			`{"name":"Ouro","commission_pct":13,"hold_days":1,"conversion_amount_brl":1,"external_ref":"ref"}`, "commission_pct, conversion_amount_brl, hold_days",
			`{"name":"changed","commission_pct":1}`, "plan_id", "/api/v1/plans/",
		},
	}
}

func TestARepeatedCreationAnswersTheFirstResultForEver(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	other := f.stranger()
	for name, c := range f.creations() {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			first := f.post(c.list, c.body).want(201).shows("idempotent", "false")
			result := strings.Replace(string(first.raw), `"idempotent":false`, `"idempotent":true`, 1)
			repeat := func(body, differs string) {
				t.Helper()
				again := f.post(c.list, body).want(200)
				if string(again.raw) != result {
					t.Errorf("first %s, then %s", result, again.raw)
				}
				if got := again.Header.Get("Idempotency-Mismatch"); got != differs {
					t.Errorf("Idempotency-Mismatch is %q, want %q", got, differs)
				}
			}
			f.recordsNothing(func() { repeat(c.body, "") })
			f.recordsNothing(func() { repeat(c.other, c.differs) })
			f.patch(c.one+first.text(c.id), c.change).want(200)
			f.recordsNothing(func() { repeat(c.body, "") })
			f.get(c.one+first.text(c.id)).want(200).shows("name", "changed")
			if name != "plan" { // a plan's address names a campaign of its own tenant
				other.in(t).post(c.list, c.body).want(201)
			}
		})
	}
}

func TestARepeatedPlanInAnotherCampaignIsTheFirstPlan(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	second := f.post("/api/v1/campaigns", `{"name":"second"}`).want(201).text("campaign_id")
	const body = `{"name":"Ouro","commission_pct":12.5,"external_ref":"ref"}`
	first := f.post("/api/v1/campaigns/"+f.campaign+"/plans", body).want(201)
	again := f.post("/api/v1/campaigns/"+second+"/plans", body).want(200).shows("plan_id", first.text("plan_id"), "campaign_id", f.campaign)
	if got := again.Header.Get("Idempotency-Mismatch"); got != "campaign_id" {
		t.Errorf("Idempotency-Mismatch is %q", got)
	}
}

func TestOfManyCreationsAtOnceOneIsTheFirst(t *testing.T) {
	t.Parallel()
	const calls = 32
	f := start(t, nowhere)
	for name, c := range f.creations() {
		t.Run(name, func(t *testing.T) {
			answers := make([]*response, calls)
			var done sync.WaitGroup
			for i := range calls {
				done.Go(func() {
					var err error
					answers[i], err = f.try("POST", c.list, strings.NewReader(c.body), "Authorization", "Bearer "+f.key)
					if err != nil {
						t.Error(err)
					}
				})
			}
			done.Wait()
			made := 0
			for _, answer := range answers {
				answer.t = t
				if answer.StatusCode == 201 {
					made++
				} else {
					answer.want(200)
				}
				answer.shows(c.id, answers[0].text(c.id), "idempotent", map[int]string{200: "true", 201: "false"}[answer.StatusCode])
			}
			if made != 1 {
				t.Errorf("%d calls made a %s", made, name)
			}
		})
	}
}
