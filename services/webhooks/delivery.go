package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// statusPending is how the API shows a delivery that has no outcome yet.
const statusPending = "pending"

// delivery is one event on its way to one endpoint, as the API shows it.
type delivery struct {
	ID         uuid.UUID     `json:"delivery_id"`
	EventID    event.ID      `json:"event_id"`
	Event      string        `json:"event"`
	EndpointID uuid.UUID     `json:"endpoint_id"`
	Status     string        `json:"status"`
	Reason     *string       `json:"reason"`
	Attempts   []attemptView `json:"attempts"`
}

// attemptView is one sending as the API shows it.
type attemptView struct {
	At         openapi.Time `json:"at"`
	DurationMS *int         `json:"duration_ms"`
	StatusCode *int         `json:"status_code"`
	Error      *string      `json:"error"`
	Excerpt    *string      `json:"response_excerpt"`
}

// How many attempts of a delivery are shown at most, the newest ones: however often it
// was sent again, an answer has an end.
const (
	attemptsShown  = 100
	attemptsListed = 20 // in a list
)

const (
	pendingRows = `
	select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, '` + statusPending + `' as state, null as reason from pending`

	endedRows = `
	select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state, reason from deliveries`

	// mayHavePending holds for an endpoint p of which something may be pending: within a day
	// of its being deleted all of that has been skipped.
	mayHavePending = `(p.deleted_at is null or p.deleted_at > now() - interval '1 day')`

	// deliveryColumns are what collectDeliveries reads, in its order.
	deliveryColumns = `d.delivery_id, d.event_id, d.name, d.endpoint_id, d.state, d.reason,
	a.at, a.duration_ms, a.status_code, a.error, a.response_excerpt`
)

// collectDeliveries reads rows of deliveryColumns and then the extra columns, of which
// the last row's stay. Rows of one delivery follow each other, its attempts in order.
func collectDeliveries(rows pgx.Rows, extra ...any) (list []delivery, err error) {
	var d delivery
	var id [16]byte
	var at *time.Time
	var a attemptView
	columns := []any{&d.ID, &id, &d.Event, &d.EndpointID, &d.Status, &d.Reason, &at, &a.DurationMS, &a.StatusCode, &a.Error, &a.Excerpt}
	_, err = pgx.ForEachRow(rows, append(columns, extra...), func() error {
		if len(list) == 0 || list[len(list)-1].ID != d.ID {
			d.EventID, d.Attempts = id, []attemptView{}
			list = append(list, d)
		}
		if at != nil {
			a.At.Time = *at
			last := &list[len(list)-1]
			last.Attempts = append(last.Attempts, a)
		}
		return nil
	})
	return list, err
}

// deliveryDetail is a delivery with the request that was sent for it, or would be sent
// now, also where the worker that sent it died; null where it was never signed and cannot
// be any more.
type deliveryDetail struct {
	delivery
	Request *requestView `json:"request"`
}

// getDelivery answers one delivery of the tenant as it is now.
func (s *Service) getDelivery(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("delivery_id")
	if err != nil {
		return web.Answer{}, err
	}
	found, err := s.delivery(call.Context(), call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: found}, nil
}

const getDeliveryQuery = `
with d as (
	select next.* from endpoints p cross join lateral (` + pendingRows + `
		where tenant_id = $1 and endpoint_id = p.endpoint_id and delivery_id = $2) next
	where p.tenant_id = $1 and ` + mayHavePending + `
	union all` + endedRows + `
	where tenant_id = $1 and delivery_id = $2 and created_at >= $3 and created_at < $4)
select ` + deliveryColumns + `, e.name, e.body, a.url, a.signature, p.url, ` + signingColumns + `
from d
join events e on e.tenant_id = d.tenant_id and e.event_id = d.event_id and e.created_at = d.created_at
	and e.created_at >= $3 and e.created_at < $4
join endpoints p on p.tenant_id = d.tenant_id and p.endpoint_id = d.endpoint_id
left join lateral (
	select * from attempts a
	where a.tenant_id = d.tenant_id and a.delivery_id = d.delivery_id and a.created_at = d.created_at
		and a.created_at >= $3 and a.created_at < $4
	order by a.at desc limit $5) a on true
order by a.at`

// delivery returns the tenant's delivery of that id. Another tenant's is not found.
func (s *Service) delivery(ctx context.Context, tenant, id uuid.UUID) (deliveryDetail, error) {
	from, until := createdWithin(id)
	rows, err := s.deps.Pool.Query(ctx, getDeliveryQuery, tenant, id, from, until, attemptsShown)
	if err != nil {
		return deliveryDetail{}, fmt.Errorf("read delivery %s: %w", id, postgres.Explain(err))
	}
	var r requestRow
	found, err := collectDeliveries(rows, append([]any{&r.event, &r.body, &r.sentTo, &r.signature, &r.url}, r.sealed.columns()...)...)
	switch {
	case err != nil:
		return deliveryDetail{}, fmt.Errorf("read delivery %s: %w", id, postgres.Explain(err))
	case len(found) == 0:
		return deliveryDetail{}, web.NotFound()
	}
	detail := deliveryDetail{delivery: found[0]}
	if detail.Request, err = s.requestOf(detail.delivery, r); err != nil {
		return deliveryDetail{}, fmt.Errorf("read delivery %s: %w", id, err)
	}
	return detail, nil
}
