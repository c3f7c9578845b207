package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// Parked is an event that a consumer can never handle as things stand. It waits
// here for an operator, who mends the cause and retries it, or drops it.
type Parked struct {
	Consumer    string
	ID          event.ID
	Name        string
	TenantID    uuid.UUID
	Body        []byte
	Traceparent string
	Reason      string
	Times       int
	ParkedAt    time.Time
}

// ErrNotParked means that no event of that id is parked.
var ErrNotParked = errors.New("no such event is parked")

const parkStatement = `
insert into parked_events (consumer, event_id, name, tenant_id, body, traceparent, reason, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (consumer, event_id) do update
set body = case when parked_events.dropped_at is null then parked_events.body else excluded.body end, reason = excluded.reason, times = parked_events.times + 1, parked_at = now(), dropped_at = null`

func park(ctx context.Context, pool *pgxpool.Pool, consumer string, e event.Sealed, reason error) error {
	_, err := pool.Exec(ctx, parkStatement, consumer, [16]byte(e.ID), storable(e.Name), e.TenantID, e.Body,
		storable(e.Traceparent), storable(reason.Error()), pgtype.Timestamptz{Time: e.CreatedAt, Valid: !e.CreatedAt.IsZero()})
	if err != nil {
		return fmt.Errorf("park event %s: %w", e.ID, postgres.Explain(err))
	}
	return nil
}

// storable returns text without what PostgreSQL refuses in a text: an event is parked
// whatever it carries.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

const parkedColumns = `consumer, event_id, name, tenant_id, body, traceparent, reason, times, parked_at`

const listParkedQuery = `select ` + parkedColumns + ` from parked_events where dropped_at is null order by parked_at desc, event_id limit $1`

// ListParked returns the newest parked events, at most limit.
func ListParked(ctx context.Context, pool *pgxpool.Pool, limit int) ([]Parked, error) {
	return readParked(ctx, pool, listParkedQuery, limit)
}

const showParkedQuery = `select ` + parkedColumns + ` from parked_events where event_id = $1 and dropped_at is null order by consumer`

// ShowParked returns the event as each consumer parked it, or ErrNotParked.
func ShowParked(ctx context.Context, pool *pgxpool.Pool, id event.ID) ([]Parked, error) {
	found, err := readParked(ctx, pool, showParkedQuery, [16]byte(id))
	if err == nil && len(found) == 0 {
		err = ErrNotParked
	}
	return found, err
}

// RetryParked hands the event to the consumers that parked it, once more. Those that
// succeed forget that it was parked; the first that fails, or is not among consumers,
// ends it with an error, and the event stays parked there.
//
// An event waits here for as long as its cause does, and its receipt needs a place however
// old it has become by then. The receipts of its day may be gone: whoever retries what was
// handled meanwhile is stopped by the constraints of what the handler writes.
func RetryParked(ctx context.Context, pool *pgxpool.Pool, consumers []Consumer, id event.ID) error {
	found, err := ShowParked(ctx, pool, id)
	if err != nil {
		return err
	}
	for _, p := range found {
		i := slices.IndexFunc(consumers, func(c Consumer) bool { return c.Name == p.Consumer })
		if i < 0 {
			return fmt.Errorf("retry %s for %s: there is no such consumer", id, p.Consumer)
		}
		e, err := event.Open(p.Body)
		if err != nil {
			return fmt.Errorf("retry %s for %s: %w", id, p.Consumer, err)
		}
		e.Traceparent = p.Traceparent
		if err := postgres.EnsureDay(ctx, pool, "receipts", e.CreatedAt); err != nil {
			return fmt.Errorf("retry %s for %s: %w", id, p.Consumer, err)
		}
		if err := consumers[i].apply(ctx, pool, []event.Sealed{e}); err != nil {
			return fmt.Errorf("retry %s for %s: %w", id, p.Consumer, err)
		}
		if err := forgetParked(ctx, pool, p.Consumer, id); err != nil {
			return err
		}
	}
	return nil
}

const dropParkedStatement = `update parked_events set dropped_at = now(), body = '' where event_id = $1 and dropped_at is null`

// DropParked forgets the event for good: what it told will be missing, and is known to be
// missing. It returns ErrNotParked where there is none.
func DropParked(ctx context.Context, pool *pgxpool.Pool, id event.ID) error {
	tag, err := pool.Exec(ctx, dropParkedStatement, [16]byte(id))
	if err != nil {
		return fmt.Errorf("drop parked event %s: %w", id, postgres.Explain(err))
	}
	if tag.RowsAffected() == 0 {
		return ErrNotParked
	}
	return nil
}

const forgetParkedStatement = `delete from parked_events where consumer = $1 and event_id = $2`

func forgetParked(ctx context.Context, pool *pgxpool.Pool, consumer string, id event.ID) error {
	if _, err := pool.Exec(ctx, forgetParkedStatement, consumer, [16]byte(id)); err != nil {
		return fmt.Errorf("forget parked event %s: %w", id, err)
	}
	return nil
}

func readParked(ctx context.Context, pool *pgxpool.Pool, query string, args ...any) ([]Parked, error) {
	rows, err := pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read parked events: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Parked, err error) {
		var id [16]byte
		err = row.Scan(&p.Consumer, &id, &p.Name, &p.TenantID, &p.Body, &p.Traceparent, &p.Reason, &p.Times, &p.ParkedAt)
		p.ID = id
		return p, err
	})
}
