package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/money"
)

// ConversionReport is something short of a sale that a partner brought about.
type ConversionReport struct {
	ReferralCode string    `json:"referral_code"` // whose it is
	CampaignID   uuid.UUID `json:"campaign_id"`
	ExternalRef  string    `json:"external_ref"` // the caller's own name for it, 1 to 255 characters

	PlanID      uuid.UUID `json:"plan_id,omitzero"` // which sets the commission; zero: none is earned
	Type        string    `json:"type,omitzero"`    // lead, signup, trial or custom; "" is lead
	Value       money.BRL `json:"value_brl,omitzero"`
	OccurredAt  time.Time `json:"occurred_at,omitzero"` // zero: the moment at which it is recorded
	CustomerRef string    `json:"customer_ref,omitzero"`
	Notes       string    `json:"notes,omitzero"`
}

// ConversionReceipt is what a report of a conversion is answered. Its pointers are nil
// where it earned no commission.
type ConversionReceipt struct {
	ConversionID     uuid.UUID  `json:"conversion_id"`
	CommissionID     *uuid.UUID `json:"commission_id"`
	CommissionAmount *money.BRL `json:"commission_amount_brl"` // final
	Repeat
}

const conversionsPath = "/api/v1/conversions"

// RecordConversion records the conversion once, however often it is reported. It is
// refused as a sale is, see [Client.RecordSale]. Without an ExternalRef nothing is sent.
func (c *Client) RecordConversion(ctx context.Context, report ConversionReport) (ConversionReceipt, error) {
	const what = "record conversion"
	if report.ExternalRef == "" {
		return ConversionReceipt{}, fmt.Errorf("%s: %w", what, errNoRef)
	}
	return send[ConversionReceipt](ctx, c, call{what: what, method: http.MethodPost, path: conversionsPath, body: report, repeatable: true})
}

// Conversion is a recorded conversion.
type Conversion struct {
	ConversionID     uuid.UUID  `json:"conversion_id"`
	ExternalRef      string     `json:"external_ref"`
	Type             string     `json:"type"`
	PartnerID        uuid.UUID  `json:"partner_id"`
	ReferralCode     string     `json:"referral_code"` // as it was reported
	CampaignID       uuid.UUID  `json:"campaign_id"`
	PlanID           *uuid.UUID `json:"plan_id"` // nil: none was named
	Value            *money.BRL `json:"value_brl"`
	OccurredAt       time.Time  `json:"occurred_at"`
	CustomerRef      *string    `json:"customer_ref"`
	Notes            *string    `json:"notes"`
	CommissionID     *uuid.UUID `json:"commission_id"` // nil: it earned nothing
	CommissionAmount *money.BRL `json:"commission_amount_brl"`
	CreatedAt        time.Time  `json:"created_at"`
}

// GetConversion reads one conversion.
func (c *Client) GetConversion(ctx context.Context, conversionID uuid.UUID) (Conversion, error) {
	return read[Conversion](ctx, c, "read conversion", conversionsPath+"/"+conversionID.String())
}

// ConversionFilter narrows a list of conversions. A zero member narrows nothing.
type ConversionFilter struct {
	ExternalRef string
	PartnerID   uuid.UUID
	CampaignID  uuid.UUID
	Type        string
}

// ListConversions yields the conversions that the filter lets through, the last one first.
func (c *Client) ListConversions(ctx context.Context, f ConversionFilter) iter.Seq2[Conversion, error] {
	return list[Conversion](ctx, c, "list conversions", conversionsPath, filter{}.text("external_ref", f.ExternalRef).
		id("partner_id", f.PartnerID).id("campaign_id", f.CampaignID).text("type", f.Type))
}
