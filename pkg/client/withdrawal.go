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

// WithdrawalRequest is what a partner wants to be paid, and where to. The partner is named
// by PartnerID or by ReferralCode, by one of them.
type WithdrawalRequest struct {
	PartnerID    uuid.UUID `json:"partner_id,omitzero"`
	ReferralCode string    `json:"referral_code,omitzero"`
	Amount       money.BRL `json:"amount_brl"`
	PixKeyType   string    `json:"pix_key_type"` // cpf, cnpj, phone, email or evp
	PixKey       string    `json:"pix_key"`
	ExternalRef  string    `json:"external_ref"` // the caller's own name for the withdrawal
}

// WithdrawalReceipt is what a request is answered, the same for the first and for every
// repeat: its Status is what it was when it was asked for.
type WithdrawalReceipt struct {
	WithdrawalID uuid.UUID `json:"withdrawal_id"`
	ExternalRef  string    `json:"external_ref"`
	PartnerID    uuid.UUID `json:"partner_id"`
	Amount       money.BRL `json:"amount_brl"`
	PixKeyType   string    `json:"pix_key_type"`
	PixKey       string    `json:"pix_key"` // masked, unless the API key may approve
	Status       string    `json:"status"`  // requested
	RequestedAt  time.Time `json:"requested_at"`
	Repeat
}

// RequestWithdrawal reserves an amount to be paid, once, however often it is asked for.
// More than is available is a 422 insufficient_balance. Without an ExternalRef nothing is
// sent.
func (c *Client) RequestWithdrawal(ctx context.Context, request WithdrawalRequest) (WithdrawalReceipt, error) {
	const what = "request withdrawal"
	if request.ExternalRef == "" {
		return WithdrawalReceipt{}, fmt.Errorf("%s: %w", what, errNoRef)
	}
	return send[WithdrawalReceipt](ctx, c, call{what: what, method: http.MethodPost, path: withdrawalsPath, body: request, repeatable: true})
}

// Withdrawal is money that a partner asked to be paid.
type Withdrawal struct {
	WithdrawalID uuid.UUID         `json:"withdrawal_id"`
	ExternalRef  string            `json:"external_ref"`
	PartnerID    uuid.UUID         `json:"partner_id"`
	Amount       money.BRL         `json:"amount_brl"`
	PixKeyType   string            `json:"pix_key_type"`
	PixKey       string            `json:"pix_key"` // masked, unless the API key may approve
	Status       string            `json:"status"`  // requested, approved, paid, rejected, cancelled or failed
	Reason       *string           `json:"reason"`
	FailureCode  *string           `json:"failure_code"`
	EndToEndID   *string           `json:"end_to_end_id"`
	RequestedAt  time.Time         `json:"requested_at"`
	ChangedAt    time.Time         `json:"changed_at"`
	PaidAt       *time.Time        `json:"paid_at"`
	History      []WithdrawalState `json:"history"` // the oldest first
}

// WithdrawalState is one that a withdrawal has been in.
type WithdrawalState struct {
	Status       string    `json:"status"`
	Reason       *string   `json:"reason"`
	FailureCode  *string   `json:"failure_code"`
	APIKeyPrefix string    `json:"api_key_prefix"` // of the key with which it was brought about
	ChangedAt    time.Time `json:"changed_at"`
}

// Payment is what a bank says of a withdrawal that it paid.
type Payment struct {
	EndToEndID string    `json:"end_to_end_id,omitzero"`
	PaidAt     time.Time `json:"paid_at,omitzero"` // zero: now
}

// A withdrawal that is in the state already is not changed again, so each of these may be
// repeated. Any other state than the one before is a 409 invalid_transition.

// ApproveWithdrawal has a withdrawal that was asked for be paid.
func (c *Client) ApproveWithdrawal(ctx context.Context, withdrawalID uuid.UUID) (Withdrawal, error) {
	return c.change(ctx, withdrawalID, "approve", struct{}{})
}

// RejectWithdrawal refuses a withdrawal that was asked for. There must be a reason.
func (c *Client) RejectWithdrawal(ctx context.Context, withdrawalID uuid.UUID, reason string) (Withdrawal, error) {
	return c.change(ctx, withdrawalID, "reject", circumstances{Reason: reason})
}

// CancelWithdrawal takes back what was asked for; the reason may be empty.
func (c *Client) CancelWithdrawal(ctx context.Context, withdrawalID uuid.UUID, reason string) (Withdrawal, error) {
	return c.change(ctx, withdrawalID, "cancel", circumstances{Reason: reason})
}

// PayWithdrawal tells that the bank has paid an approved withdrawal.
func (c *Client) PayWithdrawal(ctx context.Context, withdrawalID uuid.UUID, payment Payment) (Withdrawal, error) {
	return c.change(ctx, withdrawalID, "pay", payment)
}

// FailWithdrawal tells that the bank has not paid an approved withdrawal. There must be a
// reason; the bank's code for it may be empty.
func (c *Client) FailWithdrawal(ctx context.Context, withdrawalID uuid.UUID, reason, failureCode string) (Withdrawal, error) {
	return c.change(ctx, withdrawalID, "fail", circumstances{reason, failureCode})
}

// circumstances are why a withdrawal is not paid.
type circumstances struct {
	Reason      string `json:"reason,omitzero"`
	FailureCode string `json:"failure_code,omitzero"`
}

func (c *Client) change(ctx context.Context, withdrawalID uuid.UUID, verb string, body any) (Withdrawal, error) {
	path := withdrawalsPath + "/" + withdrawalID.String() + "/" + verb
	return send[Withdrawal](ctx, c, call{what: verb + " withdrawal", method: http.MethodPost, path: path, body: body, repeatable: true})
}

const withdrawalsPath = "/api/v1/withdrawals"

// GetWithdrawal reads one withdrawal.
func (c *Client) GetWithdrawal(ctx context.Context, withdrawalID uuid.UUID) (Withdrawal, error) {
	return read[Withdrawal](ctx, c, "read withdrawal", withdrawalsPath+"/"+withdrawalID.String())
}

// WithdrawalFilter narrows a list of withdrawals. A zero member narrows nothing.
type WithdrawalFilter struct {
	PartnerID   uuid.UUID
	Status      string
	ExternalRef string
	CreatedFrom time.Time // asked for then or later
	CreatedTo   time.Time // asked for before
}

// ListWithdrawals yields the withdrawals that the filter lets through, the last asked for
// first.
func (c *Client) ListWithdrawals(ctx context.Context, f WithdrawalFilter) iter.Seq2[Withdrawal, error] {
	return list[Withdrawal](ctx, c, "list withdrawals", withdrawalsPath, filter{}.id("partner_id", f.PartnerID).
		text("status", f.Status).text("external_ref", f.ExternalRef).time("created_from", f.CreatedFrom).time("created_to", f.CreatedTo))
}
