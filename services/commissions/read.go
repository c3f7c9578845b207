package commissions

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// listCommissions answers a page of the tenant's commissions, newest first.
func (s *Service) listCommissions(call *web.Call) (web.Answer, error) {
	if err := call.Query("limit", "cursor", "partner_id", "source_sale_id"); err != nil {
		return web.Answer{}, err
	}
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	partner, err := call.QueryID("partner_id")
	if err != nil {
		return web.Answer{}, err
	}
	sale, err := call.QueryID("source_sale_id")
	if err != nil {
		return web.Answer{}, err
	}
	rows, err := s.commissions(call.Context(), call.Tenant(), page, partner, sale)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Cut(page, rows, func(c commission) uuid.UUID { return c.ID }), nil
}

// Each filter has a statement of its own, so that each is a walk along one index
// whatever plan PostgreSQL keeps for it.
const (
	listQuery = `
select ` + commissionColumns + ` from commissions
where tenant_id = $1 and commission_id < $2
order by commission_id desc limit $3`

	listOfPartnerQuery = `
select ` + commissionColumns + ` from commissions
where tenant_id = $1 and commission_id < $2 and partner_id = $4
order by commission_id desc limit $3`

	listOfSaleQuery = `
select ` + commissionColumns + ` from commissions
where tenant_id = $1 and commission_id < $2 and source_sale_id = $4 and ($5::uuid is null or partner_id = $5)
order by commission_id desc limit $3`
)

// commissions returns the rows of the page and, if there are more, one beyond it. A nil
// partner or sale does not narrow the list.
func (s *Service) commissions(ctx context.Context, tenant uuid.UUID, page web.Page, partner, sale *uuid.UUID) ([]commission, error) {
	before := uuid.Max
	if page.After != nil {
		before = *page.After
	}
	query, args := listQuery, []any{tenant, before, page.Limit + 1}
	switch {
	case sale != nil:
		query, args = listOfSaleQuery, append(args, *sale, partner)
	case partner != nil:
		query, args = listOfPartnerQuery, append(args, *partner)
	}
	rows, err := s.deps.Pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list commissions: %w", postgres.Explain(err))
	}
	list, err := pgx.CollectRows(rows, scanCommission)
	if err != nil {
		return nil, fmt.Errorf("list commissions: %w", postgres.Explain(err))
	}
	return list, nil
}

// showCommission answers one commission of the tenant as it is now.
func (s *Service) showCommission(call *web.Call) (web.Answer, error) {
	if err := call.Query(); err != nil {
		return web.Answer{}, err
	}
	id, err := call.PathID("commission_id")
	if err != nil {
		return web.Answer{}, err
	}
	found, err := s.commission(call.Context(), call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: found}, nil
}

const showQuery = `select ` + commissionColumns + ` from commissions where tenant_id = $1 and commission_id = $2`

// commission returns the tenant's commission of that id. Another tenant's is not found.
func (s *Service) commission(ctx context.Context, tenant, id uuid.UUID) (commission, error) {
	rows, err := s.deps.Pool.Query(ctx, showQuery, tenant, id)
	if err != nil {
		return commission{}, fmt.Errorf("read commission %s: %w", id, postgres.Explain(err))
	}
	found, err := pgx.CollectExactlyOneRow(rows, scanCommission)
	switch {
	case postgres.Absent(err):
		return commission{}, web.NotFound()
	case err != nil:
		return commission{}, fmt.Errorf("read commission %s: %w", id, postgres.Explain(err))
	}
	return found, nil
}
