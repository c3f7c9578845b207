package commissions

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
)

// kindSale is the kind of a commission that a sale earned.
const kindSale = "sale"

// What a commission is born as.
const (
	statusPending   = "pending"   // held back until available_at
	statusAvailable = "available" // free to withdraw
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

func scanCommission(row pgx.CollectableRow) (c commission, err error) {
	err = row.Scan(&c.ID, &c.PartnerID, &c.CampaignID, &c.PlanID, &c.Kind,
		&c.SourceSaleID, &c.SourceConversionID, &c.SourceGoalID, &c.BaseAmount, &c.Pct,
		&c.Amount, &c.Reversed, &c.Status, &c.AvailableAt.Time, &c.CreatedAt.Time)
	return c, err
}
