package webhooks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
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
		bus.OnAny("webhooks-sales", salesEvents, s.fanOut).CountedBy(keptQuery),
		bus.OnAny("webhooks-commissions", commissionsEvents, s.fanOut).CountedBy(keptQuery),
		bus.OnAny("webhooks-goals", goalsEvents, s.fanOut).CountedBy(keptQuery),
	}
}

// keptQuery counts the events of a window that are kept, whoever they are of. Their bytes
// are those that were told, and so are their amounts.
const keptQuery = `
select count(*), null::bigint, null::bigint from events where created_at >= $1 and created_at < $2 and name = any($3::text[])`

// fanOut keeps the events, gives each its place in its tenant's feed, adds them to the
// totals of their days, and makes one delivery for each endpoint that wants it; what an
// endpoint's filter keeps away is skipped, and so is what an endpoint would get that is
// disabled. As soon as that is committed the deliveries are on their way.
func (s *Service) fanOut(ctx context.Context, tx *postgres.Tx, events []event.Sealed) error {
	for _, e := range events {
		if !slices.Contains(deliverable, e.Name) {
			return fault.Newf(fault.Invalid, "invalid_event", "%q is no event that may be delivered", e.Name)
		}
	}
	events = oldestFirst(events)
	tenants := tenantsOf(events)
	lockTenants(tx, tenants...)
	listeners := listenersOf(tx, tenants)
	kept, err := keep(ctx, tx, events, dayOf(s.deps.Now()).AddDate(0, 0, -leastKeepDays))
	if err != nil || len(kept) == 0 {
		return err
	}
	if err := addTotals(tx, kept); err != nil {
		return err
	}
	made, disabled, filtered := deliveriesOf(kept, listeners)
	insertSkipped(tx, disabled, reasonDisabled)
	insertSkipped(tx, filtered, reasonFilter)
	if len(made) > 0 {
		s.dispatcher.hold(tx, made)
		insertPending(tx, made)
	}
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
// gaps, and none is ever given twice. The bounds $7 and $8 spare a look at other days.
// Where the newest so far is gone, for which it must be older than $9, its place is kept:
// whoever had read all by then has missed nothing.
const keepStatement = `
with fresh as (
	select told.* from unnest($1::timestamptz[], $2::uuid[], $3::text[], $4::uuid[], $5::bytea[], $6::text[]) with ordinality
		as told (created_at, event_id, name, tenant_id, body, traceparent, place)
	where not exists (select from events e
		where e.tenant_id = told.tenant_id and e.event_id = told.event_id and e.created_at = told.created_at
			and e.created_at between $7 and $8)),
numbered as (
	update tenants t set position = t.position + n.count, newest_event_id = n.newest, newest_at = n.newest_at,
		(quiet_event_id, quiet_position) = (
			select case when gone then t.newest_event_id else t.quiet_event_id end, case when gone then t.position else t.quiet_position end
			from (select coalesce(t.newest_at < $9, false) and not exists (select from events e
				where e.tenant_id = t.tenant_id and e.event_id = t.newest_event_id and e.created_at = t.newest_at) as gone) newest)
	from (
		select tenant_id, count(*), (array_agg(event_id order by place desc))[1] as newest,
			(array_agg(created_at order by place desc))[1] as newest_at
		from fresh group by tenant_id) n
	where t.tenant_id = n.tenant_id
	returning t.tenant_id, t.position - n.count as before)
insert into events (tenant_id, event_id, name, created_at, position, body, traceparent)
select tenant_id, event_id, name, created_at,
	n.before + row_number() over (partition by tenant_id order by place), body, traceparent
from fresh join numbered n using (tenant_id)
returning event_id`

// keep stores the events and returns those that were not there, in their order. The
// tenants must be locked. What is not older than surely has not been dropped.
func keep(ctx context.Context, tx *postgres.Tx, events []event.Sealed, surely time.Time) ([]event.Sealed, error) {
	c := outbox.NewColumns(len(events))
	for _, e := range events {
		c.Append(e)
	}
	oldest, newest := slices.MinFunc(c.CreatedAt, time.Time.Compare), slices.MaxFunc(c.CreatedAt, time.Time.Compare)
	rows, err := tx.Query(ctx, keepStatement, c.CreatedAt, c.ID, c.Name, c.Tenant, c.Body, c.Traceparent, oldest, newest, surely)
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

// listener is an endpoint that is sent what it chose, unless it is disabled.
type listener struct {
	lane
	choice
	filter
	url      string
	allowed  int // attempts of each delivery
	disabled bool
	sealed   sealedSecrets
}

// listenerColumns are what listener.columns takes, in its order.
const listenerColumns = `tenant_id, endpoint_id, events, greatest(created_at, restored_at), url, max_attempts,
	disabled_reason is not null, ` + filterColumns + `, ` + signingColumns

func (l *listener) columns() []any {
	own := []any{&l.tenant, &l.endpoint, &l.events, &l.since, &l.url, &l.allowed, &l.disabled}
	return slices.Concat(own, l.filter.columns(), l.sealed.columns())
}

// refuses tells why the endpoint is not sent an event with the traits; "" if it is.
func (l *listener) refuses(e event.Sealed, seen func() traits) string {
	switch {
	case !l.wants(e):
		return reasonEvent
	case l.filter.whole() != nil && !l.admits(seen()):
		return reasonFilter
	case l.disabled:
		return reasonDisabled
	}
	return ""
}

const listenersQuery = `
select ` + listenerColumns + ` from endpoints
where tenant_id = any($1::uuid[]) and deleted_at is null
order by tenant_id, endpoint_id`

// listenersOf returns where the endpoints of each tenant are once the next statement has
// been answered.
func listenersOf(tx *postgres.Tx, tenants []uuid.UUID) map[uuid.UUID][]listener {
	listeners := map[uuid.UUID][]listener{}
	tx.LaterRows(func(rows pgx.Rows) error {
		var l listener
		_, err := pgx.ForEachRow(rows, l.columns(), func() error {
			listeners[l.tenant] = append(listeners[l.tenant], l)
			l = listener{} // the next row gets slices of its own
			return nil
		})
		return err
	}, postgres.Doing("read endpoints"), listenersQuery, tenants)
	return listeners
}

// deliveriesOf makes one for each event and each of its tenant's endpoints that wants it,
// and tells apart those that are skipped.
func deliveriesOf(events []event.Sealed, listeners map[uuid.UUID][]listener) (made, disabled, filtered []claimed) {
	for _, e := range events {
		seen := sync.OnceValue(func() traits { return traitsOf(e.Body) }) // only for who has a filter
		for _, l := range listeners[e.TenantID] {
			reason := l.refuses(e, seen)
			if reason == reasonEvent {
				continue
			}
			d := claimed{
				lane: l.lane, id: deliveryIDOf(e.CreatedAt, e.ID, l.endpoint), createdAt: e.CreatedAt, eventID: e.ID,
				name: e.Name, body: e.Body, traceparent: e.Traceparent, url: l.url, sealed: l.sealed, allowed: l.allowed,
			}
			switch reason {
			case reasonFilter:
				filtered = append(filtered, d)
			case reasonDisabled:
				disabled = append(disabled, d)
			default:
				made = append(made, d)
			}
		}
	}
	return made, disabled, filtered
}

const deliverStatement = `
insert into pending (tenant_id, endpoint_id, delivery_id, created_at, event_id, name, claim, allowed, claimed_at)
select tenant_id, endpoint_id, delivery_id, created_at, event_id, name, claim, allowed, case when claim is not null then clock_timestamp() end
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::uuid[], $6::text[], $7::uuid[], $8::smallint[])
	as made (tenant_id, endpoint_id, delivery_id, created_at, event_id, name, claim, allowed)`

// insertPending stores deliveries, with the claims of those that are held.
func insertPending(tx *postgres.Tx, made []claimed) {
	claims, allowed := make([]uuid.NullUUID, len(made)), make([]int16, len(made))
	for i, d := range made {
		claims[i], allowed[i] = uuid.NullUUID{UUID: d.claim, Valid: d.claim != uuid.Nil}, int16(d.allowed)
	}
	tx.Later(postgres.Doing("make deliveries"), deliverStatement, append(identities(made), claims, allowed)...)
}

// identities are the columns of what is known of deliveries from the beginning: tenants,
// endpoints, deliveries, the times, ids and names of the events.
func identities(list []claimed) []any {
	n := len(list)
	tenants, endpoints, ids := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]uuid.UUID, n)
	created, events, names := make([]time.Time, n), make([][16]byte, n), make([]string, n)
	for i, d := range list {
		tenants[i], endpoints[i], ids[i], created[i], events[i], names[i] = d.tenant, d.endpoint, d.id, d.createdAt, d.eventID, d.name
	}
	return []any{tenants, endpoints, ids, created, events, names}
}

const skippedStatement = `
insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state, reason)
select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, 'skipped', $7
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::uuid[], $6::text[])
	as made (tenant_id, endpoint_id, delivery_id, created_at, event_id, name)`

// insertSkipped stores deliveries that are never sent by themselves, and why.
func insertSkipped(tx *postgres.Tx, skipped []claimed, reason string) {
	if len(skipped) == 0 {
		return
	}
	tx.Later(postgres.Doing("skip deliveries"), skippedStatement, append(identities(skipped), reason)...)
	tx.AfterCommit(func() { countEnded(stateSkipped, len(skipped)) })
}
