package goals

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

// The kinds of facts.
const (
	kindSale       = "sale"
	kindRefund     = "refund"
	kindConversion = "conversion"
)

// heard are the events that facts are made of.
var heard = []string{event.NameSaleRecorded, event.NameSaleRefunded, event.NameConversionRecorded}

// fact is something that happened, as far as goals are concerned: who brought it about,
// when, and what it adds to each metric. A refund adds less than nothing, at the moment
// and in the campaign of its sale.
//
// It says all of this by itself, so it does not matter in which order facts are heard of.
type fact struct {
	factKey
	partnerID   uuid.UUID
	campaignID  uuid.UUID
	sales       int16 // 1; -1 for the refund that leaves nothing of its sale
	amount      money.BRL
	commission  money.BRL
	conversions int16
	recorded    int64 // its number among the recordings; 0 before it is recorded
	traceparent string
}

// factKey tells facts apart, and orders them by when they happened.
type factKey struct {
	tenantID   uuid.UUID
	occurredAt time.Time // in UTC
	kind       string
	sourceID   uuid.UUID
}

func (k factKey) compare(other factKey) int {
	return cmp.Or(
		bytes.Compare(k.tenantID[:], other.tenantID[:]), k.occurredAt.Compare(other.occurredAt),
		strings.Compare(k.kind, other.kind), bytes.Compare(k.sourceID[:], other.sourceID[:]),
	)
}

// factsOf reads events of the kinds that are heard, in the order of their keys, each
// once. It fails with an Invalid fault where one of them cannot be true.
func factsOf(events []event.Sealed) ([]fact, error) {
	facts := make([]fact, len(events))
	for i, sealed := range events {
		var wrong string
		var err error
		switch sealed.Name {
		case event.NameSaleRecorded:
			facts[i], wrong, err = readFact(sealed, factOfSale)
		case event.NameSaleRefunded:
			facts[i], wrong, err = readFact(sealed, factOfRefund)
		default:
			facts[i], wrong, err = readFact(sealed, factOfConversion)
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "invalid_event", err.Error())
		}
		if wrong == "" {
			wrong = facts[i].wrong()
		}
		if wrong != "" {
			return nil, fault.Newf(fault.Invalid, "invalid_event", "%s %s: %s", facts[i].kind, facts[i].sourceID, wrong)
		}
	}
	slices.SortStableFunc(facts, func(a, b fact) int { return a.factKey.compare(b.factKey) })
	return slices.CompactFunc(facts, func(a, b fact) bool { return a.factKey.compare(b.factKey) == 0 }), nil
}

// readFact reads one event. Wrong says what cannot be true of it, or nothing.
func readFact[T event.Payload](sealed event.Sealed, of func(T) (f fact, wrong string)) (f fact, wrong string, err error) {
	e, err := event.Read[T](sealed)
	if err != nil {
		return fact{}, "", err
	}
	f, wrong = of(e.Data)
	f.tenantID, f.occurredAt, f.traceparent = e.TenantID, event.Instant(f.occurredAt), e.Traceparent
	return f, wrong, nil
}

const outOfRange = "an amount is out of range"

func factOfSale(sale event.SaleRecorded) (f fact, wrong string) {
	if sale.Amount <= 0 || sale.CommissionAmount < 0 {
		wrong = outOfRange
	}
	return fact{
		factKey:   factKey{occurredAt: sale.SoldAt, kind: kindSale, sourceID: sale.SaleID},
		partnerID: sale.PartnerID, campaignID: sale.CampaignID,
		sales: 1, amount: sale.Amount, commission: sale.CommissionAmount,
	}, wrong
}

// factOfRefund counts a sale no more from the refund on after which nothing is left of
// it. There is one such refund, since each says how much was refunded up to it.
func factOfRefund(refund event.SaleRefunded) (f fact, wrong string) {
	if refund.Amount <= 0 || refund.CommissionReversed < 0 || refund.Amount > refund.RefundedTotal || refund.RefundedTotal > refund.SaleAmount {
		wrong = outOfRange
	}
	f = fact{
		factKey:   factKey{occurredAt: refund.SoldAt, kind: kindRefund, sourceID: refund.RefundID},
		partnerID: refund.PartnerID, campaignID: refund.CampaignID,
		amount: -refund.Amount, commission: -refund.CommissionReversed,
	}
	if refund.RefundedTotal == refund.SaleAmount {
		f.sales = -1
	}
	return f, wrong
}

func factOfConversion(conversion event.ConversionRecorded) (f fact, wrong string) {
	f = fact{
		factKey:   factKey{occurredAt: conversion.OccurredAt, kind: kindConversion, sourceID: conversion.ConversionID},
		partnerID: conversion.PartnerID, campaignID: conversion.CampaignID, conversions: 1,
	}
	if conversion.CommissionAmount != nil {
		f.commission = *conversion.CommissionAmount
	}
	if f.commission < 0 {
		wrong = outOfRange
	}
	return f, wrong
}

// wrong says what cannot be true of a fact of whatever kind, or nothing.
func (f fact) wrong() string {
	switch year := f.occurredAt.Year(); {
	case f.sourceID == uuid.Nil || f.partnerID == uuid.Nil || f.campaignID == uuid.Nil:
		return "an id is missing"
	case year < 2000 || year > 9998: // its period must end in a year of four digits
		return "its time is out of range"
	default:
		return ""
	}
}

// tenantsOf returns the tenants of sorted facts, sorted, each once.
func tenantsOf(facts []fact) []uuid.UUID {
	var tenants []uuid.UUID
	for _, f := range facts {
		tenants = append(tenants, f.tenantID)
	}
	return slices.Compact(tenants)
}

// partnersOf returns the partners of facts, sorted, each once.
func partnersOf(facts []fact) []uuid.UUID {
	partners := make([]uuid.UUID, len(facts))
	for i, f := range facts {
		partners[i] = f.partnerID
	}
	slices.SortFunc(partners, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(partners)
}
