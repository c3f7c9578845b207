package sales

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
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
}

const saleColumns = `
sale_id, external_ref, partner_id, referral_code, campaign_id, plan_id, amount_centavos, sold_at, customer_ref, notes,
commission_id, commission_pct_e4, commission_centavos, refunded_centavos, created_at, hold_days`

// targets are where a row of saleColumns is read into.
func (s *sale) targets() []any {
	return []any{&s.SaleID, &s.ExternalRef, &s.PartnerID, &s.ReferralCode, &s.CampaignID, &s.PlanID, &s.Amount, &s.SoldAt, &s.CustomerRef, &s.Notes,
		&s.CommissionID, &s.CommissionPct, &s.CommissionAmount, &s.Refunded, &s.CreatedAt, &s.holdDays}
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

const listSalesQuery = `
select ` + saleColumns + ` from sales
where tenant_id = @tenant_id and (@after::uuid is null or sale_id < @after)
  and (@external_ref::text is null or external_ref = @external_ref)
  and (@partner_id::uuid is null or partner_id = @partner_id)
  and (@campaign_id::uuid is null or campaign_id = @campaign_id)
order by sale_id desc limit @limit`

// listSales answers GET /api/v1/sales.
func (s *Service) listSales(call *web.Call) (web.Answer, error) {
	if err := call.Query("limit", "cursor", "external_ref", "partner_id", "campaign_id"); err != nil {
		return web.Answer{}, err
	}
	partner, err := call.QueryID("partner_id")
	if err != nil {
		return web.Answer{}, err
	}
	campaign, err := call.QueryID("campaign_id")
	if err != nil {
		return web.Answer{}, err
	}
	filters := pgx.NamedArgs{"external_ref": call.QueryText("external_ref"), "partner_id": partner, "campaign_id": campaign}
	return list(s, call, scanSale, func(s sale) uuid.UUID { return s.SaleID }, listSalesQuery, filters)
}

// list answers one page of rows of the caller's tenant, newest first. The query takes
// tenant_id, after and limit beside its filters. No plan of it is kept: it is planned for
// the filters that this call gives, so that each of them is looked up in its index.
func list[T any](s *Service, call *web.Call, scan pgx.RowToFunc[T], id func(T) uuid.UUID, query string, filters pgx.NamedArgs) (web.Answer, error) {
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	filters["tenant_id"], filters["after"], filters["limit"] = call.Tenant(), page.After, page.Limit+1
	rows, err := s.deps.Pool.Query(call.Context(), query, pgx.QueryExecModeCacheDescribe, filters)
	if err != nil {
		return web.Answer{}, fmt.Errorf("list: %w", postgres.Explain(err))
	}
	found, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return web.Answer{}, fmt.Errorf("list: %w", postgres.Explain(err))
	}
	return web.Cut(page, found, id), nil
}

// getOne answers the one row that the query finds, or 404.
func getOne[T any](s *Service, call *web.Call, scan pgx.RowToFunc[T], query string, args ...any) (web.Answer, error) {
	row, found, err := find(call.Context(), s.deps.Pool, scan, query, args...)
	if err != nil {
		return web.Answer{}, err
	}
	if !found {
		return web.Answer{}, web.NotFound()
	}
	return web.Answer{Status: 200, Body: row}, nil
}
