package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/testkit"
)

// hidden is a call about something of another tenant. A {name} in it stands for its
// id, and for one that never existed.
var hidden = []struct{ method, path, body string }{
	{"GET", "/api/v1/sales/{sale}", ""},
	{"GET", "/api/v1/sales/{sale}/refunds", ""},
	{"POST", "/api/v1/sales/{sale}/refunds", `{"amount_brl":1,"external_ref":"x"}`},
	{"GET", "/api/v1/partners/{partner}", ""},
	{"PATCH", "/api/v1/partners/{partner}", `{"name":"mine"}`},
	{"GET", "/api/v1/campaigns/{campaign}", ""},
	{"PATCH", "/api/v1/campaigns/{campaign}", `{"name":"mine"}`},
	{"POST", "/api/v1/campaigns/{campaign}/plans", `{"name":"mine","commission_pct":100}`},
	{"GET", "/api/v1/campaigns/{campaign}/plans", ""},
	{"GET", "/api/v1/campaigns/{campaign}/partners", ""},
	{"PUT", "/api/v1/campaigns/{campaign}/partners/{partner}", ""},
	{"DELETE", "/api/v1/campaigns/{campaign}/partners/{partner}", ""},
	{"GET", "/api/v1/plans/{plan}", ""},
	{"PATCH", "/api/v1/plans/{plan}", `{"commission_pct":100}`},
	{"DELETE", "/api/v1/api-keys/{key}", ""},
	{"GET", "/api/v1/commissions/{commission}", ""},
	{"GET", "/api/v1/balances/{partner}", ""},
	{"GET", "/api/v1/statements/{partner}", ""},
	{"GET", "/api/v1/goals/{goal}", ""},
	{"GET", "/api/v1/goals/{goal}/progress", ""},
	{"PATCH", "/api/v1/goals/{goal}", `{"name":"mine"}`},
	{"DELETE", "/api/v1/goals/{goal}", ""},
	{"GET", "/api/v1/webhook-endpoints/{endpoint}", ""},
	{"DELETE", "/api/v1/webhook-endpoints/{endpoint}", ""},
	{"GET", "/api/v1/webhook-deliveries/{delivery}", ""},
	{"POST", "/api/v1/sales", `{"referral_code":"ana","campaign_id":"{campaign}","plan_id":"{own plan}","amount_brl":1,"external_ref":"x"}`},
	{"POST", "/api/v1/sales", `{"referral_code":"ana","campaign_id":"{own campaign}","plan_id":"{plan}","amount_brl":1,"external_ref":"x"}`},
	{"POST", "/api/v1/sales", `{"referral_code":"{code}","campaign_id":"{own campaign}","plan_id":"{own plan}","amount_brl":1,"external_ref":"x"}`},
	{"GET", "/api/v1/sales?partner_id={partner}", ""},
	{"GET", "/api/v1/sales?campaign_id={campaign}", ""},
	{"GET", "/api/v1/sales?external_ref={ref}", ""},
	{"GET", "/api/v1/commissions?partner_id={partner}", ""},
	{"GET", "/api/v1/commissions?campaign_id={campaign}", ""},
	{"GET", "/api/v1/commissions?source_sale_id={sale}", ""},
	{"GET", "/api/v1/webhook-deliveries?endpoint_id={endpoint}", ""},
}

func TestATenantSeesAndChangesNothingOfAnother(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	alice, mallory := openShop(t, p), openShop(t, p)
	alice.must(t, 201, "POST", "/api/v1/partners", object{"name": "Bia", "referral_code": "only-of-alice"})
	sold := alice.sell(t, "order-of-alice")
	books{p, alice}.settle(t, map[string]receipt{"order-of-alice": sold})
	var deliveries struct {
		Data []struct {
			ID string `json:"delivery_id"`
		}
	}
	alice.must(t, 200, "GET", "/api/v1/webhook-deliveries", nil).into(t, &deliveries)

	own := []string{"{own plan}", mallory.PlanID, "{own campaign}", mallory.CampaignID}
	foreign := strings.NewReplacer(append(own, "{sale}", sold.SaleID, "{commission}", sold.CommissionID, "{partner}", alice.PartnerID,
		"{campaign}", alice.CampaignID, "{plan}", alice.PlanID, "{key}", alice.KeyID, "{goal}", alice.GoalID,
		"{endpoint}", alice.EndpointID, "{delivery}", deliveries.Data[0].ID, "{code}", "only-of-alice", "{ref}", "order-of-alice")...)
	const never = "01890000-0000-7000-8000-000000000000"
	unknown := strings.NewReplacer(append(own, "{sale}", never, "{commission}", never, "{partner}", never,
		"{campaign}", never, "{plan}", never, "{key}", never, "{goal}", never,
		"{endpoint}", never, "{delivery}", never, "{code}", "nobody", "{ref}", "nothing")...)

	before := p.dump(t)
	for _, h := range hidden {
		ask := func(words *strings.Replacer) answer {
			var body any
			if h.body != "" {
				body = words.Replace(h.body)
			}
			return mallory.call(t, h.method, words.Replace(h.path), body, "X-Request-Id", "the same")
		}
		got, want := ask(foreign), ask(unknown)
		if got.status != want.status || !bytes.Equal(got.body, want.body) {
			t.Errorf("%s %s of another tenant answers %s, of nobody %s", h.method, h.path, got, want)
		}
		if got.status < 300 && !bytes.Contains(got.body, []byte(`"data":[]`)) {
			t.Errorf("%s %s of another tenant answers %s", h.method, h.path, got)
		}
	}
	for _, list := range []string{anywhere["sales"], anywhere["commissions"], anywhere["webhooks"]} {
		if got := mallory.must(t, 200, "GET", list, nil); !bytes.Contains(got.body, []byte(`"data":[]`)) {
			t.Errorf("GET %s of a tenant that has nothing answers %s", list, got)
		}
	}
	if got := mallory.must(t, 200, "GET", "/api/v1/goals", nil); bytes.Contains(got.body, []byte(alice.GoalID)) {
		t.Errorf("a tenant sees another's goal: %s", got)
	}
	for table, rows := range p.dump(t) {
		if table != "sales.api_keys" { // it tells when a key was used
			sameRows(t, table, before[table], rows)
		}
	}
	if heard := len(mallory.receiver.counts()); heard != 0 {
		t.Errorf("a tenant without sales has heard %d events", heard)
	}
}

// within is how soon a change of a key must hold everywhere. What is promised is one
// second; a busy machine gets three.
const within = 3 * time.Second

func TestAKeyWorksEverywhereSoonAfterItIsMadeAndNowhereSoonAfterItIsRevoked(t *testing.T) {
	p := startPlatform(t)
	shop := newTenant(t, p)
	shop.awaitKey(t)
	key := shop.must(t, 201, "POST", "/api/v1/api-keys", object{"name": "second", "scopes": []string{
		"sales:read", "commissions:read", "goals:read", "webhooks:read"}})
	second := caller{p, key.text("api_key")}
	holds(t, second, "a new key", "200 ")
	shop.must(t, 204, "DELETE", "/api/v1/api-keys/"+key.text("api_key_id"), nil)
	if got := second.call(t, "GET", anywhere["sales"], nil); got.status != 401 {
		t.Errorf("a revoked key is answered by the very service that revoked it: %s", got)
	}
	holds(t, second, "a revoked key", "401 unauthorized")
	holds(t, shop.caller, "the other key of the tenant", "200 ")
}

func TestASuspendedTenantIsRefusedEverywhereUntilItIsActiveAgain(t *testing.T) {
	p := startPlatform(t)
	shop, other := newTenant(t, p), newTenant(t, p)
	shop.awaitKey(t)
	other.awaitKey(t)
	operator := caller{p, adminToken}
	for _, status := range []struct{ status, answer string }{{"suspended", "403 tenant_suspended"}, {"active", "200 "}} {
		operator.must(t, 200, "PATCH", "/admin/v1/tenants/"+shop.TenantID, object{"status": status.status})
		holds(t, shop.caller, "a key of a tenant that is "+status.status, status.answer)
		holds(t, other.caller, "a key of another tenant", "200 ")
	}
}

// holds waits until every service answers the key so.
func holds(t *testing.T, c caller, whose, want string) {
	t.Helper()
	began := time.Now()
	for _, service := range services {
		testkit.Eventually(t, within-min(within, time.Since(began)), whose+" is answered "+want+" by "+service, func() bool {
			got := c.call(t, "GET", anywhere[service], nil)
			return fmt.Sprint(got.status, " ", got.code()) == want
		})
	}
	t.Logf("%s is answered %s everywhere after %s", whose, want, time.Since(began))
}
