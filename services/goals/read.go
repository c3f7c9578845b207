package goals

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

func (s *Service) getGoal(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("goal_id")
	if err != nil {
		return web.Answer{}, err
	}
	g, err := s.find(call.Context(), call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: g.body()}, nil
}

func (s *Service) listGoals(call *web.Call) (web.Answer, error) {
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	goals, err := s.list(call.Context(), call.Tenant(), page)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Cut(page, goals, func(g goalBody) uuid.UUID { return g.GoalID }), nil
}

const findQuery = `select ` + goalColumns + ` from goals where tenant_id = $1 and goal_id = $2`

// find returns the tenant's goal of that id. Its error is the fault not_found where
// the tenant has none.
func (s *Service) find(ctx context.Context, tenant, id uuid.UUID) (*goal, error) {
	g, err := readGoal(ctx, s.deps.Pool, findQuery, tenant, id)
	if err != nil {
		return nil, postgres.Explain(err)
	}
	return &g, nil
}

// querier is the pool, or a transaction.
type querier interface {
	Query(ctx context.Context, query string, arguments ...any) (pgx.Rows, error)
}

// readGoal returns the tenant's goal of that id by a query of goalColumns. Its error is
// the fault not_found where the tenant has none.
func readGoal(ctx context.Context, from querier, query string, tenant, id uuid.UUID) (goal, error) {
	rows, err := from.Query(ctx, query, tenant, id)
	if err != nil {
		return goal{}, fmt.Errorf("read goal: %w", err)
	}
	g, err := pgx.CollectExactlyOneRow(rows, scanGoal)
	switch {
	case postgres.Absent(err):
		return goal{}, web.NotFound()
	case err != nil:
		return goal{}, fmt.Errorf("read goal: %w", err)
	default:
		return g, nil
	}
}

const listQuery = `
select ` + goalColumns + ` from goals
where tenant_id = $1 and ($2::uuid is null or goal_id < $2)
order by goal_id desc limit $3`

// list returns one goal more than the page holds, if there are more.
func (s *Service) list(ctx context.Context, tenant uuid.UUID, page web.Page) ([]goalBody, error) {
	rows, err := s.deps.Pool.Query(ctx, listQuery, tenant, page.After, page.Limit+1)
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("list goals: %w", err))
	}
	goals, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (goalBody, error) {
		g, err := scanGoal(row)
		return g.body(), err
	})
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("list goals: %w", err))
	}
	return goals, nil
}
