package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
)

// lookDays are how many days before its event is dropped a delivery that could not be sent
// is given up: for so long it can be found, and be sent again. Whoever asks for that in
// those days is given as many more.
const lookDays = 3

// Walks from lane to lane along the index, as waitingQuery does, to what is the oldest of
// each, whether it was attempted before or not.
const endOutdatedStatement = `
with recursive lanes as (
	(select tenant_id, endpoint_id, created_at from pending
	order by tenant_id, endpoint_id, delivery_id limit 1)
	union all
	select next.* from lanes cross join lateral (
		select d.tenant_id, d.endpoint_id, d.created_at from pending d
		where (d.tenant_id, d.endpoint_id) > (lanes.tenant_id, lanes.endpoint_id)
		order by d.tenant_id, d.endpoint_id, d.delivery_id limit 1) next),
outdated as (
	select next.* from lanes cross join lateral (
		select d.tenant_id, d.endpoint_id, d.delivery_id from pending d
		where d.tenant_id = lanes.tenant_id and d.endpoint_id = lanes.endpoint_id
			and d.delivery_id < $2 and d.queued_at < now() - $3::interval and d.claim is null
		order by d.delivery_id limit $4
		for update skip locked) next
	where lanes.created_at < $1
	limit $4),
ended as (
	delete from pending p using outdated o
	where p.tenant_id = o.tenant_id and p.endpoint_id = o.endpoint_id and p.delivery_id = o.delivery_id
	returning p.*),
kept as (
	insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state, reason)
	select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, 'skipped', '` + reasonOutdated + `' from ended)
select tenant_id, endpoint_id, count(*) from ended group by tenant_id, endpoint_id`

// endOutdated ends deliveries of events that will soon be too old to be kept, at most
// skipAtOnce: an endpoint that takes in less than happens would otherwise hold back the
// end of every tenant's history.
func (s *sweeper) endOutdated(ctx context.Context) error {
	type ended struct {
		lane
		deliveries int
	}
	before := s.kept().AddDate(0, 0, lookDays)
	lanes, err := runPlanned(ctx, s.deps.Pool, func(row pgx.CollectableRow) (e ended, err error) {
		return e, row.Scan(&e.tenant, &e.endpoint, &e.deliveries)
	}, endOutdatedStatement, before, firstDeliveryID(before), lookDays*24*time.Hour, skipAtOnce)
	if err != nil {
		return fmt.Errorf("end outdated deliveries: %w", err)
	}
	for _, e := range lanes {
		countEnded(stateSkipped, e.deliveries)
		s.deps.Log.Warn("webhooks outdated", zap.Stringer("tenant_id", e.tenant),
			zap.Stringer("endpoint_id", e.endpoint), zap.Int("deliveries", e.deliveries))
	}
	return nil
}
