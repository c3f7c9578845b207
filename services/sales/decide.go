package sales

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

// decision is one report on its way to becoming a fact: a sale or a conversion, which
// is a T.
type decision[T any] struct {
	credential *auth.Credential // whose key must hold; nil: the operator's own command asks
	tenant     uuid.UUID
	now        time.Time
	deadline   time.Time // by which it must be decided, by the computer's own clock; none before its turn has come

	named offerKey  // what the report names of the catalogue
	dated string    // the member that says when it happened
	at    time.Time // when that was

	// find returns what the report's external_ref recorded before, if it did.
	find func(ctx context.Context) (T, bool, error)
}

// decideWithin bounds for how long one report is decided anew while the catalogue keeps
// changing under it.
const decideWithin = 5 * time.Second

// decide records what is reported, or finds what the same external_ref recorded
// before; fresh tells which.
//
// The decision is taken from memory and verified by the statement that records. If the
// catalogue has changed meanwhile, the key and the terms are read again and the report
// is decided anew. So record must record the report at the given terms only if the
// tenant's catalogue is still of that version and the external_ref is new; it returns
// what the external_ref has recorded, and whether it was this call that did; nil where
// the catalogue has changed.
func decide[T any](ctx context.Context, s *Service, d decision[T], record func(ctx context.Context, version int64, terms offer) (known *T, fresh bool, err error)) (known T, fresh bool, err error) {
	d.begin()
	for {
		terms, version, earlier, err := agree(ctx, s, d)
		if err != nil {
			return known, false, err
		}
		if earlier != nil {
			return *earlier, false, nil
		}
		recorded, fresh, err := record(ctx, version, terms)
		if err != nil {
			return known, false, err
		}
		if recorded != nil {
			return *recorded, fresh, nil
		}
		s.catalogue.outdated(d.tenant, version)
	}
}

// begin starts the time in which the report must be decided, unless it has begun before:
// a report that waits for others has all of it when its turn comes, and no more where it
// is decided anew.
func (d *decision[T]) begin() {
	if d.deadline.IsZero() {
		d.deadline = time.Now().Add(decideWithin)
	}
}

// agree returns the terms at which the report may be recorded and the version of the
// catalogue that has them, or else what the report's external_ref recorded before.
// Everything that may refuse the report is looked at only after nothing earlier was found.
func agree[T any](ctx context.Context, s *Service, d decision[T]) (terms offer, version int64, earlier *T, err error) {
	for time.Now().Before(d.deadline) {
		version, admitted, err := s.admit(ctx, d.credential, d.now)
		if err != nil {
			return terms, 0, nil, err
		}
		if !admitted {
			continue
		}
		terms, offeredAt, ok := s.catalogue.offer(d.tenant, d.named)
		if !ok || d.refusal(terms) != nil {
			known, found, err := considerAnew(ctx, s, d)
			if err != nil {
				return terms, 0, nil, err
			}
			if found {
				return terms, 0, &known, nil
			}
			continue
		}
		if offeredAt == version || d.credential == nil {
			return terms, offeredAt, nil, nil
		} // else the snapshot was replaced between the two look-ups
	}
	return terms, 0, nil, fault.New(fault.Unavailable, "unavailable", "the catalogue is changing too fast; repeat the same call")
}

// admit tells whether the credential's key is remembered and holds, and the version of
// the catalogue in which it does. Where it does not, the key is read again for the next
// look, and is refused if it does not hold then.
func (s *Service) admit(ctx context.Context, credential *auth.Credential, now time.Time) (version int64, admitted bool, err error) {
	if credential == nil {
		return 0, true, nil
	}
	key, version, ok := s.catalogue.recall(credential.KeyID)
	if ok && key.Admit(*credential, auth.SalesWrite, now) == nil {
		return version, true, nil
	}
	fresh, _, err := s.catalogue.readKey(ctx, credential.KeyID)
	if err == nil {
		err = fresh.Admit(*credential, auth.SalesWrite, now)
	}
	if err != nil {
		return 0, false, err
	}
	if key, _, ok := s.catalogue.recall(credential.KeyID); !ok || key.Admit(*credential, auth.SalesWrite, now) != nil {
		s.catalogue.forget(fresh.TenantID) // as in considerAnew
	}
	return 0, false, nil
}

// maxAhead is how far in the future a sale may lie: clocks differ, and a day's
// closing may be reported early.
const maxAhead = 24 * time.Hour

func createFailed(format string, args ...any) error {
	return fault.Newf(fault.Rule, "create_failed", format, args...)
}

// refusal checks what depends on the report as well as on the terms: the dates.
func (d decision[T]) refusal(terms offer) error {
	switch {
	case d.at.After(d.now.Add(maxAhead)):
		return createFailed("%s lies more than 24 hours ahead", d.dated)
	case terms.startsAt != nil && d.at.Before(*terms.startsAt):
		return createFailed("%s lies before the campaign's starts_at", d.dated)
	case terms.endsAt != nil && d.at.After(*terms.endsAt):
		return createFailed("%s lies after the campaign's ends_at", d.dated)
	default:
		return nil
	}
}

const considerQuery = `
select t.catalogue_version,
       p.partner_id, p.status,
       c.status, c.starts_at, c.ends_at,
       l.partner_id is not null,
       pl.campaign_id, pl.commission_pct_e4, pl.hold_days, pl.conversion_centavos
from tenants t
left join partners p   on p.tenant_id = t.tenant_id and p.referral_code = @referral_code
left join campaigns c  on c.tenant_id = t.tenant_id and c.campaign_id = @campaign_id
left join plans pl     on pl.tenant_id = t.tenant_id and pl.plan_id = @plan_id
left join links l      on l.tenant_id = t.tenant_id and l.campaign_id = c.campaign_id and l.partner_id = p.partner_id
where t.tenant_id = @tenant_id`

// considerAnew decides the report on what the database says now. It returns what the
// external_ref recorded before, if it did; else the refusal, if there is one; else
// neither, after remembering the terms for the next look.
func considerAnew[T any](ctx context.Context, s *Service, d decision[T]) (known T, found bool, err error) {
	terms, version, refusal, err := s.considerTerms(ctx, d.tenant, d.named)
	if err != nil {
		return known, false, err
	}
	if refusal == nil {
		refusal = d.refusal(terms)
	}
	if refusal != nil {
		known, found, err := d.find(ctx)
		if err != nil || found {
			return known, found, err
		}
		return known, false, refusal
	}
	s.catalogue.remember(d.tenant, version, func(s *snapshot) { s.offers[d.named] = terms })
	if _, remembered, _ := s.catalogue.offer(d.tenant, d.named); remembered > version {
		// Either the catalogue has changed since it was read, or the database has gone back
		// in time, to a standby or a backup. Then nothing that it says would ever be kept.
		s.catalogue.outdated(d.tenant, remembered)
	}
	return known, false, nil
}

// considerTerms reads at which terms the partner sells, or why not. The partner is
// looked at first, and a campaign of another tenant reads like none.
func (s *Service) considerTerms(ctx context.Context, tenant uuid.UUID, named offerKey) (terms offer, version int64, refusal, err error) {
	var partnerID, planCampaign *uuid.UUID
	var partnerStatus, campaignStatus *string
	var linked bool
	var pct, holdDays *int64
	err = s.deps.Pool.QueryRow(ctx, considerQuery, pgx.NamedArgs{
		"tenant_id": tenant, "referral_code": named.referralCode, "campaign_id": named.campaignID, "plan_id": named.planID,
	}).Scan(&version, &partnerID, &partnerStatus, &campaignStatus, &terms.startsAt, &terms.endsAt, &linked, &planCampaign, &pct, &holdDays, &terms.conversion)
	if err != nil {
		return terms, 0, nil, fmt.Errorf("read terms: %w", postgres.Explain(err))
	}
	switch {
	case partnerID == nil || *partnerStatus != "active":
		refusal = fault.New(fault.NotFound, "partner_not_found", "no active partner has this referral_code")
	case campaignStatus == nil:
		refusal = createFailed("there is no campaign with this campaign_id")
	case *campaignStatus != "active":
		refusal = createFailed("the campaign is not active")
	case named.planID.Valid && (planCampaign == nil || *planCampaign != named.campaignID):
		refusal = createFailed("the plan does not belong to the campaign")
	case !linked:
		refusal = createFailed("the partner is not linked to the campaign")
	default:
		terms.partnerID, terms.pct, terms.holdDays = *partnerID, money.Pct(orElse(pct, 0)), int(orElse(holdDays, 0))
	}
	return terms, version, refusal, nil
}
