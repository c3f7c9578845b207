package webhooks

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// endpoint is where a tenant hears events, as the API shows it.
type endpoint struct {
	ID               uuid.UUID    `json:"endpoint_id"`
	URL              string       `json:"url"`
	Events           []string     `json:"events"`
	Description      *string      `json:"description"`
	MaxAttempts      int          `json:"max_attempts"`
	StandardWebhooks bool         `json:"standard_webhooks"`
	Filter           *filter      `json:"filter"` // nil: it hears all that it chose
	Status           string       `json:"status"`
	DisabledReason   *string      `json:"disabled_reason"`
	CreatedAt        openapi.Time `json:"created_at"`
}

// Whether an endpoint is sent anything.
const (
	statusEnabled  = "enabled"
	statusDisabled = "disabled"
)

// endpointColumns are what scanEndpoint reads, in its order.
const endpointColumns = `endpoint_id, url, events, description, max_attempts, standard_webhooks, ` + filterColumns + `,
	disabled_reason, created_at`

func scanEndpoint(row pgx.CollectableRow) (e endpoint, err error) {
	var f filter
	columns := append([]any{&e.ID, &e.URL, &e.Events, &e.Description, &e.MaxAttempts, &e.StandardWebhooks}, f.columns()...)
	err = row.Scan(append(columns, &e.DisabledReason, &e.CreatedAt.Time)...)
	e.Filter = f.whole()
	e.disable(e.DisabledReason)
	return e, err
}

// disable gives the endpoint the status that follows from the reason, nil for none.
func (e *endpoint) disable(reason *string) {
	e.Status, e.DisabledReason = statusEnabled, reason
	if reason != nil {
		e.Status = statusDisabled
	}
}

// listEndpoints answers a page of the tenant's endpoints, newest first.
func (s *Service) listEndpoints(call *web.Call) (web.Answer, error) {
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	rows, err := s.endpoints(call.Context(), call.Tenant(), page)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Cut(page, rows, func(e endpoint) uuid.UUID { return e.ID }), nil
}

const listEndpointsQuery = `
select ` + endpointColumns + ` from endpoints
where tenant_id = $1 and endpoint_id < $2 and deleted_at is null
order by endpoint_id desc limit $3`

// endpoints returns the rows of the page and, if there are more, one beyond it.
func (s *Service) endpoints(ctx context.Context, tenant uuid.UUID, page web.Page) ([]endpoint, error) {
	rows, err := s.deps.Pool.Query(ctx, listEndpointsQuery, tenant, before(page), page.Limit+1)
	if err != nil {
		return nil, fmt.Errorf("list endpoints: %w", postgres.Explain(err))
	}
	list, err := pgx.CollectRows(rows, scanEndpoint)
	if err != nil {
		return nil, fmt.Errorf("list endpoints: %w", postgres.Explain(err))
	}
	return list, nil
}

// before is what every id of the page is below.
func before(page web.Page) uuid.UUID {
	if page.After != nil {
		return *page.After
	}
	return uuid.Max
}

// getEndpoint answers one endpoint of the tenant as it is now.
func (s *Service) getEndpoint(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("endpoint_id")
	if err != nil {
		return web.Answer{}, err
	}
	found, err := endpointIn(call.Context(), s.deps.Pool, call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: found}, nil
}

const getEndpointQuery = `
select ` + endpointColumns + ` from endpoints
where tenant_id = $1 and endpoint_id = $2 and deleted_at is null`

// querier is the pool, or a transaction on one of its connections.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// endpointIn returns the tenant's endpoint of that id. One that was deleted, or is
// another tenant's, is not found.
func endpointIn(ctx context.Context, db querier, tenant, id uuid.UUID) (endpoint, error) {
	return readEndpoint(ctx, db, getEndpointQuery, tenant, id)
}

func readEndpoint(ctx context.Context, db querier, query string, tenant, id uuid.UUID) (endpoint, error) {
	rows, err := db.Query(ctx, query, tenant, id)
	if err != nil {
		return endpoint{}, fmt.Errorf("read endpoint %s: %w", id, postgres.Explain(err))
	}
	found, err := pgx.CollectExactlyOneRow(rows, scanEndpoint)
	switch {
	case postgres.Absent(err):
		return endpoint{}, web.NotFound()
	case err != nil:
		return endpoint{}, fmt.Errorf("read endpoint %s: %w", id, postgres.Explain(err))
	}
	return found, nil
}
