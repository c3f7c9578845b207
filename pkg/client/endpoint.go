package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/money"
)

// NewWebhookEndpoint is an address that is to hear of events.
type NewWebhookEndpoint struct {
	URL              string         `json:"url"`
	Events           []string       `json:"events"` // names, or "*" for those that everybody hears
	Description      string         `json:"description,omitzero"`
	MaxAttempts      int            `json:"max_attempts,omitzero"`      // 1 to 20; 0 is 1
	StandardWebhooks bool           `json:"standard_webhooks,omitzero"` // adds the headers of Standard Webhooks
	Filter           *WebhookFilter `json:"filter,omitzero"`            // nil: all of the events
}

// WebhookFilter narrows what an endpoint hears of its events. A zero member narrows
// nothing, and what an event does not have keeps it from nobody.
type WebhookFilter struct {
	PartnerIDs  []uuid.UUID `json:"partner_ids,omitzero"`
	CampaignIDs []uuid.UUID `json:"campaign_ids,omitzero"`
	MinAmount   money.BRL   `json:"min_amount_brl,omitzero"`
}

// WebhookEndpoint is an address that hears of events.
type WebhookEndpoint struct {
	EndpointID       uuid.UUID      `json:"endpoint_id"`
	URL              string         `json:"url"`
	Events           []string       `json:"events"`
	Description      *string        `json:"description"`
	MaxAttempts      int            `json:"max_attempts"`
	StandardWebhooks bool           `json:"standard_webhooks"`
	Filter           *WebhookFilter `json:"filter"`
	Status           string         `json:"status"`          // enabled or disabled
	DisabledReason   *string        `json:"disabled_reason"` // nil while it is enabled
	CreatedAt        time.Time      `json:"created_at"`
}

// RegisteredWebhookEndpoint is a new endpoint with the secret that signs what it hears,
// which cannot be read again.
type RegisteredWebhookEndpoint struct {
	WebhookEndpoint
	Secret string `json:"secret"`
}

const endpointsPath = "/api/v1/webhook-endpoints"

// CreateWebhookEndpoint registers an address. It is never repeated once it may have been
// sent: if the answer is lost so is the secret; find the endpoint by its URL and delete
// it.
func (c *Client) CreateWebhookEndpoint(ctx context.Context, endpoint NewWebhookEndpoint) (RegisteredWebhookEndpoint, error) {
	return send[RegisteredWebhookEndpoint](ctx, c, call{what: "create webhook endpoint", method: http.MethodPost, path: endpointsPath, body: endpoint})
}

// GetWebhookEndpoint reads one endpoint.
func (c *Client) GetWebhookEndpoint(ctx context.Context, endpointID uuid.UUID) (WebhookEndpoint, error) {
	return read[WebhookEndpoint](ctx, c, "read webhook endpoint", endpointsPath+"/"+endpointID.String())
}

// ListWebhookEndpoints yields all endpoints, the last one first.
func (c *Client) ListWebhookEndpoints(ctx context.Context) iter.Seq2[WebhookEndpoint, error] {
	return list[WebhookEndpoint](ctx, c, "list webhook endpoints", endpointsPath, filter{})
}

// WebhookEndpointUpdate is what is to change of an endpoint. A zero member stays as it is.
type WebhookEndpointUpdate struct {
	URL              string                  `json:"url,omitzero"`
	Events           []string                `json:"events,omitzero"`
	Description      Nullable[string]        `json:"description,omitzero"`
	MaxAttempts      int                     `json:"max_attempts,omitzero"`
	StandardWebhooks *bool                   `json:"standard_webhooks,omitzero"`
	Filter           Nullable[WebhookFilter] `json:"filter,omitzero"` // replaces the whole filter
	Status           string                  `json:"status,omitzero"` // enabled or disabled
}

// UpdateWebhookEndpoint changes an endpoint and answers what it is like then. What is
// handled afterwards follows the change.
func (c *Client) UpdateWebhookEndpoint(ctx context.Context, endpointID uuid.UUID, update WebhookEndpointUpdate) (WebhookEndpoint, error) {
	return send[WebhookEndpoint](ctx, c, call{
		what: "update webhook endpoint", method: http.MethodPatch, path: endpointsPath + "/" + endpointID.String(), body: update,
	})
}

// RotatedWebhookSecret is the new secret of an endpoint, which cannot be read again.
type RotatedWebhookSecret struct {
	EndpointID    uuid.UUID  `json:"endpoint_id"`
	Secret        string     `json:"secret"`
	PreviousUntil *time.Time `json:"previous_valid_until"` // nil: the one before signs no more
}

// RotateWebhookSecret replaces the secret of an endpoint. The one before signs beside it
// for the overlap, in whole seconds and at most 7 days. It is never repeated once it may
// have been sent: if the answer is lost, rotate again.
func (c *Client) RotateWebhookSecret(ctx context.Context, endpointID uuid.UUID, overlap time.Duration) (RotatedWebhookSecret, error) {
	body := struct {
		OverlapSeconds int64 `json:"overlap_seconds"`
	}{int64(overlap / time.Second)}
	return send[RotatedWebhookSecret](ctx, c, call{
		what: "rotate webhook secret", method: http.MethodPost, path: endpointsPath + "/" + endpointID.String() + "/rotate-secret", body: body,
	})
}

// DeleteWebhookEndpoint ends an endpoint; the history of its deliveries stays. One that
// is deleted already is a 404 not_found.
func (c *Client) DeleteWebhookEndpoint(ctx context.Context, endpointID uuid.UUID) error {
	_, err := send[nothing](ctx, c, call{what: "delete webhook endpoint", method: http.MethodDelete, path: endpointsPath + "/" + endpointID.String()})
	return err
}
