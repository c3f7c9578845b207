package commissions

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/web"
	"partilha.dev/services/commissions/internal/pix"
)

// What a withdrawal can be. It is born requested; see sources for how it goes on. A
// commission that was paid has the same status as a withdrawal that was.
const (
	statusRequested = "requested" // its amount is reserved
	statusApproved  = "approved"  // to be paid
	statusRejected  = "rejected"  // by the tenant, before it was approved
	statusCancelled = "cancelled" // by whoever asked, before it was approved
	statusFailed    = "failed"    // the bank did not pay
)

// withdrawalStatuses are all that a withdrawal can be.
var withdrawalStatuses = []string{statusRequested, statusApproved, statusPaid, statusRejected, statusCancelled, statusFailed}

// withdrawal is money that a partner asked to be paid, as the API shows it.
type withdrawal struct {
	ID          uuid.UUID     `json:"withdrawal_id"`
	ExternalRef string        `json:"external_ref"`
	PartnerID   uuid.UUID     `json:"partner_id"`
	Amount      money.BRL     `json:"amount_brl"`
	KeyType     pix.Type      `json:"pix_key_type"`
	Key         string        `json:"pix_key"` // masked, unless it was revealed
	Status      string        `json:"status"`
	Reason      *string       `json:"reason"` // of the last change
	FailureCode *string       `json:"failure_code"`
	EndToEndID  *string       `json:"end_to_end_id"`
	RequestedAt openapi.Time  `json:"requested_at"`
	ChangedAt   openapi.Time  `json:"changed_at"`
	PaidAt      *openapi.Time `json:"paid_at"`
	History     []state       `json:"history"` // the oldest first

	sealed []byte // the key
}

// state is one that a withdrawal has been in.
type state struct {
	Status      string       `json:"status"`
	Reason      *string      `json:"reason"`
	FailureCode *string      `json:"failure_code"`
	KeyPrefix   string       `json:"api_key_prefix"` // of the key with which it was brought about
	ChangedAt   openapi.Time `json:"changed_at"`
}

// withdrawalColumns are what scanWithdrawal reads, in its order, of withdrawals as w.
const withdrawalColumns = `w.withdrawal_id, w.external_ref, w.partner_id, w.amount_centavos, w.pix_key_type, w.pix_key, w.pix_key_masked,
	w.status, w.reason, w.failure_code, w.end_to_end_id, w.requested_at, w.changed_at, w.paid_at`

func (w *withdrawal) targets() []any {
	return []any{&w.ID, &w.ExternalRef, &w.PartnerID, &w.Amount, &w.KeyType, &w.sealed, &w.Key,
		&w.Status, &w.Reason, &w.FailureCode, &w.EndToEndID, &w.RequestedAt.Time, &w.ChangedAt.Time, maybeTime{&w.PaidAt}}
}

func scanWithdrawal(row pgx.CollectableRow) (*withdrawal, error) {
	var w withdrawal
	return &w, row.Scan(w.targets()...)
}

// maybeTime reads a time that may be null.
type maybeTime struct{ into **openapi.Time }

// ScanTimestamptz is how pgx hands it over.
func (m maybeTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	if *m.into = nil; v.Valid {
		*m.into = &openapi.Time{Time: v.Time}
	}
	return nil
}

const historiesQuery = `
select withdrawal_id, status, reason, failure_code, key_id, changed_at from withdrawal_states
where tenant_id = $1 and withdrawal_id = any ($2)
order by withdrawal_id, changed_at`

// addHistories reads the states that each of the withdrawals has been in.
func addHistories(ctx context.Context, from querier, tenant uuid.UUID, withdrawals []*withdrawal) error {
	ids, known := make([]uuid.UUID, len(withdrawals)), make(map[uuid.UUID]*withdrawal, len(withdrawals))
	for i, w := range withdrawals {
		ids[i], known[w.ID] = w.ID, w
		w.History = []state{}
	}
	rows, err := from.Query(ctx, historiesQuery, tenant, ids)
	if err != nil {
		return fmt.Errorf("read histories: %w", err)
	}
	var id uuid.UUID
	var was state
	var keyID string
	_, err = pgx.ForEachRow(rows, []any{&id, &was.Status, &was.Reason, &was.FailureCode, &keyID, &was.ChangedAt.Time}, func() error {
		was.KeyPrefix = "ptl_" + keyID
		known[id].History = append(known[id].History, was)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read histories: %w", err)
	}
	return nil
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// show has the withdrawals' keys be what the caller may see of them.
func (s *Service) show(call *web.Call, withdrawals ...*withdrawal) error {
	if s.admitPayer(call) != nil {
		return nil
	}
	for _, w := range withdrawals {
		key, err := s.openKey(call.Tenant(), w.ID, w.sealed)
		if err != nil {
			return err
		}
		w.Key = key
	}
	return nil
}

// admitPayer checks that the caller's key may see where money goes in clear, and that
// nobody can have revoked it unheard.
func (s *Service) admitPayer(call *web.Call) error {
	key, err := s.keys.Key(call.Context(), call.Credential, auth.WithdrawalsApprove)
	if err != nil {
		return err
	}
	return key.Admit(call.Credential, auth.WithdrawalsApprove, s.deps.Now())
}

// told is what events say of the withdrawal, whose key must not have been revealed yet.
func (w *withdrawal) told() event.WithdrawalRequested {
	return event.WithdrawalRequested{
		WithdrawalID: w.ID, PartnerID: w.PartnerID, Amount: w.Amount, KeyType: string(w.KeyType), KeyMasked: w.Key,
		Status: w.Status, RequestedAt: w.RequestedAt.Time,
	}
}
