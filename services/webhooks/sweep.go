package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
)

const (
	sweepEvery  = time.Second
	sweepWithin = 30 * time.Second
)

// sweeper sees to what nobody was woken for: deliveries that were made before this
// process, that are due again, of endpoints that are gone, of events that are too old, and of
// workers that died.
type sweeper struct {
	deps       service.Deps
	dispatcher *dispatcher
	lease      time.Duration
	kept       func() time.Time // the oldest time of which everything is surely kept
}

// run sweeps at once and then every second until ctx ends.
func (s *sweeper) run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.deps.Log.Error("cannot sweep deliveries", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *sweeper) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	s.dispatcher.paces.forget()
	live, gone, err := s.waiting(ctx)
	if err != nil {
		return err
	}
	s.dispatcher.lanes.wake(live)
	// What this worker knows not to have sent must not become unknown.
	if err := s.dispatcher.doubts.review(); err != nil {
		return err
	}
	if err := s.expire(ctx); err != nil {
		return err
	}
	if err := s.wakeDue(ctx, gone); err != nil {
		return err
	}
	for l := range gone {
		if err := s.skip(ctx, l); err != nil {
			return err
		}
	}
	if err := s.dispatcher.health.save(ctx, s.deps.Now()); err != nil {
		return err
	}
	return s.endOutdated(ctx)
}

// Walks from lane to lane along the index, so that its cost grows with the lanes in which
// something waits and not with how much that is.
const waitingQuery = `
with recursive lanes as (
	(select tenant_id, endpoint_id, created_at, queued_at from pending
	where claim is null and due_at is null order by tenant_id, endpoint_id, delivery_id limit 1)
	union all
	select next.* from lanes cross join lateral (
		select d.tenant_id, d.endpoint_id, d.created_at, d.queued_at from pending d
		where (d.tenant_id, d.endpoint_id) > (lanes.tenant_id, lanes.endpoint_id) and d.claim is null and d.due_at is null
		order by d.tenant_id, d.endpoint_id, d.delivery_id limit 1) next)
select lanes.*, p.deleted_at is null and p.disabled_reason is null
from lanes join endpoints p using (tenant_id, endpoint_id)`

// waiting returns the lanes in which deliveries wait for their first attempt, with the
// time of the oldest: those whose endpoint can be sent to, and those whose endpoint cannot.
// It measures how long the oldest of each has waited. A slowed lane waits for its receiver,
// which nobody needs to be woken for.
func (s *sweeper) waiting(ctx context.Context) (live map[lane]time.Time, gone map[lane]bool, err error) {
	type waitingLane struct {
		lane
		since, queued time.Time
		enabled       bool
	}
	rows, err := runPlanned(ctx, s.deps.Pool, func(row pgx.CollectableRow) (w waitingLane, err error) {
		return w, row.Scan(&w.tenant, &w.endpoint, &w.since, &w.queued, &w.enabled)
	}, waitingQuery)
	if err != nil {
		return nil, nil, fmt.Errorf("look for ready deliveries: %w", err)
	}
	live, gone = map[lane]time.Time{}, map[lane]bool{}
	now, age := s.deps.Now(), time.Duration(0)
	for _, w := range rows {
		if !w.enabled {
			gone[w.lane] = true
			continue
		}
		live[w.lane] = w.since.Truncate(time.Millisecond) // ids, and so the order, know no finer time
		if !s.dispatcher.paces.slowed(w.lane) {
			age = max(age, now.Sub(w.queued))
		}
	}
	oldestReady.Set(age.Seconds())
	return live, gone, nil
}

// Walks in the same way along what is to be attempted again, and looks at what is due
// first in each lane.
const dueQuery = `
with recursive lanes as (
	(select tenant_id, endpoint_id, due_at, attempts from pending
	where claim is null and due_at is not null order by tenant_id, endpoint_id, due_at limit 1)
	union all
	select next.* from lanes cross join lateral (
		select d.tenant_id, d.endpoint_id, d.due_at, d.attempts from pending d
		where (d.tenant_id, d.endpoint_id) > (lanes.tenant_id, lanes.endpoint_id) and d.claim is null and d.due_at is not null
		order by d.tenant_id, d.endpoint_id, d.due_at limit 1) next)
select lanes.tenant_id, lanes.endpoint_id, lanes.due_at <= now(), lanes.attempts >= p.max_attempts,
	p.deleted_at is null and p.disabled_reason is null
from lanes join endpoints p using (tenant_id, endpoint_id)`

// wakeDue wakes the lanes in which something is due to be attempted again, and ends what
// has waited for an attempt that its endpoint no longer allows. Lanes whose endpoint cannot
// be sent to it adds to gone.
func (s *sweeper) wakeDue(ctx context.Context, gone map[lane]bool) error {
	type waitingLane struct {
		lane
		due, spent, enabled bool
	}
	rows, err := runPlanned(ctx, s.deps.Pool, func(row pgx.CollectableRow) (w waitingLane, err error) {
		return w, row.Scan(&w.tenant, &w.endpoint, &w.due, &w.spent, &w.enabled)
	}, dueQuery)
	if err != nil {
		return fmt.Errorf("look for deliveries that are due again: %w", err)
	}
	due := map[lane]time.Time{}
	for _, w := range rows {
		switch {
		case !w.enabled:
			gone[w.lane] = true
		case w.due:
			due[w.lane] = time.Time{} // the claim goes by what is due, not by the age of events
		}
		if w.enabled && w.due && w.spent {
			if err := s.endSpent(ctx, w.lane); err != nil {
				return err
			}
		}
	}
	s.dispatcher.again.wake(due)
	return nil
}

// An endpoint may be changed to fewer attempts while a delivery waits for its next one.
const endSpentStatement = `
with spent as (
	select d.delivery_id from pending d
	join endpoints p on p.tenant_id = d.tenant_id and p.endpoint_id = d.endpoint_id
	where d.tenant_id = $1 and d.endpoint_id = $2 and d.due_at <= now() and d.claim is null and d.attempts >= p.max_attempts
	order by d.due_at limit $3
	for update of d skip locked),
ended as (
	delete from pending p using spent
	where p.tenant_id = $1 and p.endpoint_id = $2 and p.delivery_id = spent.delivery_id
	returning p.*)
insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state)
select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, 'failed' from ended
returning delivery_id`

// endSpent ends deliveries of the lane that have had all the attempts they may have, at
// most skipAtOnce.
func (s *sweeper) endSpent(ctx context.Context, l lane) error {
	ended, err := runPlanned(ctx, s.deps.Pool, pgx.RowTo[uuid.UUID], endSpentStatement, l.tenant, l.endpoint, skipAtOnce)
	if err != nil {
		return fmt.Errorf("end deliveries of endpoint %s: %w", l.endpoint, err)
	}
	countEnded(stateFailed, len(ended))
	return nil
}

// skip ends what waits in a lane whose endpoint was deleted or disabled, at most
// skipAtOnce of it: the rest has its turn at the next sweeps, so that a long queue holds
// up nobody else.
func (s *sweeper) skip(ctx context.Context, l lane) error {
	err := postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error { return skipUnclaimed(ctx, tx, l) })
	if err != nil {
		return fmt.Errorf("skip deliveries of endpoint %s: %w", l.endpoint, err)
	}
	return nil
}

const expireAtOnce = 1000

// Nobody but the database says how late it is. The attempt is written down as far as it
// is known: the receiver may have it or not, and the endpoint may have had another URL.
// So it is sent again only where the endpoint, when it was claimed, allowed more than
// that attempt.
const expireStatement = `
with stale as (
	select tenant_id, endpoint_id, delivery_id, created_at, event_id, claim, claimed_at, attempts + 1 < allowed as again
	from pending
	where claim is not null and claimed_at < now() - $1::interval
	limit $2 for update skip locked),
postponed as (
	update pending p set claim = null, claimed_at = null, attempts = p.attempts + 1, due_at = now()
	from stale
	where stale.again and p.tenant_id = stale.tenant_id and p.endpoint_id = stale.endpoint_id and p.delivery_id = stale.delivery_id),
lost as (
	delete from pending p using stale
	where not stale.again and p.tenant_id = stale.tenant_id and p.endpoint_id = stale.endpoint_id and p.delivery_id = stale.delivery_id
	returning p.*),
kept as (
	insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state)
	select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, 'unknown' from lost),
noted as (
	insert into attempts (tenant_id, delivery_id, created_at, claim, at)
	select tenant_id, delivery_id, created_at, claim, claimed_at from stale)
select tenant_id, endpoint_id, delivery_id, event_id, again from stale`

// expired is a delivery whose worker died with it.
type expired struct {
	lane
	id      uuid.UUID
	eventID event.ID
	again   bool // it is sent again
}

// expire takes deliveries away from workers that have held them for longer than the lease.
func (s *sweeper) expire(ctx context.Context) error {
	for lost := expireAtOnce; lost == expireAtOnce; {
		batch, err := runPlanned(ctx, s.deps.Pool, scanExpired, expireStatement, s.lease, expireAtOnce)
		if err != nil {
			return fmt.Errorf("expire claims: %w", err)
		}
		for _, d := range batch {
			if d.again {
				attemptsPostponed.Inc()
			} else {
				countEnded(stateUnknown, 1)
			}
			s.deps.Log.Warn("webhook unknown", zap.Stringer("tenant_id", d.tenant), zap.Stringer("event_id", d.eventID),
				zap.Stringer("endpoint_id", d.endpoint), zap.Stringer("delivery_id", d.id), zap.Duration("lease", s.lease), zap.Bool("again", d.again))
		}
		lost = len(batch)
	}
	return nil
}

func scanExpired(row pgx.CollectableRow) (d expired, err error) {
	var id [16]byte
	err = row.Scan(&d.tenant, &d.endpoint, &d.id, &id, &d.again)
	d.eventID = id
	return d, err
}
