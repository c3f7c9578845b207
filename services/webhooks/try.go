package webhooks

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// trial is what came of a sample that was sent to see whether it arrives.
type trial struct {
	Event     string   `json:"event"`
	EventID   event.ID `json:"event_id"`
	Delivered bool     `json:"delivered"`
	attemptView
	Request *requestView `json:"request"`
}

// testEndpoint answers POST /api/v1/webhook-endpoints/{endpoint_id}/test. The sample goes
// the way of a webhook, through the same guard, and also where the endpoint is disabled
// or would not hear the event. It is no delivery, and nothing of it is recorded.
func (s *Service) testEndpoint(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("endpoint_id")
	if err != nil {
		return web.Answer{}, err
	}
	var wanted struct {
		Event *string `json:"event"`
	}
	if err := call.Decode(&wanted); err != nil {
		return web.Answer{}, err
	}
	found, err := s.listeners(call.Context(), call.Tenant(), &id)
	if err != nil {
		return web.Answer{}, err
	}
	if len(found) == 0 {
		return web.Answer{}, web.NotFound()
	}
	made, err := s.try(call.Context(), found[0], orElse(wanted.Event, found[0].first()))
	if err != nil {
		return web.Answer{}, fmt.Errorf("test endpoint %s: %w", id, err)
	}
	return web.Answer{Status: http.StatusOK, Body: made}, nil
}

// try sends a sample to the endpoint now and waits for what comes of it, no longer than
// an attempt may take.
func (s *Service) try(ctx context.Context, to listener, name string) (trial, error) {
	told, err := s.sample(to.tenant, name, nil)
	if err != nil {
		return trial{}, err
	}
	signed, err := s.sealer.sign(to.endpoint, to.sealed, told.ID, s.deps.Now(), told.Body)
	if err != nil {
		return trial{}, err
	}
	r := compose(to.url, told.Name, told.Body, signed)
	view, err := viewRequest(r)
	if err != nil {
		return trial{}, err
	}
	got := s.dispatcher.sender.send(ctx, r)
	return trial{Event: told.Name, EventID: told.ID, Delivered: got.Delivered, attemptView: got.view(), Request: view}, nil
}

// view is the attempt as the API shows it.
func (o outcome) view() attemptView {
	ms := int(o.Duration.Milliseconds())
	shown := attemptView{At: openapi.Time{Time: event.Instant(o.At)}, DurationMS: &ms}
	if o.StatusCode != 0 {
		shown.StatusCode = &o.StatusCode
	}
	if why := string(o.Error); why != "" {
		shown.Error = &why
	}
	if o.Excerpt != "" {
		shown.Excerpt = &o.Excerpt
	}
	return shown
}

// first is the first event that the endpoint has chosen.
func (l *listener) first() string {
	if l.events[0] == usual {
		return event.Default[0]
	}
	return l.events[0]
}

const listenersOfTenantQuery = `
select ` + listenerColumns + ` from endpoints
where tenant_id = $1 and deleted_at is null and ($2::uuid is null or endpoint_id = $2)
order by endpoint_id desc`

// listeners returns the tenant's endpoints, or the one of that id, the newest first.
func (s *Service) listeners(ctx context.Context, tenant uuid.UUID, id *uuid.UUID) ([]listener, error) {
	rows, err := s.deps.Pool.Query(ctx, listenersOfTenantQuery, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", postgres.Explain(err))
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l listener, err error) {
		return l, row.Scan(l.columns()...)
	})
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", postgres.Explain(err))
	}
	return list, nil
}
