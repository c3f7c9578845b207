package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

const (
	publishAtOnce = 2000                  // events that one round publishes from memory
	sweepSize     = 1000                  // rows that one round of the sweep takes
	settleAfter   = 50 * time.Millisecond // well below the age at which the sweep looks
)

// tempo is how often a relay looks after what memory and the server have lost.
type tempo struct {
	sweepEvery time.Duration
	sweepAge   time.Duration // younger events are still on their way from memory
	watchEvery time.Duration // the stream

	measureEvery   time.Duration // how much is pending, and since when
	reconcileEvery time.Duration
	closeAfter     time.Duration // an event is expected to be committed, and on the stream, so long after its created_at
	compareAtOnce  int           // events that a comparison keeps in memory
}

var usualTempo = tempo{
	sweepEvery: time.Second, sweepAge: 2 * time.Second, watchEvery: 2 * time.Second,
	measureEvery: 15 * time.Second, reconcileEvery: 30 * time.Second, closeAfter: 15 * time.Second,
	compareAtOnce: compareAtOnce,
}

// Relay publishes one service's outbox to its stream. Any number of replicas run
// one each.
type Relay struct {
	pool   *pgxpool.Pool
	bus    *bus.Bus
	stream bus.Stream
	log    *zap.Logger
	tempo  tempo

	committed chan []event.Sealed
	published chan []bus.Outgoing
}

// NewRelay makes the relay of the service that owns stream. It publishes while Run
// runs; Add and Committed work regardless.
func NewRelay(pool *pgxpool.Pool, b *bus.Bus, stream bus.Stream, log *zap.Logger) *Relay {
	for _, count := range []*prometheus.CounterVec{repairs, repaired, missed} {
		count.WithLabelValues(stream.Name) // a first repair shows as a rise from 0
	}
	return &Relay{
		pool: pool, bus: b, stream: stream, log: log, tempo: usualTempo,
		committed: make(chan []event.Sealed, 1024),
		published: make(chan []bus.Outgoing, 64),
	}
}

// Committed hands over events whose transaction has just committed. It never
// waits: if the relay is behind, the sweep publishes them instead.
func (r *Relay) Committed(events []event.Sealed) {
	select {
	case r.committed <- events:
	default:
	}
}

// Run publishes until ctx ends. What it has not published by then is published by
// the next run.
func (r *Relay) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { r.publishCommitted(ctx); return nil })
	group.Go(func() error { r.settle(ctx); return nil })
	group.Go(func() error { r.watchStream(ctx); return nil })
	group.Go(func() error { r.sweepRegularly(ctx); return nil })
	group.Go(func() error { r.reconcileRegularly(ctx); return nil })
	group.Go(func() error { r.tellRegularly(ctx); return nil })
	return group.Wait()
}

// publishCommitted is the fast way: from the commit to the stream without a query.
func (r *Relay) publishCommitted(ctx context.Context) {
	for {
		var events []event.Sealed
		select {
		case <-ctx.Done():
			return
		case events = <-r.committed:
		}
		for more := true; more && len(events) < publishAtOnce; {
			select {
			case next := <-r.committed:
				events = append(events[:len(events):len(events)], next...)
			default:
				more = false
			}
		}
		outgoing := make([]bus.Outgoing, len(events))
		for i, e := range events {
			outgoing[i] = bus.Outgoing{Sealed: e, MessageID: messageID(e.ID, 0)}
		}
		stored, err := r.bus.Publish(ctx, outgoing)
		if err != nil && r.bus.Connected() && ctx.Err() == nil {
			r.log.Warn("cannot publish yet; the sweep will", zap.Error(err))
		}
		if len(stored) > 0 {
			select {
			case r.published <- stored:
			case <-ctx.Done():
				return
			}
		}
	}
}

// settle forgets what the stream has acknowledged, many at a time: nobody waits for
// it, and the sweep does not look for what is younger.
func (r *Relay) settle(ctx context.Context) {
	for {
		var stored []bus.Outgoing
		select {
		case <-ctx.Done():
			return
		case stored = <-r.published:
		}
		enough := time.After(settleAfter)
		for more := true; more && len(stored) < publishAtOnce; {
			select {
			case next := <-r.published:
				stored = append(stored, next...)
			case <-enough:
				more = false
			case <-ctx.Done():
				more = false // what is not settled is published once more
			}
		}
		if err := forget(ctx, r.pool, stored); err != nil && ctx.Err() == nil {
			r.log.Warn("cannot settle published events; the sweep publishes them again", zap.Error(err))
		}
	}
}

// A pending row that comes back after a crash of PostgreSQL is only published
// again, so its removal need not wait for the disk. Its window is to be counted from then
// on, once more where it was: the event may have committed after that.
const forgetStatement = `
with settled as (
	delete from outbox_pending p
	using (select set_config('synchronous_commit', 'off', true)) as relaxed,
		unnest($1::timestamptz[], $2::uuid[], $3::integer[]) as done (created_at, event_id, repair)
	where p.created_at = done.created_at and p.event_id = done.event_id and p.repair = done.repair
	returning p.created_at)
insert into outbox_uncounted (started_at)
select distinct date_bin($4, created_at, 'epoch') from settled order by 1
on conflict do nothing`

// execer is a pool, or a transaction.
type execer interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
}

// forget removes what is stored from the pending events, except what a repair has
// put back since: the stream that acknowledged it may have lost it. It has the windows
// of what it removes counted.
func forget(ctx context.Context, db execer, stored []bus.Outgoing) error {
	days, ids, repairs := make([]time.Time, len(stored)), make([][16]byte, len(stored)), make([]int, len(stored))
	for i, e := range stored {
		days[i], ids[i], repairs[i] = e.CreatedAt, e.ID, repairOf(e.MessageID)
	}
	if _, err := db.Exec(ctx, forgetStatement, days, ids, repairs, windowLength); err != nil {
		return fmt.Errorf("settle published events: %w", err)
	}
	published.Add(float64(len(stored)))
	return nil
}

// sweepRegularly is the safe way: whatever is pending is published, however it came
// to be left behind.
func (r *Relay) sweepRegularly(ctx context.Context) {
	tick := time.NewTicker(r.tempo.sweepEvery)
	defer tick.Stop()
	var measured time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(measured) >= r.tempo.measureEvery {
			if err := r.measure(ctx); err != nil {
				if ctx.Err() == nil {
					r.log.Warn("cannot read the outbox", zap.Error(err))
				}
				continue
			}
			measured = time.Now()
		}
		for r.bus.Connected() && ctx.Err() == nil {
			n, err := r.sweep(ctx)
			if err != nil && ctx.Err() == nil {
				r.log.Warn("cannot sweep the outbox", zap.Error(err))
			}
			if err != nil || n < sweepSize {
				break
			}
		}
	}
}

// The locks are written, so this waits for a synchronous standby: what is pending is not
// told to anybody while the primary alone knows of it.
const dueQuery = `
select created_at, event_id from outbox_pending
where created_at < now() - $1::interval or repair > 0
order by created_at, event_id limit $2
for update skip locked`

const sweepQuery = `
with due as (
	select created_at, event_id, repair from outbox_pending
	join unnest($1::timestamptz[], $2::uuid[]) as wanted (created_at, event_id) using (created_at, event_id)
	for update of outbox_pending skip locked)
select o.*, due.repair
from due cross join lateral (
	select created_at, event_id, name, tenant_id, body, traceparent from outbox
	where outbox.created_at = due.created_at and outbox.event_id = due.event_id
	limit 1) o -- the limit has each row looked up, however many PostgreSQL expects`

// sweep publishes one lot of pending events and returns how many it found. Their
// rows stay locked meanwhile, so that replicas share the work.
func (r *Relay) sweep(ctx context.Context) (found int, err error) {
	days, ids, err := r.due(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	found = len(ids)
	err = postgres.Transact(ctx, r.pool, func(tx *postgres.Tx) error {
		rows, err := tx.Query(ctx, sweepQuery, days, ids)
		if err != nil {
			return fmt.Errorf("read pending events: %w", err)
		}
		due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e bus.Outgoing, err error) {
			var id [16]byte
			var repair int
			err = row.Scan(&e.CreatedAt, &id, &e.Name, &e.TenantID, &e.Body, &e.Traceparent, &repair)
			e.ID = id
			e.MessageID = messageID(e.ID, repair)
			return e, err
		})
		if err != nil {
			return fmt.Errorf("read pending events: %w", err)
		}
		stored, failure := r.bus.Publish(ctx, due)
		if err := forget(ctx, tx, stored); err != nil {
			return err
		}
		if err := noteDrained(ctx, tx, stored); err != nil {
			return err
		}
		if failure != nil {
			found = 0 // what was stored is settled; the rest waits for the next round
			r.log.Warn("cannot publish yet", zap.Error(failure))
		}
		return nil
	})
	return found, err
}

// due are the keys of pending events that nobody is publishing at the moment.
func (r *Relay) due(ctx context.Context) (days []time.Time, ids [][16]byte, err error) {
	rows, err := r.pool.Query(ctx, dueQuery, r.tempo.sweepAge, sweepSize)
	if err != nil {
		return nil, nil, fmt.Errorf("read pending events: %w", err)
	}
	var day time.Time
	var id [16]byte
	_, err = pgx.ForEachRow(rows, []any{&day, &id}, func() error {
		days, ids = append(days, day), append(ids, id)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read pending events: %w", err)
	}
	return days, ids, nil
}

const drainedStatement = `insert into outbox_drained (oldest) select $1::timestamptz where $1 < now() - $2::interval`

// noteDrained remembers the oldest of the stored events if it had waited for long.
func noteDrained(ctx context.Context, tx *postgres.Tx, stored []bus.Outgoing) error {
	if len(stored) == 0 {
		return nil
	}
	oldest := slices.MinFunc(stored, func(a, b bus.Outgoing) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if _, err := tx.Exec(ctx, drainedStatement, oldest.CreatedAt, restartMargin/2); err != nil {
		return fmt.Errorf("note drained events: %w", err)
	}
	return nil
}

// countUpTo bounds what it costs to count what is pending: some ten milliseconds.
const countUpTo = 100_000

const measureQuery = `
select coalesce(extract(epoch from now() - (select min(created_at) from outbox_pending)), 0)::float8,
	(select count(*) from (select from outbox_pending limit $1) counted)::float8`

func (r *Relay) measure(ctx context.Context) error {
	var seconds, events float64
	if err := r.pool.QueryRow(ctx, measureQuery, countUpTo).Scan(&seconds, &events); err != nil {
		return err
	}
	oldest.WithLabelValues(r.stream.Name).Set(seconds)
	depth.WithLabelValues(r.stream.Name).Set(events)
	return nil
}
