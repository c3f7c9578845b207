package commissions

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
)

// payments are the withdrawals that were paid under some end-to-end ids. A bank's payment
// is that of one withdrawal: a second one that names it was not paid by it.
type payments map[string]uuid.UUID

const (
	// Collisions of the hash merely have tenants wait for each other.
	payInTurnStatement = `select pg_advisory_xact_lock(hashtextextended('payments ' || $1::uuid::text, 0))`

	paymentsQuery = `select end_to_end_id, withdrawal_id from withdrawals where tenant_id = $1 and end_to_end_id = any ($2)`
)

// lockPayments finds what was paid under the end-to-end ids of the transitions. Until the
// transaction ends nobody else pays anything of the tenant under such an id. It must come
// before any book is locked, so that nobody waits in a circle; without an id it does nothing.
func lockPayments(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID, transitions []*transition) (payments, error) {
	var named []string
	for _, t := range transitions {
		if t.EndToEndID != nil {
			named = append(named, *t.EndToEndID)
		}
	}
	if len(named) == 0 {
		return nil, nil
	}
	if _, err := tx.Exec(ctx, payInTurnStatement, tenant); err != nil {
		return nil, fmt.Errorf("lock payments: %w", err)
	}
	rows, err := tx.Query(ctx, paymentsQuery, tenant, named)
	if err != nil {
		return nil, fmt.Errorf("read payments: %w", err)
	}
	known := make(payments, len(named))
	var id string
	var withdrawal uuid.UUID
	if _, err := pgx.ForEachRow(rows, []any{&id, &withdrawal}, func() error { known[id] = withdrawal; return nil }); err != nil {
		return nil, fmt.Errorf("read payments: %w", err)
	}
	return known, nil
}

// taken tells whether the payment that the transition names is another withdrawal's.
func (p payments) taken(t *transition) bool {
	if t.EndToEndID == nil {
		return false
	}
	of, known := p[*t.EndToEndID]
	return known && of != t.id
}

// note has the payment that the transition names, if it names one, be its withdrawal's.
func (p payments) note(t *transition) {
	if t.EndToEndID != nil {
		p[*t.EndToEndID] = t.id
	}
}

// paymentTaken refuses a payment that is another withdrawal's, whichever that is.
func paymentTaken() error {
	f := fault.New(fault.Conflict, "conflict", "end_to_end_id is taken")
	f.Details = []fault.Detail{{Path: "/end_to_end_id", Code: "not_allowed", Message: "is that of another withdrawal"}}
	return f
}
