package sales

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
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

// decideWithin bounds for how long one report is decided anew while the catalogue keeps
// changing under it.
const decideWithin = 5 * time.Second

// record records the reported sale, or finds the one that the same external_ref
// recorded before; fresh tells which. Everything that may refuse the sale is looked
// at only after no earlier sale was found.
//
// The decision is taken from memory and verified by the statement that records the
// sale. If the catalogue has changed meanwhile, the key and the terms are read again
// and the report is decided anew.
func (s *Service) record(ctx context.Context, credential auth.Credential, tenant uuid.UUID, r report) (known sale, fresh bool, err error) {
	for now, deadline := s.deps.Now(), time.Now().Add(decideWithin); ; {
		entry, earlier, err := s.decide(ctx, credential, tenant, r, now, deadline)
		switch {
		case err != nil:
			return sale{}, false, err
		case earlier != nil:
			return *earlier, false, nil
		}
		switch outcome, err := s.recorder.submit(ctx, entry); {
		case err != nil:
			return sale{}, false, err
		case outcome.recorded:
			return entry.sale, true, nil
		case outcome.known != nil:
			return *outcome.known, false, nil
		}
		s.catalogue.outdated(tenant, entry.version)
	}
}

// decide makes the entry that records the reported sale, or finds the sale that the
// same external_ref recorded before.
func (s *Service) decide(ctx context.Context, credential auth.Credential, tenant uuid.UUID, r report, now, deadline time.Time) (*entry, *sale, error) {
	for time.Now().Before(deadline) {
		key, version, ok := s.catalogue.recall(credential.KeyID)
		if !ok || key.Admit(credential, auth.SalesWrite, now) != nil {
			fresh, _, err := s.catalogue.readKey(ctx, credential.KeyID)
			if err != nil {
				return nil, nil, err
			}
			if err := fresh.Admit(credential, auth.SalesWrite, now); err != nil {
				return nil, nil, err
			}
			continue
		}
		terms, offeredAt, ok := s.catalogue.offer(tenant, r.offerKey())
		if !ok || terms.refuses(r, now) != nil {
			known, found, err := s.considerAnew(ctx, tenant, r, now)
			if err != nil {
				return nil, nil, err
			}
			if found {
				return nil, &known, nil
			}
			continue
		}
		if offeredAt != version {
			continue // the snapshot was replaced between the two look-ups
		}
		entry, err := newEntry(ctx, tenant, version, r, terms, now)
		return entry, nil, err
	}
	return nil, nil, fault.New(fault.Unavailable, "unavailable", "the catalogue is changing too fast; repeat the same call")
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

func (r report) offerKey() offerKey { return offerKey{r.ReferralCode, r.CampaignID, r.PlanID} }

// soldAt is when the sale was made: now, unless the report says otherwise.
func (r report) soldAt(now time.Time) time.Time {
	if r.SoldAt == nil {
		return now
	}
	return r.SoldAt.Time
}
