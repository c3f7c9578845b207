package client

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// Settlement is what a bank made of one withdrawal of a payout list.
type Settlement struct {
	WithdrawalID uuid.UUID `json:"withdrawal_id"`
	Action       string    `json:"action"` // pay or fail

	EndToEndID string    `json:"end_to_end_id,omitzero"` // only with pay; pays one withdrawal
	PaidAt     time.Time `json:"paid_at,omitzero"`       // only with pay; zero: now

	Reason      string `json:"reason,omitzero"`       // only with fail, and then there must be one
	FailureCode string `json:"failure_code,omitzero"` // only with fail: the bank's
}

// SettlementResult is what became of one settlement: either the withdrawal as it is then,
// or a refusal.
type SettlementResult struct {
	Withdrawal Withdrawal `json:"withdrawal"`

	// Mismatch names the members in which a repeat differs from what was said first, which
	// alone took effect. Nil if they agree.
	Mismatch []string `json:"idempotency_mismatch"`

	// Refusal is why the withdrawal is not settled; nil if it is. If it is temporary the
	// withdrawal may have been settled all the same, and is to be settled again.
	Refusal *Error `json:"-"`
}

// UnmarshalJSON reads one element of the answer to a batch.
func (r *SettlementResult) UnmarshalJSON(raw []byte) error {
	var refused Error
	if err := json.Unmarshal(raw, &refused); err != nil {
		return err
	}
	if refused.Status != http.StatusOK {
		r.Refusal = &refused
		return nil
	}
	type settled SettlementResult // without this method
	return json.Unmarshal(raw, (*settled)(r))
}

func (r SettlementResult) refused() *Error { return r.Refusal }

// SettleWithdrawals tells of up to [MaxBatch] withdrawals in one call what the bank made of
// them, each as [Client.PayWithdrawal] or [Client.FailWithdrawal] would, and answers with a
// result for each, in their order. Each stands alone: look at every Refusal, for a batch of
// which all were refused is no error of the call.
//
// If the call itself fails, any of the withdrawals may have been settled; settle all of
// them again. Nothing is sent if there are none or too many.
func (c *Client) SettleWithdrawals(ctx context.Context, settlements []Settlement) ([]SettlementResult, error) {
	const what = "settle withdrawals"
	if err := checkBatch(what, len(settlements)); err != nil {
		return nil, err
	}
	body := struct {
		Withdrawals []Settlement `json:"withdrawals"`
	}{settlements}
	return sendBatch[SettlementResult](ctx, c, call{what: what, path: withdrawalsPath + "/batch", body: body}, len(settlements))
}
