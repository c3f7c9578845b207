package sales

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
)

// conversionReport is what a caller says of a conversion.
type conversionReport struct {
	ReferralCode string        `json:"referral_code"`
	CampaignID   uuid.UUID     `json:"campaign_id"`
	ExternalRef  string        `json:"external_ref"`
	PlanID       *uuid.UUID    `json:"plan_id"` // nil: none, and so no commission
	Type         *string       `json:"type"`    // nil: the first of conversionTypes
	CustomerRef  *string       `json:"customer_ref"`
	Value        *money.BRL    `json:"value_brl"`
	OccurredAt   *openapi.Time `json:"occurred_at"` // nil: now
	Notes        *string       `json:"notes"`
}

// conversionReceipt is the answer to a report, the same for the first and for every repeat.
type conversionReceipt struct {
	ConversionID     uuid.UUID  `json:"conversion_id"`
	CommissionID     *uuid.UUID `json:"commission_id"` // null: it earned nothing
	CommissionAmount *money.BRL `json:"commission_amount_brl"`
	Idempotent       bool       `json:"idempotent"`
}

// recordConversion answers POST /api/v1/conversions.
func (s *Service) recordConversion(call *web.Call) (web.Answer, error) {
	var r conversionReport
	if err := call.Decode(&r); err != nil {
		return web.Answer{}, err
	}
	known, fresh, err := s.convert(call.Context(), call.Credential, call.Tenant(), r)
	if err != nil {
		return web.Answer{}, err
	}
	answer := web.Answer{Status: 201, Body: conversionReceipt{known.ConversionID, known.CommissionID, known.CommissionAmount, !fresh}}
	if !fresh {
		answer.Status, answer.Header = 200, mismatchHeader(known.differences(r))
	}
	return answer, nil
}

const findConversionQuery = `select ` + conversionColumns + ` from conversions where tenant_id = $1 and external_ref = $2 for key share` // as a sale

// convert records the reported conversion, or finds the one that the same external_ref
// recorded before; fresh tells which.
func (s *Service) convert(ctx context.Context, credential auth.Credential, tenant uuid.UUID, r conversionReport) (known conversion, fresh bool, err error) {
	now := s.deps.Now()
	d := decision[conversion]{
		credential: &credential, tenant: tenant, now: now,
		named: r.offerKey(), dated: "occurred_at", at: r.occurredAt(now),
		find: func(ctx context.Context) (conversion, bool, error) {
			c, found, err := one(ctx, s.deps.Pool, scanConversion, findConversionQuery, tenant, r.ExternalRef)
			if err != nil {
				return c, false, fmt.Errorf("find conversion: %w", err)
			}
			return c, found, nil
		},
	}
	return decide(ctx, s, d, func(ctx context.Context, version int64, terms offer) (*conversion, bool, error) {
		c, err := newConversion(r, terms, event.Instant(now))
		if err != nil {
			return nil, false, err
		}
		recorded, err := s.insertConversion(ctx, tenant, version, c)
		if err != nil || recorded {
			return &c, recorded, err
		}
		earlier, found, err := d.find(ctx)
		if err != nil || !found {
			return nil, false, err
		}
		return &earlier, false, nil
	})
}

// newConversion decides the conversion and, where the terms have one for it, its commission.
func newConversion(r conversionReport, terms offer, at time.Time) (conversion, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return conversion{}, err
	}
	c := conversion{
		ConversionID: id, ExternalRef: r.ExternalRef, Type: r.kind(), PartnerID: terms.partnerID, ReferralCode: r.ReferralCode,
		CampaignID: r.CampaignID, PlanID: r.PlanID, Value: r.Value, OccurredAt: r.occurredAt(at),
		CustomerRef: r.CustomerRef, Notes: r.Notes, CreatedAt: at,
	}
	if terms.conversion != nil {
		commissionID, err := uuid.NewV7()
		if err != nil {
			return conversion{}, err
		}
		c.CommissionID, c.CommissionAmount = &commissionID, terms.conversion
	}
	return c, nil
}

// A conversion is recorded only if the tenant's catalogue is still the one on which it
// was decided, and its external_ref is new.
const recordConversionStatement = `
insert into conversions (tenant_id, conversion_id, external_ref, type, referral_code, partner_id, campaign_id, plan_id, value_centavos,
                         commission_id, commission_centavos, occurred_at, customer_ref, notes, created_at)
select @tenant_id, @conversion_id, @external_ref, @type, @referral_code, @partner_id, @campaign_id, @plan_id, @value_centavos,
       @commission_id, @commission_centavos, @occurred_at, @customer_ref, @notes, @created_at
from tenants where tenant_id = @tenant_id and catalogue_version = @version
on conflict (tenant_id, external_ref) do nothing`

// insertConversion records the conversion and its event in one transaction. It reports
// false where the external_ref is known or the catalogue has changed.
func (s *Service) insertConversion(ctx context.Context, tenant uuid.UUID, version int64, c conversion) (recorded bool, err error) {
	told, err := event.Seal(tenant, c.ConversionID.String(), c.CreatedAt, event.ConversionRecorded{
		ConversionID: c.ConversionID, PartnerID: c.PartnerID, CampaignID: c.CampaignID, PlanID: c.PlanID, Type: c.Type,
		ExternalRef: c.ExternalRef, Value: c.Value, CommissionID: c.CommissionID, CommissionAmount: c.CommissionAmount, OccurredAt: c.OccurredAt,
	}, trace.Parent(ctx))
	if err != nil {
		return false, err
	}
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		tag, err := tx.Exec(ctx, recordConversionStatement, pgx.NamedArgs{
			"tenant_id": tenant, "version": version, "conversion_id": c.ConversionID, "external_ref": c.ExternalRef, "type": c.Type,
			"referral_code": c.ReferralCode, "partner_id": c.PartnerID, "campaign_id": c.CampaignID, "plan_id": c.PlanID,
			"value_centavos": c.Value, "commission_id": c.CommissionID, "commission_centavos": c.CommissionAmount,
			"occurred_at": c.OccurredAt, "customer_ref": c.CustomerRef, "notes": c.Notes, "created_at": c.CreatedAt,
		})
		if recorded = tag.RowsAffected() == 1; err != nil || !recorded {
			return err
		}
		s.relay.Add(tx, told)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("record conversion: %w", err)
	}
	return recorded, nil
}

func (r conversionReport) offerKey() offerKey {
	named := offerKey{referralCode: r.ReferralCode, campaignID: r.CampaignID}
	if r.PlanID != nil {
		named.planID = uuid.NullUUID{UUID: *r.PlanID, Valid: true}
	}
	return named
}

// kind is the type of the conversion: a lead, unless the report says otherwise.
func (r conversionReport) kind() string { return orElse(r.Type, conversionTypes[0]) }

// occurredAt is when it happened: now, unless the report says otherwise.
func (r conversionReport) occurredAt(now time.Time) time.Time {
	return orElse(instant(r.OccurredAt), now)
}

// differences names the members of a repeat that do not say what the first report
// said. Values are compared, and leaving occurred_at out is no difference.
func (c conversion) differences(r conversionReport) []string {
	return differing(
		compared{"campaign_id", c.CampaignID == r.CampaignID},
		compared{"customer_ref", c.erased || equal(c.CustomerRef, r.CustomerRef)},
		compared{"notes", c.erased || equal(c.Notes, r.Notes)},
		compared{"occurred_at", r.OccurredAt == nil || c.OccurredAt.Equal(r.OccurredAt.Time)},
		compared{"plan_id", equal(c.PlanID, r.PlanID)},
		compared{"referral_code", c.ReferralCode == r.ReferralCode},
		compared{"type", c.Type == r.kind()},
		compared{"value_brl", equal(c.Value, r.Value)},
	)
}
