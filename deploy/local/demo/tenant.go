// Package demo shows a newcomer what Partilha does: it makes a tenant with all that a
// sale needs, reports a sale over HTTP, and tells what became of it, step by step.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Tenant is the demo tenant and what belongs to it, as it is kept in the data folder.
type Tenant struct {
	TenantID     string `json:"tenant_id"`
	Key          string `json:"key"`
	PartnerID    string `json:"partner_id"`
	ReferralCode string `json:"referral_code"`
	CampaignID   string `json:"campaign_id"`
	PlanID       string `json:"plan_id"`
	GoalID       string `json:"goal_id"`
	EndpointID   string `json:"endpoint_id"`
	EndpointURL  string `json:"endpoint_url"`
	Secret       string `json:"secret"`
}

// Open returns the demo tenant that the data folder remembers, or makes one. The
// receiver is reached at the address at; if that has changed since, the webhook endpoint
// moves with it.
func Open(ctx context.Context, base, adminToken, dataDir, at string, receiver *Receiver) (*Tenant, error) {
	file := filepath.Join(dataDir, "demo.json")
	t := &Tenant{}
	raw, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := t.create(ctx, client{base, adminToken}); err != nil {
			return nil, fmt.Errorf("make the demo tenant: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("read the demo tenant: %w", err)
	default:
		if err := json.Unmarshal(raw, t); err != nil {
			return nil, fmt.Errorf("read the demo tenant from %s: %w", file, err)
		}
	}
	if err := t.listen(ctx, client{base, t.Key}, at+Path); err != nil {
		return nil, fmt.Errorf("register the demo's webhook endpoint: %w", err)
	}
	receiver.trust(t.Secret)
	raw, err = json.MarshalIndent(t, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the demo tenant: %w", err)
	}
	if err := os.WriteFile(file, append(raw, '\n'), 0o600); err != nil {
		return nil, fmt.Errorf("write the demo tenant: %w", err)
	}
	return t, nil
}

// object is a JSON object, for the few bodies that a demo writes.
type object = map[string]any

// create makes the tenant with a key, a seller, a campaign with a plan, and a goal.
func (t *Tenant) create(ctx context.Context, operator client) error {
	if err := operator.call(ctx, "POST", "/admin/v1/tenants", object{"name": "Loja Demonstração"}, t); err != nil {
		return err
	}
	var key struct {
		Clear string `json:"api_key"`
	}
	if err := operator.call(ctx, "POST", "/admin/v1/tenants/"+t.TenantID+"/api-keys", object{"name": "demo"}, &key); err != nil {
		return err
	}
	t.Key, t.ReferralCode = key.Clear, "ana"
	own := client{operator.base, t.Key}
	if err := own.call(ctx, "POST", "/api/v1/partners", object{"name": "Ana Souza", "referral_code": t.ReferralCode}, t); err != nil {
		return err
	}
	if err := own.call(ctx, "POST", "/api/v1/campaigns", object{"name": "Lançamento"}, t); err != nil {
		return err
	}
	plan := object{"name": "Dez por cento", "commission_pct": 10}
	if err := own.call(ctx, "POST", "/api/v1/campaigns/"+t.CampaignID+"/plans", plan, t); err != nil {
		return err
	}
	if err := own.call(ctx, "PUT", "/api/v1/campaigns/"+t.CampaignID+"/partners/"+t.PartnerID, nil, nil); err != nil {
		return err
	}
	goal := object{"name": "Dez vendas no mês", "metric": "sales_count", "target": goalTarget, "period": "month"}
	return untilKnown(ctx, func() error { return own.call(ctx, "POST", "/api/v1/goals", goal, t) })
}

const goalTarget = 10

// listen registers the receiver, unless it is registered at this very address.
func (t *Tenant) listen(ctx context.Context, own client, url string) error {
	if t.EndpointURL == url {
		return nil
	}
	if t.EndpointID != "" {
		if err := own.call(ctx, "DELETE", "/api/v1/webhook-endpoints/"+t.EndpointID, nil, nil); err != nil {
			return err
		}
	}
	endpoint := object{"url": url, "events": []string{"*"}, "description": "the receiver of the demo"}
	if err := untilKnown(ctx, func() error { return own.call(ctx, "POST", "/api/v1/webhook-endpoints", endpoint, t) }); err != nil {
		return err
	}
	t.EndpointURL = url
	return nil
}
