package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"partilha.dev/pkg/testkit"
)

// shop is one tenant with all that a sale needs, a goal, and a receiver that hears of
// every sale, commission and goal.
type shop struct {
	caller
	TenantID   string `json:"tenant_id"`
	PartnerID  string `json:"partner_id"`
	CampaignID string `json:"campaign_id"`
	PlanID     string `json:"plan_id"`
	GoalID     string `json:"goal_id"`
	EndpointID string `json:"endpoint_id"`
	Secret     string `json:"secret"`
	KeyID      string `json:"api_key_id"`
	receiver   *receiver
}

const (
	referralCode = "ana"
	goalTarget   = 3
)

// openShop makes a tenant and waits until every service knows its key.
func openShop(t testing.TB, s system) *shop {
	t.Helper()
	shop := newTenant(t, s)
	shop.must(t, 201, "POST", "/api/v1/partners", object{"name": "Ana", "referral_code": referralCode}).into(t, shop)
	shop.must(t, 201, "POST", "/api/v1/campaigns", object{"name": "Lançamento"}).into(t, shop)
	shop.must(t, 201, "POST", "/api/v1/campaigns/"+shop.CampaignID+"/plans", object{"name": "Cinco", "commission_pct": 5}).into(t, shop)
	shop.must(t, 204, "PUT", "/api/v1/campaigns/"+shop.CampaignID+"/partners/"+shop.PartnerID, nil)
	shop.awaitKey(t)
	goal := object{"name": "Três vendas", "metric": "sales_count", "target": goalTarget}
	shop.must(t, 201, "POST", "/api/v1/goals", goal).into(t, shop)
	shop.receiver = newReceiver(t)
	endpoint := object{"url": shop.receiver.URL, "events": []string{"*", "sale.recorded", "goal.reached"}}
	shop.must(t, 201, "POST", "/api/v1/webhook-endpoints", endpoint).into(t, shop)
	shop.receiver.trust(shop.Secret)
	return shop
}

// newTenant makes a tenant that has a key and nothing else.
func newTenant(t testing.TB, s system) *shop {
	t.Helper()
	operator := caller{s, s.operatorToken()}
	shop := &shop{caller: caller{system: s}}
	operator.must(t, 201, "POST", "/admin/v1/tenants", object{"name": t.Name()}).into(t, shop)
	key := operator.must(t, 201, "POST", "/admin/v1/tenants/"+shop.TenantID+"/api-keys", object{"name": "first"})
	key.into(t, shop)
	shop.token = key.text("api_key")
	return shop
}

// anywhere is an address of each service that a key with every scope may read.
var anywhere = map[string]string{
	"sales": "/api/v1/sales", "commissions": "/api/v1/commissions", "goals": "/api/v1/goals", "webhooks": "/api/v1/webhook-deliveries",
}

// awaitKey waits until every service admits the key.
func (s *shop) awaitKey(t testing.TB) {
	t.Helper()
	for _, service := range services {
		testkit.Eventually(t, soon, service+" knows the key", func() bool {
			return s.call(t, "GET", anywhere[service], nil).status == 200
		})
	}
}

// report is the body that reports a sale of 100.50, which earns 5.03.
func (s *shop) report(externalRef string) object {
	return object{
		"referral_code": referralCode, "campaign_id": s.CampaignID, "plan_id": s.PlanID,
		"amount_brl": json.Number("100.50"), "external_ref": externalRef,
	}
}

// receipt is what a report is answered.
type receipt struct {
	SaleID           string      `json:"sale_id"`
	CommissionID     string      `json:"commission_id"`
	CommissionAmount json.Number `json:"commission_amount_brl"`
	Idempotent       bool        `json:"idempotent"`
}

// sell reports a new sale.
func (s *shop) sell(t testing.TB, externalRef string, headers ...string) (r receipt) {
	t.Helper()
	s.must(t, http.StatusCreated, "POST", "/api/v1/sales", s.report(externalRef), headers...).into(t, &r)
	return r
}

// sellMany reports n new sales, one after another.
func (s *shop) sellMany(t testing.TB, name string, n int) map[string]receipt {
	t.Helper()
	receipts := map[string]receipt{}
	for i := range n {
		ref := fmt.Sprintf("%s-%d", name, i)
		receipts[ref] = s.sell(t, ref)
	}
	return receipts
}

// progress is how many sales the goal has counted for the partner.
func (s *shop) progress(t testing.TB) int {
	t.Helper()
	var board struct {
		Data []struct {
			PartnerID string `json:"partner_id"`
			Progress  int    `json:"progress"`
		} `json:"data"`
	}
	s.must(t, 200, "GET", "/api/v1/goals/"+s.GoalID+"/progress", nil).into(t, &board)
	for _, row := range board.Data {
		if row.PartnerID == s.PartnerID {
			return row.Progress
		}
	}
	return 0
}
