package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// NewWebhookEndpoint is an address that is to hear of events.
type NewWebhookEndpoint struct {
	URL         string   `json:"url"`
	Events      []string `json:"events"` // names, or "*" for those that everybody hears
	Description string   `json:"description,omitzero"`
}

// WebhookEndpoint is an address that hears of events.
type WebhookEndpoint struct {
	EndpointID     uuid.UUID `json:"endpoint_id"`
	URL            string    `json:"url"`
	Events         []string  `json:"events"`
	Description    *string   `json:"description"`
	Status         string    `json:"status"`          // enabled or disabled
	DisabledReason *string   `json:"disabled_reason"` // nil while it is enabled
	CreatedAt      time.Time `json:"created_at"`
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

// DeleteWebhookEndpoint ends an endpoint; the history of its deliveries stays. One that
// is deleted already is a 404 not_found.
func (c *Client) DeleteWebhookEndpoint(ctx context.Context, endpointID uuid.UUID) error {
	_, err := send[nothing](ctx, c, call{what: "delete webhook endpoint", method: http.MethodDelete, path: endpointsPath + "/" + endpointID.String()})
	return err
}
