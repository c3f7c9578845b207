package webhooks

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// disabledByTenant is the reason of an endpoint that its own tenant has disabled.
const disabledByTenant = "disabled by the tenant"

// change is what a tenant wants to be otherwise.
type change struct {
	URL              *string                  `json:"url"`
	Events           []string                 `json:"events"` // nil: as before
	Description      openapi.Optional[string] `json:"description"`
	MaxAttempts      *int                     `json:"max_attempts"`
	StandardWebhooks *bool                    `json:"standard_webhooks"`
	Filter           openapi.Optional[filter] `json:"filter"`
	Status           *string                  `json:"status"`
}

// apply makes e what it is after the change. Enabling forgets why it was disabled, and since when it had failed;
// disabling it again leaves the reason that there was.
func (c change) apply(e *endpoint) {
	e.URL, e.Description = orElse(c.URL, e.URL), c.Description.Over(e.Description)
	if c.Events != nil {
		e.Events = c.Events
	}
	e.MaxAttempts, e.StandardWebhooks = orElse(c.MaxAttempts, e.MaxAttempts), orElse(c.StandardWebhooks, e.StandardWebhooks)
	e.Filter = orNone(c.Filter.Over(e.Filter)).whole()
	switch status := orElse(c.Status, e.Status); {
	case status == statusEnabled:
		e.disable(nil)
	case e.DisabledReason == nil:
		reason := disabledByTenant
		e.disable(&reason)
	}
}

// changeEndpoint answers PATCH /api/v1/webhook-endpoints/{endpoint_id}.
func (s *Service) changeEndpoint(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("endpoint_id")
	if err != nil {
		return web.Answer{}, err
	}
	var wanted change
	if err := call.Decode(&wanted); err != nil {
		return web.Answer{}, err
	}
	if wanted.URL != nil {
		if _, issues := s.policy.checkURL(*wanted.URL); len(issues) > 0 {
			return web.Answer{}, fault.InvalidBody(issues...)
		}
	}
	changed, err := s.amend(call.Context(), call.Tenant(), id, wanted)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: changed}, nil
}

const (
	holdEndpointQuery = getEndpointQuery + ` for update`

	changeStatement = `
update endpoints set url = $3, events = $4, description = $5, max_attempts = $6, standard_webhooks = $7,
	filter_partner_ids = $8, filter_campaign_ids = $9, filter_amount_centavos = $10,
	disabled_reason = $11::text, failing_since = case when $11 is not null or disabled_reason is null then failing_since end
where tenant_id = $1 and endpoint_id = $2 and deleted_at is null`
)

// amend changes the endpoint and returns what it is like then. It holds the tenant
// meanwhile: an event that is handled before hears the old choice, and one that is
// handled after it the new one. It holds the endpoint as well, which the sweep disables
// without holding the tenant: what it writes over is what it has read.
func (s *Service) amend(ctx context.Context, tenant, id uuid.UUID, wanted change) (e endpoint, err error) {
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		lockTenants(tx, tenant)
		if e, err = readEndpoint(ctx, tx, holdEndpointQuery, tenant, id); err != nil {
			return err
		}
		wanted.apply(&e)
		f := orNone(e.Filter)
		_, err = tx.Exec(ctx, changeStatement, tenant, id, e.URL, e.Events, e.Description, e.MaxAttempts, e.StandardWebhooks,
			f.PartnerIDs, f.CampaignIDs, f.MinAmount, e.DisabledReason)
		return err
	})
	if err != nil {
		return endpoint{}, fmt.Errorf("change endpoint %s: %w", id, err)
	}
	return e, nil
}
