package webhooks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
)

// Consumers are what the service listens to: everything that may be delivered.
func (s *Service) Consumers() []bus.Consumer {
	return []bus.Consumer{
		bus.OnAny("webhooks-sales", salesEvents, s.fanOut),
		bus.OnAny("webhooks-commissions", commissionsEvents, s.fanOut),
		bus.OnAny("webhooks-goals", goalsEvents, s.fanOut),
	}
}

// fanOut keeps the events, gives each its place in its tenant's feed, and makes one
// delivery for each endpoint that wants it. As soon as that is committed the
// deliveries are on their way.
func (s *Service) fanOut(ctx context.Context, tx *postgres.Tx, events []event.Sealed) error {
	for _, e := range events {
		if !slices.Contains(deliverable, e.Name) {
			return fault.Newf(fault.Invalid, "invalid_event", "%q is no event that may be delivered", e.Name)
		}
	}
	if _, err := tx.Exec(ctx, planStatement); err != nil {
		return fmt.Errorf("set how to plan: %w", err)
	}
	events = oldestFirst(events)
	tenants := tenantsOf(events)
	if err := lockTenants(ctx, tx, tenants...); err != nil {
		return err
	}
	kept, err := keep(ctx, tx, events)
	if err != nil || len(kept) == 0 {
		return err
	}
	listeners, err := listenersOf(ctx, tx, tenants)
	if err != nil {
		return err
	}
	made, err := deliveriesOf(kept, listeners)
	if err != nil || len(made.id) == 0 {
		return err
	}
	if err := made.insert(ctx, tx); err != nil {
		return err
	}
	tx.AfterCommit(func() { s.dispatcher.lanes.wake(made.waiting()) })
	return nil
}

// oldestFirst returns a copy sorted by tenant, time and id: the order of the feed
// within one batch, and one lock order for all replicas. Times are cut to what the
// database holds, so that they are the same here and there.
func oldestFirst(events []event.Sealed) []event.Sealed {
	sorted := slices.Clone(events)
	for i := range sorted {
		sorted[i].CreatedAt = event.Instant(sorted[i].CreatedAt)
	}
	slices.SortFunc(sorted, func(a, b event.Sealed) int {
		return cmp.Or(bytes.Compare(a.TenantID[:], b.TenantID[:]), a.CreatedAt.Compare(b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return sorted
}

// tenantsOf lists each tenant of sorted events once.
func tenantsOf(events []event.Sealed) []uuid.UUID {
	tenants := make([]uuid.UUID, len(events))
	for i, e := range events {
		tenants[i] = e.TenantID
	}
	return slices.Compact(tenants)
}

// An event that is there already uses up no position: the numbers of a tenant have no
// gaps, and none is ever given twice.
const keepStatement = `
with fresh as (
	select told.* from unnest($1::timestamptz[], $2::uuid[], $3::text[], $4::uuid[], $5::bytea[], $6::text[]) with ordinality
		as told (created_at, event_id, name, tenant_id, body, traceparent, place)
	where not exists (select from events e
		where e.tenant_id = told.tenant_id and e.event_id = told.event_id and e.created_at = told.created_at)),
numbered as (
	update tenants t set position = t.position + n.count
	from (select tenant_id, count(*) from fresh group by tenant_id) n
	where t.tenant_id = n.tenant_id
	returning t.tenant_id, t.position - n.count as before)
insert into events (tenant_id, event_id, name, created_at, position, body, traceparent)
select tenant_id, event_id, name, created_at,
	n.before + row_number() over (partition by tenant_id order by place), body, traceparent
from fresh join numbered n using (tenant_id)
returning event_id`

// keep stores the events and returns those that were not there, in their order. The
// tenants must be locked.
func keep(ctx context.Context, tx *postgres.Tx, events []event.Sealed) ([]event.Sealed, error) {
	c := outbox.NewColumns(len(events))
	for _, e := range events {
		c.Append(e)
	}
	rows, err := tx.Query(ctx, keepStatement, c.CreatedAt, c.ID, c.Name, c.Tenant, c.Body, c.Traceparent)
	if err != nil {
		return nil, fmt.Errorf("keep events: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return nil, fmt.Errorf("keep events: %w", err)
	}
	fresh := make(map[event.ID]bool, len(ids))
	for _, id := range ids {
		fresh[id] = true
	}
	return slices.DeleteFunc(events, func(e event.Sealed) bool { return !fresh[e.ID] }), nil
}

// listener is an endpoint that is sent what it chose.
type listener struct {
	lane
	choice
}

const listenersQuery = `
select tenant_id, endpoint_id, events, created_at from endpoints
where tenant_id = any($1::uuid[]) and deleted_at is null and disabled_reason is null
order by tenant_id, endpoint_id`

// listenersOf returns the enabled endpoints of each tenant.
func listenersOf(ctx context.Context, tx *postgres.Tx, tenants []uuid.UUID) (map[uuid.UUID][]listener, error) {
	rows, err := tx.Query(ctx, listenersQuery, tenants)
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	listeners := map[uuid.UUID][]listener{}
	var l listener
	_, err = pgx.ForEachRow(rows, []any{&l.tenant, &l.endpoint, &l.events, &l.since}, func() error {
		listeners[l.tenant] = append(listeners[l.tenant], l)
		l.events = nil // the next row gets a slice of its own
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	return listeners, nil
}

// newDeliveries are deliveries as the arrays that one statement takes.
type newDeliveries struct {
	tenant, id, endpoint []uuid.UUID
	createdAt            []time.Time
	event                [][16]byte
}

// deliveriesOf makes one for each event and each of its tenant's endpoints that wants it.
func deliveriesOf(events []event.Sealed, listeners map[uuid.UUID][]listener) (newDeliveries, error) {
	var made newDeliveries
	for _, e := range events {
		for _, l := range listeners[e.TenantID] {
			if !l.wants(e) {
				continue
			}
			id, err := newDeliveryID(e.CreatedAt)
			if err != nil {
				return made, err
			}
			made.tenant = append(made.tenant, e.TenantID)
			made.id = append(made.id, id)
			made.endpoint = append(made.endpoint, l.endpoint)
			made.createdAt = append(made.createdAt, e.CreatedAt)
			made.event = append(made.event, e.ID)
		}
	}
	return made, nil
}

const deliverStatement = `
insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id)
select * from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::uuid[], $5::uuid[])
on conflict on constraint deliveries_once do nothing`

func (d newDeliveries) insert(ctx context.Context, tx *postgres.Tx) error {
	if _, err := tx.Exec(ctx, deliverStatement, d.tenant, d.id, d.createdAt, d.event, d.endpoint); err != nil {
		return fmt.Errorf("make deliveries: %w", err)
	}
	return nil
}

// waiting tells the dispatcher where there is work, and of which age.
func (d newDeliveries) waiting() map[lane]time.Time {
	waiting := map[lane]time.Time{}
	for i := range d.id {
		l := lane{d.tenant[i], d.endpoint[i]}
		if since, ok := waiting[l]; !ok || d.createdAt[i].Before(since) {
			waiting[l] = d.createdAt[i]
		}
	}
	return waiting
}
