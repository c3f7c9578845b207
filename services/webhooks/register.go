package webhooks

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// maxEndpoints is how many endpoints a tenant may have at a time.
const maxEndpoints = 50

// registration is what a tenant asks for.
type registration struct {
	URL              string   `json:"url"`
	Events           []string `json:"events"`
	Description      *string  `json:"description"`
	MaxAttempts      *int     `json:"max_attempts"`
	StandardWebhooks *bool    `json:"standard_webhooks"`
	Filter           *filter  `json:"filter"`
}

// endpoint is what is asked for, with the default of whatever is not.
func (r registration) endpoint(id uuid.UUID) endpoint {
	return endpoint{
		ID: id, URL: r.URL, Events: r.Events, Description: r.Description, MaxAttempts: orElse(r.MaxAttempts, 1),
		StandardWebhooks: orElse(r.StandardWebhooks, false), Filter: orNone(r.Filter).whole(), Status: statusEnabled,
	}
}

// orElse is the value that is given, or else what holds without it.
func orElse[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}

// registered is the answer to a registration, the only one that shows the secret.
type registered struct {
	endpoint
	Secret string `json:"secret"`
}

// createEndpoint registers a URL and answers with its secret.
func (s *Service) createEndpoint(call *web.Call) (web.Answer, error) {
	var wanted registration
	if err := call.Decode(&wanted); err != nil {
		return web.Answer{}, err
	}
	if _, issues := s.policy.checkURL(wanted.URL); len(issues) > 0 {
		return web.Answer{}, fault.InvalidBody(issues...)
	}
	created, err := s.register(call.Context(), call.Tenant(), wanted)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusCreated, Body: created}, nil
}

const (
	countEndpointsQuery = `select count(*) from endpoints where tenant_id = $1 and deleted_at is null`

	registerStatement = `
insert into endpoints (tenant_id, endpoint_id, url, events, description, max_attempts, standard_webhooks, ` + filterColumns + `,
	secret, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
)

// register stores a new endpoint of the tenant unless it has as many as it may have.
//
// Its moment is taken while the tenant is held: events that were handled before are
// older, and those that come after find the endpoint there.
func (s *Service) register(ctx context.Context, tenant uuid.UUID, wanted registration) (registered, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return registered{}, fmt.Errorf("make endpoint id: %w", err)
	}
	secret, err := newSecret()
	if err != nil {
		return registered{}, fmt.Errorf("make secret: %w", err)
	}
	sealed, err := s.sealer.seal(id, secret)
	if err != nil {
		return registered{}, err
	}
	created := registered{endpoint: wanted.endpoint(id), Secret: secret}
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		lockTenants(tx, tenant)
		var count int
		if err := tx.QueryRow(ctx, countEndpointsQuery, tenant).Scan(&count); err != nil {
			return fmt.Errorf("count endpoints: %w", err)
		}
		if count >= maxEndpoints {
			return fault.Newf(fault.Rule, "rule_violated", "a tenant may have %d webhook endpoints; delete one that is no longer needed", maxEndpoints)
		}
		created.CreatedAt = openapi.Time{Time: event.Instant(s.deps.Now())}
		f := orNone(created.Filter)
		_, err := tx.Exec(ctx, registerStatement, tenant, id, created.URL, created.Events, created.Description, created.MaxAttempts,
			created.StandardWebhooks, f.PartnerIDs, f.CampaignIDs, f.MinAmount, sealed, created.CreatedAt.Time)
		return err
	})
	if err != nil {
		return registered{}, fmt.Errorf("register endpoint: %w", err)
	}
	return created, nil
}
