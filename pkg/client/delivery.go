package client

import (
	"context"
	"iter"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
)

// WebhookDelivery is one event on its way to one endpoint.
type WebhookDelivery struct {
	DeliveryID uuid.UUID        `json:"delivery_id"`
	EventID    event.ID         `json:"event_id"`
	Event      string           `json:"event"` // its name
	EndpointID uuid.UUID        `json:"endpoint_id"`
	Status     string           `json:"status"` // pending, delivered, failed, unknown or skipped
	Reason     *string          `json:"reason"` // why it was skipped: disabled, deleted or filter
	Attempts   []WebhookAttempt `json:"attempts"`

	// Request is what was sent, or would be sent now. It is nil in a list, and for what
	// was never signed and cannot be any more.
	Request *WebhookRequest `json:"request"`
}

// WebhookAttempt is one sending. What is nil was not learned.
type WebhookAttempt struct {
	At              time.Time `json:"at"`
	DurationMS      *int      `json:"duration_ms"`
	StatusCode      *int      `json:"status_code"`
	Error           *string   `json:"error"` // dns, blocked, connect, tls, timeout, status, reset or redirect
	ResponseExcerpt *string   `json:"response_excerpt"`
}

// WebhookRequest is what an endpoint is sent, to the byte.
type WebhookRequest struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

const deliveriesPath = "/api/v1/webhook-deliveries"

// GetWebhookDelivery reads one delivery with its request.
func (c *Client) GetWebhookDelivery(ctx context.Context, deliveryID uuid.UUID) (WebhookDelivery, error) {
	return read[WebhookDelivery](ctx, c, "read webhook delivery", deliveriesPath+"/"+deliveryID.String())
}

// WebhookDeliveryFilter narrows a list of deliveries. A zero member narrows nothing.
type WebhookDeliveryFilter struct {
	EndpointID uuid.UUID
	Event      string // a name
	Status     string
	From       time.Time // of events from then on
	To         time.Time // of events before
}

// ListWebhookDeliveries yields the deliveries that the filter lets through, those of the
// newest events first.
func (c *Client) ListWebhookDeliveries(ctx context.Context, f WebhookDeliveryFilter) iter.Seq2[WebhookDelivery, error] {
	return list[WebhookDelivery](ctx, c, "list webhook deliveries", deliveriesPath, filter{}.id("endpoint_id", f.EndpointID).
		text("event", f.Event).text("status", f.Status).time("from", f.From).time("to", f.To))
}
