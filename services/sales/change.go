package sales

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

const touchStatement = `update tenants set catalogue_version = catalogue_version + 1 where tenant_id = $1`

// change runs work in a transaction that changes the tenant's catalogue. Sales that
// are decided on what was true before it are decided anew from the moment that it
// commits, on every replica. Changes of one tenant happen one after another.
func (s *Service) change(ctx context.Context, tenant uuid.UUID, work func(tx *postgres.Tx) error) error {
	err := postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		tag, err := tx.Exec(ctx, touchStatement, tenant)
		if err != nil {
			return fmt.Errorf("touch catalogue: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return web.NotFound()
		}
		return work(tx)
	})
	s.catalogue.forget(tenant) // also after an error: a lost commit may have happened
	return err
}

// amend answers a PATCH: it reads the tenant's row of that id, lets edit change and
// store it, and shows what it is like then. Another tenant's row is not found.
func amend[T any](s *Service, call *web.Call, id uuid.UUID, query string, scan pgx.RowToFunc[T], edit func(tx *postgres.Tx, row *T) error) (web.Answer, error) {
	var row T
	err := s.change(call.Context(), call.Tenant(), func(tx *postgres.Tx) (err error) {
		var found bool
		if row, found, err = one(call.Context(), tx, scan, query, call.Tenant(), id); err != nil {
			return fmt.Errorf("read %T: %w", row, err)
		}
		if !found {
			return web.NotFound()
		}
		if err := edit(tx, &row); err != nil {
			return fmt.Errorf("change %T: %w", row, err)
		}
		return nil
	})
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: 200, Body: row}, nil
}

// transitions are the states that a resource may go to from each state.
type transitions map[string][]string

// check allows a change of state that is in the table, or that changes nothing.
func (t transitions) check(from, to string) error {
	if from == to || slices.Contains(t[from], to) {
		return nil
	}
	return fault.Newf(fault.Conflict, "invalid_transition", "the status cannot go from %s to %s", from, to)
}

// instant is the time of an optional member, or nil.
func instant(t *openapi.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}
