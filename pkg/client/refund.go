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

// RefundReport is what a customer got back of a sale, or all of it.
type RefundReport struct {
	Amount      money.BRL `json:"amount_brl"`
	ExternalRef string    `json:"external_ref"` // the caller's own name for the refund, unique among all refunds
	Reason      string    `json:"reason,omitzero"`
}

// RefundReceipt is what a report of a refund is answered.
type RefundReceipt struct {
	RefundID           uuid.UUID `json:"refund_id"`
	SaleID             uuid.UUID `json:"sale_id"`
	Amount             money.BRL `json:"amount_brl"`
	CommissionReversed money.BRL `json:"commission_reversed_brl"` // what the partner loses by it; final
	Repeat
}

// RecordRefund records the refund of a sale once, however often it is reported. All
// refunds of a sale together never exceed it; one that would is a 422 rule_violated.
// Without an ExternalRef nothing is sent.
func (c *Client) RecordRefund(ctx context.Context, saleID uuid.UUID, report RefundReport) (RefundReceipt, error) {
	const what = "record refund"
	if report.ExternalRef == "" {
		return RefundReceipt{}, fmt.Errorf("%s: %w", what, errNoRef)
	}
	return send[RefundReceipt](ctx, c, call{what: what, method: http.MethodPost, path: refundsPath(saleID), body: report, repeatable: true})
}

// Refund is a recorded refund.
type Refund struct {
	RefundID           uuid.UUID `json:"refund_id"`
	SaleID             uuid.UUID `json:"sale_id"`
	ExternalRef        string    `json:"external_ref"`
	Amount             money.BRL `json:"amount_brl"`
	CommissionReversed money.BRL `json:"commission_reversed_brl"`
	Reason             *string   `json:"reason"`
	CreatedAt          time.Time `json:"created_at"`
}

// ListRefunds yields the refunds of a sale, the last one first.
func (c *Client) ListRefunds(ctx context.Context, saleID uuid.UUID) iter.Seq2[Refund, error] {
	return list[Refund](ctx, c, "list refunds", refundsPath(saleID), filter{})
}

func refundsPath(saleID uuid.UUID) string { return salesPath + "/" + saleID.String() + "/refunds" }
