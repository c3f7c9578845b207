package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/money"
)

// NewPlan is a rate that a campaign is to have.
type NewPlan struct {
	Name             string    `json:"name"`
	CommissionPct    money.Pct `json:"commission_pct"`                 // of a sale: money.Pct(125000) is 12.5%
	ConversionAmount money.BRL `json:"conversion_amount_brl,omitzero"` // of a conversion; 0: it earns nothing
	HoldDays         int       `json:"hold_days,omitzero"`             // before a commission may be withdrawn
	ExternalRef      string    `json:"external_ref,omitzero"`          // "": a lost call is not repeated
}

// Plan is one rate of a campaign. A change of it never touches past sales.
type Plan struct {
	PlanID           uuid.UUID  `json:"plan_id"`
	CampaignID       uuid.UUID  `json:"campaign_id"`
	Name             string     `json:"name"`
	CommissionPct    money.Pct  `json:"commission_pct"`
	ConversionAmount *money.BRL `json:"conversion_amount_brl"` // nil: a conversion earns nothing
	HoldDays         int        `json:"hold_days"`
	CreatedAt        time.Time  `json:"created_at"`
}

// CreatedPlan is the answer to a creation, or to a repeat of one.
type CreatedPlan struct {
	Plan
	Repeat
}

// CreatePlan gives a campaign one more rate.
func (c *Client) CreatePlan(ctx context.Context, campaignID uuid.UUID, plan NewPlan) (CreatedPlan, error) {
	return send[CreatedPlan](ctx, c, call{
		what: "create plan", method: http.MethodPost, path: campaignPath(campaignID) + "/plans", body: plan, repeatable: plan.ExternalRef != "",
	})
}

const plansPath = "/api/v1/plans"

// GetPlan reads one plan.
func (c *Client) GetPlan(ctx context.Context, planID uuid.UUID) (Plan, error) {
	return read[Plan](ctx, c, "read plan", plansPath+"/"+planID.String())
}

// PlanUpdate is what is to change of a plan. A zero member stays as it is.
type PlanUpdate struct {
	Name             string              `json:"name,omitzero"`
	CommissionPct    *money.Pct          `json:"commission_pct,omitzero"`
	ConversionAmount Nullable[money.BRL] `json:"conversion_amount_brl,omitzero"`
	HoldDays         *int                `json:"hold_days,omitzero"`
}

// UpdatePlan changes a plan for the sales to come and answers what it is like then.
func (c *Client) UpdatePlan(ctx context.Context, planID uuid.UUID, update PlanUpdate) (Plan, error) {
	return send[Plan](ctx, c, call{what: "update plan", method: http.MethodPatch, path: plansPath + "/" + planID.String(), body: update})
}

// ListPlans yields the plans of a campaign, the last one first.
func (c *Client) ListPlans(ctx context.Context, campaignID uuid.UUID) iter.Seq2[Plan, error] {
	return list[Plan](ctx, c, "list plans", campaignPath(campaignID)+"/plans", filter{})
}
