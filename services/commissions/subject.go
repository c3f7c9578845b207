package commissions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
)

// subject is a withdrawal that is to be changed, and whose it is.
type subject struct {
	withdrawal *withdrawal
	payee
}

type subjects map[uuid.UUID]subject

func (s subjects) withdrawals() (all []*withdrawal) {
	for _, of := range s {
		all = append(all, of.withdrawal)
	}
	return all
}

const (
	owningPartnersQuery = `select distinct partner_id from withdrawals where tenant_id = $1 and withdrawal_id = any ($2)`

	subjectsQuery = `
select p.status, ` + withdrawalColumns + `
from withdrawals w left join partners p on p.tenant_id = w.tenant_id and p.partner_id = w.partner_id
where w.tenant_id = $1 and w.withdrawal_id = any ($2)`
)

// lockSubjects locks the books of those whose withdrawals are to change, and then reads
// the withdrawals: nobody else changes them until the transaction ends. What is not the
// tenant's is not found.
func (s *Service) lockSubjects(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID, transitions []*transition) (subjects, *ledger, error) {
	ids := make([]uuid.UUID, len(transitions))
	for i, t := range transitions {
		ids[i] = t.id
	}
	rows, err := tx.Query(ctx, owningPartnersQuery, tenant, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("find partners: %w", err)
	}
	partners := make(map[partnerKey]bool)
	key := partnerKey{tenant: tenant}
	if _, err := pgx.ForEachRow(rows, []any{&key.id}, func() error { partners[key] = true; return nil }); err != nil {
		return nil, nil, fmt.Errorf("find partners: %w", err)
	}
	books, err := s.lockBooks(ctx, tx, partners)
	if err != nil {
		return nil, nil, err
	}
	if rows, err = tx.Query(ctx, subjectsQuery, tenant, ids); err != nil {
		return nil, nil, fmt.Errorf("read withdrawals: %w", err)
	}
	found := make(subjects, len(ids))
	for rows.Next() {
		of := subject{withdrawal: &withdrawal{}}
		if err := rows.Scan(append([]any{&of.status}, of.withdrawal.targets()...)...); err != nil {
			rows.Close()
			return nil, nil, fmt.Errorf("read withdrawals: %w", err)
		}
		found[of.withdrawal.ID] = of
	}
	if err := rows.Err(); err != nil {
		return nil, nil, fmt.Errorf("read withdrawals: %w", err)
	}
	return found, books, nil
}

// steps are withdrawals in their new states as the arrays that one statement takes.
type steps struct {
	id                        []uuid.UUID
	status                    []string
	reason, failure, endToEnd []*string
	paidAt                    []*time.Time
	at                        []time.Time
}

func newSteps(n int) *steps {
	maybe := func() []*string { return make([]*string, 0, n) }
	return &steps{
		id: make([]uuid.UUID, 0, n), status: make([]string, 0, n), reason: maybe(), failure: maybe(), endToEnd: maybe(),
		paidAt: make([]*time.Time, 0, n), at: make([]time.Time, 0, n),
	}
}

func (s *steps) append(w *withdrawal) {
	s.id, s.status, s.at = append(s.id, w.ID), append(s.status, w.Status), append(s.at, w.ChangedAt.Time)
	s.reason, s.failure, s.endToEnd = append(s.reason, w.Reason), append(s.failure, w.FailureCode), append(s.endToEnd, w.EndToEndID)
	var paidAt *time.Time
	if w.PaidAt != nil {
		paidAt = &w.PaidAt.Time
	}
	s.paidAt = append(s.paidAt, paidAt)
}

const changeStatement = `
with changed as (
	update withdrawals w
	set status = c.status, reason = c.reason, failure_code = c.failure_code, end_to_end_id = c.end_to_end_id, paid_at = c.paid_at, changed_at = c.changed_at
	from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[])
		as c (withdrawal_id, status, reason, failure_code, end_to_end_id, paid_at, changed_at)
	where w.tenant_id = $1 and w.withdrawal_id = c.withdrawal_id
	returning w.tenant_id, w.withdrawal_id, w.changed_at, w.status, w.reason, w.failure_code)
insert into withdrawal_states (tenant_id, withdrawal_id, changed_at, status, reason, failure_code, key_id)
select tenant_id, withdrawal_id, changed_at, status, reason, failure_code, $9 from changed`

// update stores the new states, in the withdrawals and in their histories. Each is there
// once: a withdrawal changes only once in a transaction.
func (s *steps) update(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID, keyID string) error {
	tag, err := tx.Exec(ctx, changeStatement, tenant, s.id, s.status, s.reason, s.failure, s.endToEnd, s.paidAt, s.at, keyID)
	if err != nil {
		return fmt.Errorf("update withdrawals: %w", err)
	}
	if tag.RowsAffected() != int64(len(s.id)) {
		return errors.New("update withdrawals: one of them is not there any more")
	}
	return nil
}
