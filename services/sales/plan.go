package sales

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// plan is one rate of a campaign. A change of it never touches past sales.
type plan struct {
	PlanID           uuid.UUID  `json:"plan_id"`
	CampaignID       uuid.UUID  `json:"campaign_id"`
	Name             string     `json:"name"`
	CommissionPct    money.Pct  `json:"commission_pct"`
	ConversionAmount *money.BRL `json:"conversion_amount_brl"` // null: a conversion earns nothing
	HoldDays         int        `json:"hold_days"`
	CreatedAt        time.Time  `json:"created_at"`
}

const campaignExistsQuery = `select exists (select from campaigns where tenant_id = $1 and campaign_id = $2)`

const createPlanStatement = `
insert into plans (tenant_id, plan_id, campaign_id, name, commission_pct_e4, conversion_centavos, hold_days, external_ref, first, created_at)
values (@tenant_id, @plan_id, @campaign_id, @name, @commission_pct_e4, @conversion_centavos, @hold_days, @external_ref, @first, @created_at)
on conflict do nothing`

const firstPlanQuery = `select first from plans where tenant_id = @tenant_id and external_ref = @external_ref`

type planBody struct {
	Name             string     `json:"name"`
	CommissionPct    money.Pct  `json:"commission_pct"`
	ConversionAmount *money.BRL `json:"conversion_amount_brl"`
	HoldDays         *int       `json:"hold_days"`
	ExternalRef      *string    `json:"external_ref"`
}

// createPlan answers POST /api/v1/campaigns/{campaign_id}/plans.
func (s *Service) createPlan(call *web.Call) (web.Answer, error) {
	campaignID, err := call.PathID("campaign_id")
	if err != nil {
		return web.Answer{}, err
	}
	var body planBody
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	creation, err := s.newPlan(call.Tenant(), campaignID, body)
	if err != nil {
		return web.Answer{}, err
	}
	return create(call.Context(), s, creation)
}

// newPlan prepares a plan of the campaign; 404 where the tenant has no such campaign.
func (s *Service) newPlan(tenant, campaignID uuid.UUID, body planBody) (creation[plan], error) {
	id, err := uuid.NewV7()
	p := plan{
		PlanID: id, CampaignID: campaignID, Name: body.Name, CommissionPct: body.CommissionPct,
		ConversionAmount: body.ConversionAmount, HoldDays: orElse(body.HoldDays, 0), CreatedAt: event.Instant(s.deps.Now()),
	}
	return creation[plan]{
		tenant: tenant, externalRef: body.ExternalRef, view: p, own: "plan_id", taken: "external_ref",
		firstQuery: firstPlanQuery,
		insert: func(ctx context.Context, tx *postgres.Tx, first []byte) (bool, error) {
			var exists bool
			if err := tx.QueryRow(ctx, campaignExistsQuery, tenant, campaignID).Scan(&exists); err != nil {
				return false, err
			}
			if !exists {
				return false, web.NotFound()
			}
			tag, err := tx.Exec(ctx, createPlanStatement, pgx.NamedArgs{
				"tenant_id": tenant, "plan_id": p.PlanID, "campaign_id": campaignID, "name": p.Name,
				"commission_pct_e4": int64(p.CommissionPct), "conversion_centavos": p.ConversionAmount, "hold_days": p.HoldDays,
				"external_ref": body.ExternalRef, "first": first, "created_at": p.CreatedAt,
			})
			return tag.RowsAffected() == 1, err
		},
	}, err
}

const planColumns = `plan_id, campaign_id, name, commission_pct_e4, conversion_centavos, hold_days, created_at`

func scanPlan(row pgx.CollectableRow) (p plan, err error) {
	return p, row.Scan(&p.PlanID, &p.CampaignID, &p.Name, &p.CommissionPct, &p.ConversionAmount, &p.HoldDays, &p.CreatedAt)
}

const listPlansQuery = `
select ` + planColumns + ` from plans
where tenant_id = @tenant_id and campaign_id = @campaign_id and (@after::uuid is null or plan_id < @after)
order by plan_id desc limit @limit`

// listPlans answers GET /api/v1/campaigns/{campaign_id}/plans.
func (s *Service) listPlans(call *web.Call) (web.Answer, error) {
	campaignID, err := s.existing(call, "campaign_id", campaignExistsQuery)
	if err != nil {
		return web.Answer{}, err
	}
	return list(s, call, scanPlan, func(p plan) uuid.UUID { return p.PlanID }, listPlansQuery, pgx.NamedArgs{"campaign_id": campaignID})
}

const getPlanQuery = `select ` + planColumns + ` from plans where tenant_id = $1 and plan_id = $2`

// getPlan answers GET /api/v1/plans/{plan_id}.
func (s *Service) getPlan(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("plan_id")
	if err != nil {
		return web.Answer{}, err
	}
	return getOne(s, call, scanPlan, getPlanQuery, call.Tenant(), id)
}

const changePlanStatement = `
update plans set name = @name, commission_pct_e4 = @commission_pct_e4, conversion_centavos = @conversion_centavos, hold_days = @hold_days
where tenant_id = @tenant_id and plan_id = @plan_id`

// changePlan answers PATCH /api/v1/plans/{plan_id}.
func (s *Service) changePlan(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("plan_id")
	if err != nil {
		return web.Answer{}, err
	}
	var body struct {
		Name             *string                     `json:"name"`
		CommissionPct    *money.Pct                  `json:"commission_pct"`
		ConversionAmount openapi.Optional[money.BRL] `json:"conversion_amount_brl"`
		HoldDays         *int                        `json:"hold_days"`
	}
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	return amend(s, call, id, getPlanQuery, scanPlan, func(tx *postgres.Tx, p *plan) error {
		p.Name, p.CommissionPct = orElse(body.Name, p.Name), orElse(body.CommissionPct, p.CommissionPct)
		p.ConversionAmount, p.HoldDays = body.ConversionAmount.Over(p.ConversionAmount), orElse(body.HoldDays, p.HoldDays)
		_, err = tx.Exec(call.Context(), changePlanStatement, pgx.NamedArgs{
			"tenant_id": call.Tenant(), "plan_id": id, "name": p.Name, "commission_pct_e4": int64(p.CommissionPct),
			"conversion_centavos": p.ConversionAmount, "hold_days": p.HoldDays,
		})
		return err
	})
}
