package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/web"
)

// deliveryFilter is what a list of deliveries is narrowed to; nil does not narrow it.
type deliveryFilter struct {
	endpointID   *uuid.UUID
	event        *string // a name
	status       *string
	fromTime, to *time.Time // of the events, the end not included
}

// listDeliveries answers a page of the tenant's deliveries, those of the newest events
// first.
func (s *Service) listDeliveries(call *web.Call) (web.Answer, error) {
	filter, err := readDeliveryFilter(call)
	if err != nil {
		return web.Answer{}, err
	}
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	rows, err := s.deliveries(call.Context(), call.Tenant(), page, filter)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Cut(page, rows, func(d delivery) uuid.UUID { return d.ID }), nil
}

func readDeliveryFilter(call *web.Call) (f deliveryFilter, err error) {
	if f.endpointID, err = call.QueryID("endpoint_id"); err != nil {
		return f, err
	}
	if f.event, err = call.QueryChoice("event", deliverable...); err != nil {
		return f, err
	}
	if f.status, err = call.QueryChoice("status", statusPending, stateDelivered, stateFailed, stateUnknown, stateSkipped); err != nil {
		return f, err
	}
	if f.fromTime, err = call.QueryTime("from"); err != nil {
		return f, err
	}
	f.to, err = call.QueryTime("to")
	return f, err
}

// Of what is pending and of what has ended a page is a walk along one index each. What
// has ended is looked up by its status where that is another than delivered, for little
// is; else by its endpoint, or by its event; whatever else narrows the list is picked from
// that. Ids tell the millisecond of their event, so a span of time is one of ids, and of
// the partitions that it can be in; only at its two ends times are looked at.
const (
	pendingOfTenant = `
	select next.* from endpoints p cross join lateral (` + pendingRows + `
		where tenant_id = @tenant_id and endpoint_id = p.endpoint_id` + pendingPicked + `) next
	where p.tenant_id = @tenant_id and ` + mayHavePending

	pendingOfEndpoint = pendingRows + `
	where tenant_id = @tenant_id and endpoint_id = @endpoint_id` + pendingPicked

	pendingPicked = `
	and (@status::text is null or @status = '` + statusPending + `') and (@event::text is null or name = @event)` + inWindow + newestFirst

	endedOfTenant   = endedRows + ` where tenant_id = @tenant_id` + endedPicked
	endedOfEndpoint = endedRows + ` where tenant_id = @tenant_id and endpoint_id = @endpoint_id` + endedPicked
	endedOfEvent    = endedRows + ` where tenant_id = @tenant_id and name = @event` + endedPicked

	endedPicked = `
	and (@status::text is null or state = @status) and (@event::text is null or name = @event)` + inWindow + newestFirst

	undelivered           = endedRows + ` where tenant_id = @tenant_id` + undeliveredPicked
	undeliveredOfEndpoint = endedRows + ` where tenant_id = @tenant_id and endpoint_id = @endpoint_id` + undeliveredPicked

	undeliveredPicked = `
	and state = @status and state <> 'delivered' and (@event::text is null or name = @event)` + inWindow + newestFirst

	inWindow = `
	and delivery_id >= @first and delivery_id < @before
	and created_at >= @from_time and created_at < @to_time`

	newestFirst = `
	order by delivery_id desc limit @limit`

	// withAttempts makes one row of each attempt of a delivery, or of its not having any.
	withAttempts = `)
	order by delivery_id desc limit @limit)
select ` + deliveryColumns + `
from page d
left join lateral (
	select * from attempts a
	where a.tenant_id = d.tenant_id and a.delivery_id = d.delivery_id and a.created_at = d.created_at
	order by a.at desc limit @attempts) a on true
order by d.delivery_id desc, a.at`

	pageOfTenant   = `with page as ((` + pendingOfTenant + `) union all (`
	pageOfEndpoint = `with page as ((` + pendingOfEndpoint + `) union all (`

	listDeliveriesQuery           = pageOfTenant + endedOfTenant + withAttempts
	listOfEventQuery              = pageOfTenant + endedOfEvent + withAttempts
	listUndeliveredQuery          = pageOfTenant + undelivered + withAttempts
	listOfEndpointQuery           = pageOfEndpoint + endedOfEndpoint + withAttempts
	listUndeliveredEndpointsQuery = pageOfEndpoint + undeliveredOfEndpoint + withAttempts
)

// query is the statement that serves the filter.
func (f deliveryFilter) query() string {
	delivered := f.status == nil || *f.status == stateDelivered
	switch {
	case f.endpointID != nil && delivered:
		return listOfEndpointQuery
	case f.endpointID != nil:
		return listUndeliveredEndpointsQuery
	case !delivered:
		return listUndeliveredQuery
	case f.event != nil:
		return listOfEventQuery
	default:
		return listDeliveriesQuery
	}
}

// Times between which every event is.
var (
	longAgo   = time.Unix(0, 0).UTC()
	farFuture = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// arguments are those of the filter's query for a page.
func (f deliveryFilter) arguments(tenant uuid.UUID, page web.Page) pgx.NamedArgs {
	from, to, id := longAgo, farFuture, before(page)
	if f.fromTime != nil {
		from = *f.fromTime
	}
	if f.to != nil {
		to = *f.to
	}
	if _, until := createdWithin(id); until.Before(to) {
		to = until
	}
	return pgx.NamedArgs{
		"tenant_id": tenant, "endpoint_id": f.endpointID, "event": f.event, "status": f.status,
		"first": firstDeliveryID(from), "before": id, "from_time": from, "to_time": to, "limit": page.Limit + 1, "attempts": attemptsListed,
	}
}

// deliveries returns the rows of the page and, if there are more, one beyond it.
func (s *Service) deliveries(ctx context.Context, tenant uuid.UUID, page web.Page, f deliveryFilter) ([]delivery, error) {
	var list []delivery
	err := lookUp(ctx, s.deps.Pool, f.query(), f.arguments(tenant, page), func(rows pgx.Rows) (err error) {
		list, err = collectDeliveries(rows)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return list, nil
}
