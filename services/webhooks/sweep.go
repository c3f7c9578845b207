package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
)

const (
	sweepEvery  = time.Second
	sweepWithin = 30 * time.Second
)

// sweeper sees to what nobody was woken for: deliveries that were made before this
// process, of endpoints that are gone, and of workers that died.
type sweeper struct {
	deps  service.Deps
	lanes *lanes
	lease time.Duration
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
	live, gone, err := s.waiting(ctx)
	if err != nil {
		return err
	}
	s.lanes.wake(live)
	for _, l := range gone {
		if err := s.skip(ctx, l); err != nil {
			return err
		}
	}
	return s.expire(ctx)
}

// Walks from lane to lane along the key, so that its cost grows with the lanes in which
// something is pending and not with how much that is.
const waitingQuery = `
with recursive lanes as (
	(select tenant_id, endpoint_id from pending order by tenant_id, endpoint_id limit 1)
	union all
	select next.* from lanes cross join lateral (
		select d.tenant_id, d.endpoint_id from pending d
		where (d.tenant_id, d.endpoint_id) > (lanes.tenant_id, lanes.endpoint_id)
		order by d.tenant_id, d.endpoint_id limit 1) next)
select lanes.tenant_id, lanes.endpoint_id, oldest.created_at, p.deleted_at is null and p.disabled_reason is null
from lanes join endpoints p using (tenant_id, endpoint_id)
cross join lateral (
	select d.created_at from pending d
	where d.tenant_id = lanes.tenant_id and d.endpoint_id = lanes.endpoint_id and d.claim is null
	order by d.delivery_id limit 1) oldest`

// waiting returns the lanes in which deliveries are ready, with the time of the oldest:
// those whose endpoint can be sent to, and those whose endpoint cannot.
func (s *sweeper) waiting(ctx context.Context) (live map[lane]time.Time, gone []lane, err error) {
	rows, err := s.deps.Pool.Query(ctx, waitingQuery)
	if err != nil {
		return nil, nil, fmt.Errorf("look for ready deliveries: %w", err)
	}
	live = map[lane]time.Time{}
	var l lane
	var since time.Time
	var enabled bool
	now := s.deps.Now()
	age := time.Duration(0)
	_, err = pgx.ForEachRow(rows, []any{&l.tenant, &l.endpoint, &since, &enabled}, func() error {
		if !enabled {
			gone = append(gone, l)
			return nil
		}
		live[l] = since.Truncate(time.Millisecond) // ids, and so the order, know no finer time
		age = max(age, now.Sub(since))
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("look for ready deliveries: %w", err)
	}
	oldestReady.Set(age.Seconds())
	return live, gone, nil
}

// skip ends all that is ready in a lane whose endpoint was deleted or disabled.
func (s *sweeper) skip(ctx context.Context, l lane) error {
	for skipped := skipAtOnce; skipped == skipAtOnce; {
		err := postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) (err error) {
			skipped, err = skipUnclaimed(ctx, tx, l)
			return err
		})
		if err != nil {
			return fmt.Errorf("skip deliveries of endpoint %s: %w", l.endpoint, err)
		}
	}
	return nil
}

const expireAtOnce = 1000

// Nobody but the database says how late it is. The attempt is written down as far as it
// is known: the receiver may have it or not, so it is never sent again.
const expireStatement = `
with stale as (
	select tenant_id, endpoint_id, delivery_id from pending
	where claim is not null and claimed_at < now() - $1::interval
	limit $2 for update skip locked),
lost as (
	delete from pending p using stale
	where p.tenant_id = stale.tenant_id and p.endpoint_id = stale.endpoint_id and p.delivery_id = stale.delivery_id
	returning p.*),
kept as (
	insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state)
	select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, 'unknown' from lost),
noted as (
	insert into attempts (tenant_id, delivery_id, created_at, claim, at, url)
	select lost.tenant_id, lost.delivery_id, lost.created_at, lost.claim, lost.claimed_at, p.url
	from lost join endpoints p using (tenant_id, endpoint_id))
select tenant_id, endpoint_id, delivery_id, event_id from lost`

// expire gives up deliveries whose worker has held them for longer than the lease.
func (s *sweeper) expire(ctx context.Context) error {
	for lost := expireAtOnce; lost == expireAtOnce; {
		batch, err := runPlanned(ctx, s.deps.Pool, scanLost, expireStatement, s.lease, expireAtOnce)
		if err != nil {
			return fmt.Errorf("expire claims: %w", err)
		}
		for _, d := range batch {
			deliveriesEnded.WithLabelValues(stateUnknown).Inc()
			s.deps.Log.Warn("webhook unknown", zap.Stringer("tenant_id", d.tenant), zap.Stringer("event_id", d.eventID),
				zap.Stringer("endpoint_id", d.endpoint), zap.Stringer("delivery_id", d.id), zap.Duration("lease", s.lease))
		}
		lost = len(batch)
	}
	return nil
}

func scanLost(row pgx.CollectableRow) (d claimed, err error) {
	var id [16]byte
	err = row.Scan(&d.tenant, &d.endpoint, &d.id, &id)
	d.eventID = id
	return d, err
}
