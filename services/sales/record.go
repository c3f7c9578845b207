package sales

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
)

// report is what a payment system says of a sale.
type report struct {
	ReferralCode string        `json:"referral_code"`
	CampaignID   uuid.UUID     `json:"campaign_id"`
	PlanID       uuid.UUID     `json:"plan_id"`
	Amount       money.BRL     `json:"amount_brl"`
	ExternalRef  string        `json:"external_ref"`
	SoldAt       *openapi.Time `json:"sold_at"` // nil: now
	CustomerRef  *string       `json:"customer_ref"`
	Notes        *string       `json:"notes"`
}

// receipt is the answer to a report, the same for the first and for every repeat.
type receipt struct {
	SaleID           uuid.UUID `json:"sale_id"`
	CommissionID     uuid.UUID `json:"commission_id"`
	CommissionAmount money.BRL `json:"commission_amount_brl"`
	Idempotent       bool      `json:"idempotent"`
}

// recordSale answers POST /api/v1/sales.
func (s *Service) recordSale(call *web.Call) (web.Answer, error) {
	var r report
	if err := call.Decode(&r); err != nil {
		return web.Answer{}, err
	}
	known, fresh, err := s.record(call.Context(), call.Credential, call.Tenant(), r)
	if err != nil {
		return web.Answer{}, err
	}
	if fresh {
		return web.Answer{Status: 201, Body: receipt{known.SaleID, known.CommissionID, known.CommissionAmount, false}}, nil
	}
	return web.Answer{
		Status: 200, Body: receipt{known.SaleID, known.CommissionID, known.CommissionAmount, true},
		Header: mismatchHeader(known.differences(r)),
	}, nil
}

// record records the reported sale, or finds the one that the same external_ref
// recorded before; fresh tells which.
func (s *Service) record(ctx context.Context, credential auth.Credential, tenant uuid.UUID, r report) (known sale, fresh bool, err error) {
	d := s.saleDecision(&credential, tenant, r)
	return decide(ctx, s, d, func(ctx context.Context, version int64, terms offer) (*sale, bool, error) {
		entry, err := newEntry(ctx, tenant, version, r, terms, d.now)
		if err != nil {
			return nil, false, err
		}
		outcome, err := s.recorder.submit(ctx, entry)
		if outcome.recorded {
			return &entry.sale, true, err
		}
		return outcome.known, false, err
	})
}

// saleDecision is the decision about a report of a sale that was received now.
func (s *Service) saleDecision(credential *auth.Credential, tenant uuid.UUID, r report) decision[sale] {
	now := s.deps.Now()
	return decision[sale]{
		credential: credential, tenant: tenant, now: now,
		named: r.offerKey(), dated: "sold_at", at: r.soldAt(now),
		find: func(ctx context.Context) (sale, bool, error) {
			return findSale(ctx, s.deps.Pool, tenant, r.ExternalRef)
		},
	}
}

// newEntry decides the sale and its commission and fixes the event that tells of them.
func newEntry(ctx context.Context, tenant uuid.UUID, version int64, r report, terms offer, now time.Time) (*entry, error) {
	saleID, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	commissionID, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	at := event.Instant(now)
	e := &entry{tenant: tenant, version: version, sale: sale{
		SaleID: saleID, ExternalRef: r.ExternalRef, PartnerID: terms.partnerID, ReferralCode: r.ReferralCode,
		CampaignID: r.CampaignID, PlanID: r.PlanID, Amount: r.Amount, SoldAt: r.soldAt(at),
		CustomerRef: r.CustomerRef, Notes: r.Notes,
		CommissionID: commissionID, CommissionPct: terms.pct, CommissionAmount: money.Percent(r.Amount, terms.pct),
		CreatedAt: at, holdDays: terms.holdDays,
	}}
	e.event, err = event.Seal(tenant, saleID.String(), at, event.SaleRecorded{
		SaleID: saleID, PartnerID: terms.partnerID, CampaignID: r.CampaignID, PlanID: r.PlanID,
		ExternalRef: r.ExternalRef, Amount: r.Amount, SoldAt: e.sale.SoldAt,
		CommissionID: commissionID, CommissionPct: terms.pct, CommissionAmount: e.sale.CommissionAmount, HoldDays: terms.holdDays,
	}, trace.Parent(ctx))
	return e, err
}

func (r report) offerKey() offerKey {
	return offerKey{r.ReferralCode, r.CampaignID, uuid.NullUUID{UUID: r.PlanID, Valid: true}}
}

// soldAt is when the sale was made: now, unless the report says otherwise.
func (r report) soldAt(now time.Time) time.Time { return orElse(instant(r.SoldAt), now) }
