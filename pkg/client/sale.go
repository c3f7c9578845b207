package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/money"
)

// SaleReport is a sale as a payment system knows it.
type SaleReport struct {
	ReferralCode string    `json:"referral_code"` // whose sale it is
	CampaignID   uuid.UUID `json:"campaign_id"`
	PlanID       uuid.UUID `json:"plan_id"`
	Amount       money.BRL `json:"amount_brl"`
	ExternalRef  string    `json:"external_ref"` // the caller's own name for the sale, 1 to 255 characters

	SoldAt      time.Time `json:"sold_at,omitzero"` // zero: the moment at which it is recorded
	CustomerRef string    `json:"customer_ref,omitzero"`
	Notes       string    `json:"notes,omitzero"`
}

// SaleReceipt is what a report is answered.
type SaleReceipt struct {
	SaleID           uuid.UUID `json:"sale_id"`
	CommissionID     uuid.UUID `json:"commission_id"`
	CommissionAmount money.BRL `json:"commission_amount_brl"` // final
	Repeat
}

// errNoRef refuses a report that could not be repeated safely.
var errNoRef = errors.New("ExternalRef is empty, so a lost answer could not be told from a lost report; nothing was sent")

const salesPath = "/api/v1/sales"

// RecordSale records the sale once, however often it is reported, and answers with the
// commission that the partner earned by it.
//
// A code that matches no active partner is a 404 partner_not_found, and a sale that a
// rule forbids a 422 create_failed; neither uses up the ExternalRef. Without an
// ExternalRef nothing is sent.
func (c *Client) RecordSale(ctx context.Context, report SaleReport) (SaleReceipt, error) {
	const what = "record sale"
	if report.ExternalRef == "" {
		return SaleReceipt{}, fmt.Errorf("%s: %w", what, errNoRef)
	}
	return send[SaleReceipt](ctx, c, call{what: what, method: http.MethodPost, path: salesPath, body: report, repeatable: true})
}

// Sale is a recorded sale.
type Sale struct {
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
}

// GetSale reads one sale. It can be read as soon as its report was answered.
func (c *Client) GetSale(ctx context.Context, saleID uuid.UUID) (Sale, error) {
	return read[Sale](ctx, c, "read sale", salesPath+"/"+saleID.String())
}

// SaleFilter narrows a list of sales. A zero member narrows nothing.
type SaleFilter struct {
	ExternalRef string
	PartnerID   uuid.UUID
	CampaignID  uuid.UUID
	SoldFrom    time.Time // sold then or later
	SoldTo      time.Time // sold before
}

// ListSales yields the sales that the filter lets through, the last sold first.
func (c *Client) ListSales(ctx context.Context, f SaleFilter) iter.Seq2[Sale, error] {
	return list[Sale](ctx, c, "list sales", salesPath, filter{}.text("external_ref", f.ExternalRef).
		id("partner_id", f.PartnerID).id("campaign_id", f.CampaignID).time("sold_from", f.SoldFrom).time("sold_to", f.SoldTo))
}
