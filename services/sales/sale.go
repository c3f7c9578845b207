package sales

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/money"
	"partilha.dev/pkg/web"
)

// sale is a recorded sale as it is shown.
type sale struct {
	SaleID           uuid.UUID `json:"sale_id"`
	ExternalRef      string    `json:"external_ref"`
	PartnerID        uuid.UUID `json:"partner_id"`
	ReferralCode     string    `json:"referral_code"` // as it was reported
	CampaignID       uuid.UUID `json:"campaign_id"`
	PlanID           uuid.UUID `json:"plan_id"`
	Amount           money.BRL `json:"amount_brl"`
	SoldAt           time.Time `json:"sold_at"`
	CustomerRef      *string   `json:"customer_ref"`
	Notes            *string   `json:"notes"`
	CommissionID     uuid.UUID `json:"commission_id"`
	CommissionPct    money.Pct `json:"commission_pct"` // the rate at which it was made
	CommissionAmount money.BRL `json:"commission_amount_brl"`
	Refunded         money.BRL `json:"refunded_total_brl"`
	CreatedAt        time.Time `json:"created_at"`

	holdDays int
	erased   bool // the customer was forgotten, and what there was of CustomerRef and Notes with it
}

const saleColumns = `
sale_id, external_ref, partner_id, referral_code, campaign_id, plan_id, amount_centavos, sold_at, customer_ref, notes,
commission_id, commission_pct_e4, commission_centavos, refunded_centavos, created_at, hold_days, erased_at is not null as erased`

// targets are where a row of saleColumns is read into.
func (s *sale) targets() []any {
	return []any{&s.SaleID, &s.ExternalRef, &s.PartnerID, &s.ReferralCode, &s.CampaignID, &s.PlanID, &s.Amount, &s.SoldAt, &s.CustomerRef, &s.Notes,
		&s.CommissionID, &s.CommissionPct, &s.CommissionAmount, &s.Refunded, &s.CreatedAt, &s.holdDays, &s.erased}
}

func scanSale(row pgx.CollectableRow) (s sale, err error) {
	return s, row.Scan(s.targets()...)
}

const getSaleQuery = `select ` + saleColumns + ` from sales where tenant_id = $1 and sale_id = $2`

// getSale answers GET /api/v1/sales/{sale_id}.
func (s *Service) getSale(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("sale_id")
	if err != nil {
		return web.Answer{}, err
	}
	return getOne(s, call, scanSale, getSaleQuery, call.Tenant(), id)
}
