package sales

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// A change holds on every replica from the moment that one of them has answered it:
// what the others remember must never decide a sale after that.
func TestAChangeThatOneReplicaAnsweredHoldsAtOnceOnTheOther(t *testing.T) {
	t.Parallel()
	const rounds, loaders = 6, 4
	here := start(t, nowhere)
	there := here.replica()

	var serial atomic.Int64
	here.meanwhile(loaders, func(loader, n int) {
		at := []*fixture{here, there}[(loader+n)%2]
		answer, err := at.report(here.sale(fmt.Sprint("load-", serial.Add(1))))
		if err != nil {
			t.Error(err)
		} else if answer.StatusCode >= 500 {
			t.Errorf("answered %d %s", answer.StatusCode, answer.raw)
		}
	})

	for round := range rounds {
		one, other := here, there
		if round%2 == 1 {
			one, other = there, here
		}
		sell := func(f *fixture) *response {
			f.t.Helper()
			return f.post("/api/v1/sales", here.sale(fmt.Sprint("order-", serial.Add(1))))
		}
		sell(one).want(201)
		sell(other).want(201)

		one.patch("/api/v1/campaigns/"+here.campaign, `{"status":"paused"}`).want(200)
		sell(other).refused(422, "create_failed")
		other.patch("/api/v1/campaigns/"+here.campaign, `{"status":"active"}`).want(200)
		sell(one).want(201)

		one.patch("/api/v1/campaigns/"+here.campaign, `{"ends_at":"2020-01-01T00:00:00Z"}`).want(200)
		sell(other).refused(422, "create_failed")
		other.patch("/api/v1/campaigns/"+here.campaign, `{"ends_at":null}`).want(200)
		sell(one).want(201)

		one.patch("/api/v1/partners/"+here.partner, `{"status":"suspended"}`).want(200)
		sell(other).refused(404, "partner_not_found")
		other.patch("/api/v1/partners/"+here.partner, `{"status":"active"}`).want(200)
		sell(one).want(201)

		one.call("DELETE", here.link, "").want(204)
		sell(other).refused(422, "create_failed")
		other.call("PUT", here.link, "").want(204)
		sell(one).want(201)

		one.patch("/api/v1/plans/"+here.plan, `{"commission_pct":50}`).want(200)
		sell(other).want(201).shows("commission_amount_brl", "50.25")
		other.patch("/api/v1/plans/"+here.plan, `{"commission_pct":5}`).want(200)
		sell(one).want(201).shows("commission_amount_brl", "5.03")

		key := one.post("/api/v1/api-keys", `{"name":"short-lived"}`).want(201)
		sell(other.with(key.text("api_key"))).want(201)
		sell(one.with(key.text("api_key"))).want(201)
		one.call("DELETE", "/api/v1/api-keys/"+key.text("api_key_id"), "").want(204)
		sell(other.with(key.text("api_key"))).refused(401, "unauthorized")

		one.admin("PATCH", "/admin/v1/tenants/"+here.tenant, `{"status":"suspended"}`).want(200)
		sell(other).refused(403, "tenant_suspended")
		other.admin("PATCH", "/admin/v1/tenants/"+here.tenant, `{"status":"active"}`).want(200)
		sell(one).want(201)
	}
}

// Sales that are decided anew all the time still come to an end.
func TestSalesAreRecordedWhileTheCatalogueNeverRests(t *testing.T) {
	t.Parallel()
	const sales = 100
	here := start(t, nowhere)
	there := here.replica()
	plans := []string{`{"commission_pct":50}`, `{"commission_pct":5}`}
	here.meanwhile(1, func(_, n int) {
		answer, err := here.try("PATCH", "/api/v1/plans/"+here.plan, strings.NewReader(plans[n%2]), "Authorization", "Bearer "+here.key)
		if err != nil || answer.StatusCode != 200 {
			t.Errorf("change the plan: %v %v", err, answer)
		}
	})
	for n := range sales {
		at := []*fixture{here, there}[n%2]
		answer := at.post("/api/v1/sales", here.sale(fmt.Sprint("order-", n))).want(201)
		sale := at.get("/api/v1/sales/" + answer.text("sale_id")).want(200)
		want := map[string]string{"5": "5.03", "50": "50.25"}[sale.text("commission_pct")]
		if got := answer.text("commission_amount_brl"); got != want {
			t.Errorf("%s %% of 100.50 is %s, want %s", sale.text("commission_pct"), got, want)
		}
	}
}
