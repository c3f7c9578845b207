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
	made, skipped := deliveriesOf(kept, listeners)
	if err := insertSkipped(ctx, tx, skipped); err != nil {
		return err
	}
	if len(made) == 0 {
		return nil
	}
	s.dispatcher.hold(tx, made)
	return insertPending(ctx, tx, made)
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
// gaps, and none is ever given twice. The bounds $7 and $8 spare a look at other days.
const keepStatement = `
with fresh as (
	select told.* from unnest($1::timestamptz[], $2::uuid[], $3::text[], $4::uuid[], $5::bytea[], $6::text[]) with ordinality
		as told (created_at, event_id, name, tenant_id, body, traceparent, place)
	where not exists (select from events e
		where e.tenant_id = told.tenant_id and e.event_id = told.event_id and e.created_at = told.created_at
			and e.created_at between $7 and $8)),
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
	oldest, newest := slices.MinFunc(c.CreatedAt, time.Time.Compare), slices.MaxFunc(c.CreatedAt, time.Time.Compare)
	rows, err := tx.Query(ctx, keepStatement, c.CreatedAt, c.ID, c.Name, c.Tenant, c.Body, c.Traceparent, oldest, newest)
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
	url      string
	sealed   []byte
	allowed  int // attempts of each delivery
	disabled bool
}

const listenersQuery = `
select tenant_id, endpoint_id, events, created_at, url, secret, max_attempts, disabled_reason is not null from endpoints
where tenant_id = any($1::uuid[]) and deleted_at is null
order by tenant_id, endpoint_id`

// listenersOf returns the endpoints of each tenant.
func listenersOf(ctx context.Context, tx *postgres.Tx, tenants []uuid.UUID) (map[uuid.UUID][]listener, error) {
	rows, err := tx.Query(ctx, listenersQuery, tenants)
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	listeners := map[uuid.UUID][]listener{}
	var l listener
	_, err = pgx.ForEachRow(rows, []any{&l.tenant, &l.endpoint, &l.events, &l.since, &l.url, &l.sealed, &l.allowed, &l.disabled}, func() error {
		listeners[l.tenant] = append(listeners[l.tenant], l)
		l.events, l.sealed = nil, nil // the next row gets slices of its own
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	return listeners, nil
}

// deliveriesOf makes one for each event and each of its tenant's endpoints that wants it.
// Those to an endpoint that is disabled are skipped.
func deliveriesOf(events []event.Sealed, listeners map[uuid.UUID][]listener) (made, skipped []claimed) {
	for _, e := range events {
		for _, l := range listeners[e.TenantID] {
			if !l.wants(e) {
				continue
			}
			d := claimed{
				lane: l.lane, id: deliveryIDOf(e.CreatedAt, e.ID, l.endpoint), createdAt: e.CreatedAt, eventID: e.ID,
				name: e.Name, body: e.Body, traceparent: e.Traceparent, url: l.url, sealed: l.sealed, allowed: l.allowed,
			}
			if l.disabled {
				skipped = append(skipped, d)
			} else {
				made = append(made, d)
			}
		}
	}
	return made, skipped
}

const skippedStatement = `
insert into deliveries (tenant_id, endpoint_id, delivery_id, created_at, event_id, state, reason)
select tenant_id, endpoint_id, delivery_id, created_at, event_id, 'skipped', '` + skippedDisabled + `'
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::uuid[])
	as made (tenant_id, endpoint_id, delivery_id, created_at, event_id)`

// insertSkipped stores deliveries that have ended before they began.
func insertSkipped(ctx context.Context, tx *postgres.Tx, skipped []claimed) error {
	n := len(skipped)
	if n == 0 {
		return nil
	}
	tenants, endpoints, ids := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]uuid.UUID, n)
	created, events := make([]time.Time, n), make([][16]byte, n)
	for i, d := range skipped {
		tenants[i], endpoints[i], ids[i], created[i], events[i] = d.tenant, d.endpoint, d.id, d.createdAt, d.eventID
	}
	if _, err := tx.Exec(ctx, skippedStatement, tenants, endpoints, ids, created, events); err != nil {
		return fmt.Errorf("skip deliveries: %w", err)
	}
	tx.AfterCommit(func() { countEnded(stateSkipped, n) })
	return nil
}

const deliverStatement = `
insert into pending (tenant_id, endpoint_id, delivery_id, created_at, event_id, claim, allowed, claimed_at)
select tenant_id, endpoint_id, delivery_id, created_at, event_id, claim, allowed, case when claim is not null then clock_timestamp() end
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::uuid[], $6::uuid[], $7::smallint[])
	as made (tenant_id, endpoint_id, delivery_id, created_at, event_id, claim, allowed)`

// insertPending stores deliveries, with the claims of those that are held.
func insertPending(ctx context.Context, tx *postgres.Tx, made []claimed) error {
	n := len(made)
	tenants, endpoints, ids := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]uuid.UUID, n)
	created, events, claims, allowed := make([]time.Time, n), make([][16]byte, n), make([]uuid.NullUUID, n), make([]int16, n)
	for i, d := range made {
		tenants[i], endpoints[i], ids[i], created[i], events[i] = d.tenant, d.endpoint, d.id, d.createdAt, d.eventID
		claims[i], allowed[i] = uuid.NullUUID{UUID: d.claim, Valid: d.claim != uuid.Nil}, int16(d.allowed)
	}
	if _, err := tx.Exec(ctx, deliverStatement, tenants, endpoints, ids, created, events, claims, allowed); err != nil {
		return fmt.Errorf("make deliveries: %w", err)
	}
	return nil
}
