package commissions

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
)

// What a commission is earned with.
const (
	kindSale       = "sale"
	kindConversion = "conversion"
	kindBonus      = "bonus" // a goal's reward
)

// What a commission can be. It is born pending or available.
const (
	statusPending   = "pending"   // held back until available_at
	statusAvailable = "available" // free to withdraw
	statusPaid      = "paid"      // covered by a withdrawal that was paid
	statusReversed  = "reversed"  // taken back wholly
)

// commission is what a partner earned once, and from what, as the API shows it.
type commission struct {
	ID                 uuid.UUID    `json:"commission_id"`
	PartnerID          uuid.UUID    `json:"partner_id"`
	CampaignID         *uuid.UUID   `json:"campaign_id"`
	PlanID             *uuid.UUID   `json:"plan_id"`
	Kind               string       `json:"kind"`
	SourceSaleID       *uuid.UUID   `json:"source_sale_id"`
	SourceConversionID *uuid.UUID   `json:"source_conversion_id"`
	SourceGoalID       *uuid.UUID   `json:"source_goal_id"`
	BaseAmount         *money.BRL   `json:"base_amount_brl"`
	Pct                *money.Pct   `json:"commission_pct"`
	Amount             money.BRL    `json:"commission_amount_brl"`
	Reversed           money.BRL    `json:"reversed_brl"`
	Status             string       `json:"status"`
	AvailableAt        openapi.Time `json:"available_at"`
	CreatedAt          openapi.Time `json:"created_at"`
}

// commissionColumns are what scanCommission reads, in its order.
const commissionColumns = `commission_id, partner_id, campaign_id, plan_id, kind,
	source_sale_id, source_conversion_id, source_goal_id, base_amount_centavos, commission_pct_e4,
	commission_amount_centavos, reversed_centavos, status, available_at, created_at`

func (c *commission) targets() []any {
	return []any{&c.ID, &c.PartnerID, &c.CampaignID, &c.PlanID, &c.Kind,
		&c.SourceSaleID, &c.SourceConversionID, &c.SourceGoalID, &c.BaseAmount, &c.Pct,
		&c.Amount, &c.Reversed, &c.Status, &c.AvailableAt.Time, &c.CreatedAt.Time}
}

func scanCommission(row pgx.CollectableRow) (c commission, err error) {
	err = row.Scan(c.targets()...)
	return c, err
}

// ownedCommission is a commission among those of several tenants.
type ownedCommission struct {
	commission
	tenant uuid.UUID
}

// ownedColumns are what scanOwnedCommission reads, in its order, of commissions as c.
const ownedColumns = `c.tenant_id, c.commission_id, c.partner_id, c.campaign_id, c.plan_id, c.kind,
	c.source_sale_id, c.source_conversion_id, c.source_goal_id, c.base_amount_centavos, c.commission_pct_e4,
	c.commission_amount_centavos, c.reversed_centavos, c.status, c.available_at, c.created_at`

func scanOwnedCommission(row pgx.CollectableRow) (*ownedCommission, error) {
	var c ownedCommission
	return &c, row.Scan(append([]any{&c.tenant}, c.targets()...)...)
}
