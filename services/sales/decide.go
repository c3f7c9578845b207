package sales

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

// maxAhead is how far in the future a sale may lie: clocks differ, and a day's
// closing may be reported early.
const maxAhead = 24 * time.Hour

func createFailed(format string, args ...any) error {
	return fault.Newf(fault.Rule, "create_failed", format, args...)
}

// refuses checks what depends on the report as well as on the terms: the dates.
func (o offer) refuses(r report, now time.Time) error {
	soldAt := r.soldAt(now)
	switch {
	case soldAt.After(now.Add(maxAhead)):
		return createFailed("sold_at lies more than 24 hours ahead")
	case o.startsAt != nil && soldAt.Before(*o.startsAt):
		return createFailed("sold_at lies before the campaign's starts_at")
	case o.endsAt != nil && soldAt.After(*o.endsAt):
		return createFailed("sold_at lies after the campaign's ends_at")
	default:
		return nil
	}
}

const considerQuery = `
select t.catalogue_version,
       p.partner_id, p.status,
       c.status, c.starts_at, c.ends_at,
       l.partner_id is not null,
       pl.campaign_id, pl.commission_pct_e4, pl.hold_days
from tenants t
left join partners p   on p.tenant_id = t.tenant_id and p.referral_code = @referral_code
left join campaigns c  on c.tenant_id = t.tenant_id and c.campaign_id = @campaign_id
left join plans pl     on pl.tenant_id = t.tenant_id and pl.plan_id = @plan_id
left join links l      on l.tenant_id = t.tenant_id and l.campaign_id = c.campaign_id and l.partner_id = p.partner_id
where t.tenant_id = @tenant_id`

// considerAnew decides the report on what the database says now. It returns the sale
// that the external_ref recorded before, if there is one; else the refusal, if there
// is one; else neither, after remembering the terms for the next look.
func (s *Service) considerAnew(ctx context.Context, tenant uuid.UUID, r report, now time.Time) (known sale, found bool, err error) {
	terms, version, refusal, err := s.considerTerms(ctx, tenant, r)
	if err != nil {
		return sale{}, false, err
	}
	if refusal == nil {
		refusal = terms.refuses(r, now)
	}
	if refusal != nil {
		known, found, err := findSale(ctx, s.deps.Pool, tenant, r.ExternalRef)
		if err != nil || found {
			return known, found, err
		}
		return sale{}, false, refusal
	}
	s.catalogue.remember(tenant, version, func(s *snapshot) { s.offers[r.offerKey()] = terms })
	return sale{}, false, nil
}

// considerTerms reads at which terms the sale may be made, or why it may not. The
// partner is looked at first, and a campaign of another tenant reads like none.
func (s *Service) considerTerms(ctx context.Context, tenant uuid.UUID, r report) (terms offer, version int64, refusal, err error) {
	var partnerID, planCampaign *uuid.UUID
	var partnerStatus, campaignStatus *string
	var linked bool
	var pct, holdDays *int64
	err = s.deps.Pool.QueryRow(ctx, considerQuery, pgx.NamedArgs{
		"tenant_id": tenant, "referral_code": r.ReferralCode, "campaign_id": r.CampaignID, "plan_id": r.PlanID,
	}).Scan(&version, &partnerID, &partnerStatus, &campaignStatus, &terms.startsAt, &terms.endsAt, &linked, &planCampaign, &pct, &holdDays)
	if err != nil {
		return terms, 0, nil, fmt.Errorf("read the terms of a sale: %w", postgres.Explain(err))
	}
	switch {
	case partnerID == nil || *partnerStatus != "active":
		refusal = fault.New(fault.NotFound, "partner_not_found", "no active partner has this referral_code")
	case campaignStatus == nil:
		refusal = createFailed("there is no campaign with this campaign_id")
	case *campaignStatus != "active":
		refusal = createFailed("the campaign is not active")
	case planCampaign == nil || *planCampaign != r.CampaignID:
		refusal = createFailed("the plan does not belong to the campaign")
	case !linked:
		refusal = createFailed("the partner is not linked to the campaign")
	default:
		terms.partnerID, terms.pct, terms.holdDays = *partnerID, money.Pct(*pct), int(*holdDays)
	}
	return terms, version, refusal, nil
}
