package client

import (
	"context"
	"iter"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/money"
)

// Commission is what a partner earned once, and from what: Base × Pct is Amount. It can
// be read a moment after the sale that it comes from was answered.
type Commission struct {
	CommissionID       uuid.UUID  `json:"commission_id"`
	PartnerID          uuid.UUID  `json:"partner_id"`
	CampaignID         *uuid.UUID `json:"campaign_id"`
	PlanID             *uuid.UUID `json:"plan_id"`
	Kind               string     `json:"kind"` // sale, conversion or bonus
	SourceSaleID       *uuid.UUID `json:"source_sale_id"`
	SourceConversionID *uuid.UUID `json:"source_conversion_id"`
	SourceGoalID       *uuid.UUID `json:"source_goal_id"`
	Base               *money.BRL `json:"base_amount_brl"`
	Pct                *money.Pct `json:"commission_pct"`
	Amount             money.BRL  `json:"commission_amount_brl"`
	Reversed           money.BRL  `json:"reversed_brl"`
	Status             string     `json:"status"` // pending, available, paid or reversed
	AvailableAt        time.Time  `json:"available_at"`
	CreatedAt          time.Time  `json:"created_at"`
}

const commissionsPath = "/api/v1/commissions"

// GetCommission reads one commission.
func (c *Client) GetCommission(ctx context.Context, commissionID uuid.UUID) (Commission, error) {
	return read[Commission](ctx, c, "read commission", commissionsPath+"/"+commissionID.String())
}

// CommissionFilter narrows a list of commissions. A zero member narrows nothing.
type CommissionFilter struct {
	PartnerID    uuid.UUID
	CampaignID   uuid.UUID
	Status       string
	SourceSaleID uuid.UUID
	CreatedFrom  time.Time // created then or later
	CreatedTo    time.Time // created before
}

// ListCommissions yields the commissions that the filter lets through, the last one first.
func (c *Client) ListCommissions(ctx context.Context, f CommissionFilter) iter.Seq2[Commission, error] {
	return list[Commission](ctx, c, "list commissions", commissionsPath, filter{}.id("partner_id", f.PartnerID).
		id("campaign_id", f.CampaignID).text("status", f.Status).id("source_sale_id", f.SourceSaleID).
		time("created_from", f.CreatedFrom).time("created_to", f.CreatedTo))
}
