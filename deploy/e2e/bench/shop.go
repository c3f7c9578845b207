package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// shop is a tenant with all that a sale needs, and where it reports its sales.
type shop struct {
	address string // host:port
	key     string

	TenantID   string `json:"tenant_id"`
	PartnerID  string `json:"partner_id"`
	CampaignID string `json:"campaign_id"`
	PlanID     string `json:"plan_id"`
	GoalID     string `json:"goal_id"`
	Secret     string `json:"secret"` // of its webhook endpoint
}

const referralCode = "ana.souza"

type object = map[string]any

// openShop makes a tenant, a key, a partner, a campaign with a plan of ten percent,
// and the link between them. Where there is no database it only makes up the names.
func openShop(ctx context.Context, c *child) (*shop, error) {
	s := &shop{address: c.Address, key: c.Key}
	if c.AdminToken == "" {
		s.CampaignID, s.PlanID = uuid.NewString(), uuid.NewString()
		return s, nil
	}
	var key struct {
		Clear string `json:"api_key"`
	}
	err := inOrder(
		func() error { return s.call(ctx, c.AdminToken, "POST", "/admin/v1/tenants", object{"name": "Loja"}, s) },
		func() error {
			return s.call(ctx, c.AdminToken, "POST", "/admin/v1/tenants/"+s.TenantID+"/api-keys", object{"name": "bench"}, &key)
		},
		func() error {
			s.key = key.Clear
			return s.call(ctx, s.key, "POST", "/api/v1/partners", object{"name": "Ana Souza", "referral_code": referralCode}, s)
		},
		func() error { return s.call(ctx, s.key, "POST", "/api/v1/campaigns", object{"name": "Lançamento"}, s) },
		func() error {
			plan := object{"name": "Dez por cento", "commission_pct": 10}
			return s.call(ctx, s.key, "POST", "/api/v1/campaigns/"+s.CampaignID+"/plans", plan, s)
		},
		func() error {
			return s.call(ctx, s.key, "PUT", "/api/v1/campaigns/"+s.CampaignID+"/partners/"+s.PartnerID, nil, nil)
		},
	)
	if err != nil {
		return nil, fmt.Errorf("open a shop: %w", err)
	}
	return s, nil
}

// extend adds what follows from a sale: a goal that counts it, and an endpoint that
// hears of its commission at that URL.
func (s *shop) extend(ctx context.Context, webhookURL string) error {
	goal := object{"name": "Vendas do mês", "metric": "sales_count", "target": 1_000_000_000, "period": "month"}
	endpoint := object{"url": webhookURL, "events": []string{"commission.available"}}
	err := inOrder(
		func() error {
			return s.untilKnown(ctx, func() error { return s.call(ctx, s.key, "POST", "/api/v1/goals", goal, s) })
		},
		func() error {
			return s.untilKnown(ctx, func() error { return s.call(ctx, s.key, "POST", "/api/v1/webhook-endpoints", endpoint, s) })
		},
	)
	if err != nil {
		return fmt.Errorf("open a shop: %w", err)
	}
	return nil
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// untilKnown tries again while a service has not heard of the key yet, which takes it
// a fraction of a second.
func (s *shop) untilKnown(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		err := try()
		var refused *refusal
		if !errors.As(err, &refused) || refused.status != http.StatusUnauthorized {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// refusal is any answer but a 2xx.
type refusal struct {
	what   string
	status int
	body   []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("%s: answered %d: %s", r.what, r.status, r.body) }

// call makes one call of the API and reads the answer into into, if it is not nil.
func (s *shop) call(ctx context.Context, token, method, path string, body, into any) error {
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("write request: %w", err)
		}
		payload = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+path, payload)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= 300 {
		return &refusal{what: method + " " + path, status: response.StatusCode, body: raw}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
