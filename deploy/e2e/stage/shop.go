package stage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"partilha.dev/pkg/testkit"
)

// Shop is one tenant with all that a sale needs, a goal, and a receiver that hears of
// every sale, commission and goal.
type Shop struct {
	Caller
	TenantID   string `json:"tenant_id"`
	PartnerID  string `json:"partner_id"`
	CampaignID string `json:"campaign_id"`
	PlanID     string `json:"plan_id"`
	GoalID     string `json:"goal_id"`
	EndpointID string `json:"endpoint_id"`
	Secret     string `json:"secret"`
	KeyID      string `json:"api_key_id"`
	Receiver   *Receiver
}

// ReferralCode is that of the shop's partner, and GoalTarget how many sales its goal asks for.
const (
	ReferralCode = "ana"
	GoalTarget   = 3
)

// OpenShop makes a tenant and waits until every service knows its key.
func OpenShop(t testing.TB, s System) *Shop {
	t.Helper()
	shop := NewTenant(t, s)
	shop.Stock(t)
	shop.AwaitKey(t)
	goal := Object{"name": "Três vendas", "metric": "sales_count", "target": GoalTarget}
	shop.Must(t, 201, "POST", "/api/v1/goals", goal).Into(t, shop)
	shop.Receiver = NewReceiver(t)
	endpoint := Object{"url": shop.Receiver.URL, "events": []string{"*", "sale.recorded", "goal.reached"}}
	shop.Must(t, 201, "POST", "/api/v1/webhook-endpoints", endpoint).Into(t, shop)
	shop.Receiver.Trust(shop.Secret)
	return shop
}

// Stock makes what a sale needs.
func (s *Shop) Stock(t testing.TB) {
	t.Helper()
	s.Must(t, 201, "POST", "/api/v1/partners", Object{"name": "Ana", "referral_code": ReferralCode}).Into(t, s)
	s.Must(t, 201, "POST", "/api/v1/campaigns", Object{"name": "Lançamento"}).Into(t, s)
	s.Must(t, 201, "POST", "/api/v1/campaigns/"+s.CampaignID+"/plans", Object{"name": "Cinco", "commission_pct": 5}).Into(t, s)
	s.Must(t, 204, "PUT", "/api/v1/campaigns/"+s.CampaignID+"/partners/"+s.PartnerID, nil)
}

// NewTenant makes a tenant that has a key and nothing else.
func NewTenant(t testing.TB, s System) *Shop {
	t.Helper()
	operator := Caller{s, s.OperatorToken()}
	shop := &Shop{Caller: Caller{System: s}}
	operator.Must(t, 201, "POST", "/admin/v1/tenants", Object{"name": t.Name()}).Into(t, shop)
	key := operator.Must(t, 201, "POST", "/admin/v1/tenants/"+shop.TenantID+"/api-keys", Object{"name": "first"})
	key.Into(t, shop)
	shop.Token = key.Text("api_key")
	return shop
}

// Anywhere is an address of each service that a key with every scope may read.
var Anywhere = map[string]string{
	"sales": "/api/v1/sales", "commissions": "/api/v1/commissions", "goals": "/api/v1/goals", "webhooks": "/api/v1/webhook-deliveries",
}

// AwaitKey waits until every service admits the key.
func (s *Shop) AwaitKey(t testing.TB) {
	t.Helper()
	for _, service := range Services {
		testkit.Eventually(t, Soon, service+" knows the key", func() bool {
			return s.Call(t, "GET", Anywhere[service], nil).Status == 200
		})
	}
}

// Report is the body that reports a sale of 100.50, which earns 5.03.
func (s *Shop) Report(externalRef string) Object {
	return Object{
		"referral_code": ReferralCode, "campaign_id": s.CampaignID, "plan_id": s.PlanID,
		"amount_brl": json.Number("100.50"), "external_ref": externalRef,
	}
}

// Receipt is what a report is answered.
type Receipt struct {
	SaleID           string      `json:"sale_id"`
	CommissionID     string      `json:"commission_id"`
	CommissionAmount json.Number `json:"commission_amount_brl"`
	Idempotent       bool        `json:"idempotent"`
}

// Sell reports a new sale.
func (s *Shop) Sell(t testing.TB, externalRef string, headers ...string) (r Receipt) {
	t.Helper()
	s.Must(t, http.StatusCreated, "POST", "/api/v1/sales", s.Report(externalRef), headers...).Into(t, &r)
	return r
}

// SellMany reports n new sales, one after another.
func (s *Shop) SellMany(t testing.TB, name string, n int) map[string]Receipt {
	t.Helper()
	receipts := map[string]Receipt{}
	for i := range n {
		ref := fmt.Sprintf("%s-%d", name, i)
		receipts[ref] = s.Sell(t, ref)
	}
	return receipts
}

// Progress is how many sales the goal has counted for the partner.
func (s *Shop) Progress(t testing.TB) int {
	t.Helper()
	var board struct {
		Data []struct {
			PartnerID string `json:"partner_id"`
			Progress  int    `json:"progress"`
		} `json:"data"`
	}
	s.Must(t, 200, "GET", "/api/v1/goals/"+s.GoalID+"/progress", nil).Into(t, &board)
	for _, row := range board.Data {
		if row.PartnerID == s.PartnerID {
			return row.Progress
		}
	}
	return 0
}
