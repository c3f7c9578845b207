package sales

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// How many characters the texts have at most that a list may be narrowed to; a longer
// one could match nothing.
const (
	longestRef   = 255
	longestCode  = 64
	longestEmail = 254
)

// list answers one page of rows of the caller's tenant, newest first. The query takes
// tenant_id, after and limit beside its filters. No plan of it is kept: it is planned for
// the filters that this call gives, so that each of them is looked up in its index.
func list[T any](s *Service, call *web.Call, scan pgx.RowToFunc[T], id func(T) uuid.UUID, query string, filters pgx.NamedArgs) (web.Answer, error) {
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	return answerPage(s, call, page, scan, id, query, filters)
}

// answerPage is list for a page that was read already.
func answerPage[T any](s *Service, call *web.Call, page web.Page, scan pgx.RowToFunc[T], id func(T) uuid.UUID, query string, filters pgx.NamedArgs) (web.Answer, error) {
	filters["tenant_id"], filters["after"], filters["limit"] = call.Tenant(), page.After, page.Limit+1
	rows, err := s.deps.Pool.Query(call.Context(), query, pgx.QueryExecModeCacheDescribe, filters)
	if err != nil {
		return web.Answer{}, fmt.Errorf("list: %w", postgres.Explain(err))
	}
	found, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return web.Answer{}, fmt.Errorf("list: %w", postgres.Explain(err))
	}
	return web.Cut(page, found, id), nil
}

// getOne answers the one row that the query finds, or 404.
func getOne[T any](s *Service, call *web.Call, scan pgx.RowToFunc[T], query string, args ...any) (web.Answer, error) {
	found, exists, err := one(call.Context(), s.deps.Pool, scan, query, args...)
	switch {
	case err != nil:
		return web.Answer{}, fmt.Errorf("read: %w", err)
	case !exists:
		return web.Answer{}, web.NotFound()
	default:
		return web.Answer{Status: 200, Body: found}, nil
	}
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// one returns the one row that the query finds; false where it finds none.
func one[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], query string, args ...any) (row T, found bool, err error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return row, false, postgres.Explain(err)
	}
	row, err = pgx.CollectExactlyOneRow(rows, scan)
	if postgres.Absent(err) {
		return row, false, nil
	}
	return row, err == nil, postgres.Explain(err)
}

// existing is the id of what the path of a list names: whose rows it lists. The query
// tells whether the tenant has it; 404 if not.
func (s *Service) existing(call *web.Call, parameter, query string) (uuid.UUID, error) {
	id, err := call.PathID(parameter)
	if err != nil {
		return id, err
	}
	var exists bool
	if err := s.deps.Pool.QueryRow(call.Context(), query, call.Tenant(), id).Scan(&exists); err != nil {
		return id, fmt.Errorf("read %s: %w", parameter, postgres.Explain(err))
	}
	if !exists {
		return id, web.NotFound()
	}
	return id, nil
}
