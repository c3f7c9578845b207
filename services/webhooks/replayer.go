package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
)

const (
	replayIdle   = time.Second            // between looks for a replay where none runs
	replayEvery  = 200 * time.Millisecond // between the batches of one that does
	replayWithin = 10 * time.Second       // one batch; what takes longer has failed
	// replayAhead bounds how many deliveries a replay queues before earlier ones are sent.
	// They are older than what happens meanwhile and so go before it: this is how many new
	// deliveries of the same endpoint wait for at most.
	replayAhead = 200
	// replayLook is how many deliveries a replay goes through at once for each that it has
	// room to queue. Where hardly any of them is wanted it still gets on, and takes no longer.
	replayLook  = 25
	replaysOnce = 100 // replays that one look takes up
)

// replayer does what replays ask for, some deliveries at a time. Whatever it has done it
// has written down in the same transaction, so that another goes on where it was killed.
type replayer struct {
	deps   service.Deps
	lanes  *lanes
	kept   func() time.Time // the oldest time of which everything is surely kept
	looked uuid.UUID        // the replay after which the next step begins
}

// run works until ctx ends.
func (r *replayer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		running, err := r.step(ctx)
		if err != nil && ctx.Err() == nil {
			r.deps.Log.Error("cannot replay deliveries", zap.Error(err))
		}
		if running {
			pause(ctx, replayEvery)
		} else {
			pause(ctx, replayIdle)
		}
	}
	return nil
}

const replaysRunningQuery = `
select tenant_id, replay_id from replays
where state = 'running' and replay_id > $1 order by replay_id limit $2`

// step queues some deliveries of each running replay, of at most replaysOnce, and tells
// whether there is one. The next step goes on after these, so that each has its turn; a
// replay that fails, or takes long, holds up no other.
func (r *replayer) step(ctx context.Context) (running bool, err error) {
	look, cancel := context.WithTimeout(ctx, replayWithin)
	defer cancel()
	rows, err := r.deps.Pool.Query(look, replaysRunningQuery, r.looked, replaysOnce)
	if err != nil {
		return false, fmt.Errorf("look for replays: %w", postgres.Explain(err))
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[replayKey])
	if err != nil {
		return false, fmt.Errorf("look for replays: %w", postgres.Explain(err))
	}
	begun := r.looked == uuid.Nil
	r.looked = uuid.Nil
	if len(keys) == replaysOnce {
		r.looked = keys[len(keys)-1].ReplayID
	}
	for _, k := range keys {
		if err := r.advanceOne(ctx, k); err != nil && ctx.Err() == nil {
			r.deps.Log.Error("cannot advance a replay", zap.Stringer("tenant_id", k.TenantID), zap.Stringer("replay_id", k.ReplayID), zap.Error(err))
		}
	}
	return len(keys) > 0 || !begun, nil
}

// replayKey names a replay.
type replayKey struct{ TenantID, ReplayID uuid.UUID }

func (r *replayer) advanceOne(ctx context.Context, k replayKey) error {
	ctx, cancel := context.WithTimeout(ctx, replayWithin)
	defer cancel()
	return postgres.Transact(ctx, r.deps.Pool, func(tx *postgres.Tx) error { return r.advance(ctx, tx, k.TenantID, k.ReplayID) })
}

// replayPart is what is left of a replay.
type replayPart struct {
	tenant, endpoint uuid.UUID
	from, to         time.Time
	statuses, events []string
	filtered         bool
	reached          uuid.UUID
	live             bool // its endpoint can be sent to
	waiting          int  // what waits for its first attempt at the endpoint, at most replayAhead
}

// arguments are those of a query that goes through its next deliveries, so many at most.
func (p replayPart) arguments(kept time.Time, look int) pgx.NamedArgs {
	from := p.from
	if from.Before(kept) {
		from = kept
	}
	return pgx.NamedArgs{
		"tenant_id": p.tenant, "endpoint_id": p.endpoint, "from_time": from, "to_time": p.to,
		"statuses": p.statuses, "filtered": p.filtered, "events": p.events, "reached": p.reached, "look": look,
		"before": firstDeliveryID(p.to.Add(time.Millisecond)), // ids know no finer time
	}
}

const (
	takeReplayQuery = `
select r.endpoint_id, r.from_time, r.to_time, r.statuses, r.filtered, r.events, r.reached, p.deleted_at is null and p.disabled_reason is null,
	(select count(*) from (select from pending d where d.tenant_id = r.tenant_id and d.endpoint_id = r.endpoint_id
		and d.claim is null and d.due_at is null limit $3) waiting)
from replays r join endpoints p using (tenant_id, endpoint_id)
where r.tenant_id = $1 and r.replay_id = $2 and r.state = 'running'
for update of r skip locked`

	// What is taken from the history meanwhile, by whoever resends it, is passed over, and
	// so is what turns out to have ended in another status.
	replayStatement = `
with looked as materialized (` + ofReplay + `),
picked as (
	select delivery_id, created_at from looked where wanted order by delivery_id limit @room),
again as (
	delete from deliveries d using picked
	where d.tenant_id = @tenant_id and d.delivery_id = picked.delivery_id and d.created_at = picked.created_at
		and d.state = any(@statuses)
	returning d.tenant_id, d.endpoint_id, d.delivery_id, d.created_at, d.event_id, d.name),
queued as (
	insert into pending (tenant_id, endpoint_id, delivery_id, created_at, event_id, name)
	select * from again
	returning created_at)
select
	coalesce((select delivery_id from picked order by delivery_id offset @room - 1),
		(select delivery_id from looked order by delivery_id desc limit 1), @reached),
	(select count(*) from picked) < @room and (select count(*) from looked) < @look,
	(select count(*) from queued), (select min(created_at) from queued)`

	advanceStatement = `
update replays set reached = $3, done = done + $4, state = $5, ended_at = case when $5 <> 'running' then $6::timestamptz end
where tenant_id = $1 and replay_id = $2`
)

// advance queues the next deliveries of a replay, as many as there is room for, unless
// another worker is just doing that. Where none are left it is done.
func (r *replayer) advance(ctx context.Context, tx *postgres.Tx, tenant, id uuid.UUID) error {
	part := replayPart{tenant: tenant}
	err := tx.QueryRow(ctx, takeReplayQuery, tenant, id, replayAhead).Scan(&part.endpoint, &part.from, &part.to,
		&part.statuses, &part.filtered, &part.events, &part.reached, &part.live, &part.waiting)
	switch {
	case postgres.Absent(err):
		return nil
	case err != nil:
		return err
	case !part.live:
		_, err := tx.Exec(ctx, advanceStatement, tenant, id, part.reached, 0, replayStopped, r.deps.Now())
		return err
	case part.waiting == replayAhead:
		return nil
	}
	room := replayAhead - part.waiting
	through, queued, oldest, err := r.queue(ctx, tx, &part, room)
	if err != nil {
		return err
	}
	state := replayRunning
	if through {
		state = replayDone
	}
	if oldest != nil {
		tx.AfterCommit(func() { r.lanes.wake(map[lane]time.Time{{tenant, part.endpoint}: oldest.Truncate(time.Millisecond)}) })
	}
	_, err = tx.Exec(ctx, advanceStatement, tenant, id, part.reached, queued, state, r.deps.Now())
	return err
}

// queue makes the next deliveries of the part pending, at most room of them, and moves the
// part on. It tells whether the part is through, how many were queued, and when the oldest
// of their events was; nil where there is none.
func (r *replayer) queue(ctx context.Context, tx *postgres.Tx, part *replayPart, room int) (through bool, queued int, oldest *time.Time, err error) {
	if _, err := tx.Exec(ctx, lookUpStatement); err != nil {
		return false, 0, nil, err
	}
	arguments := part.arguments(r.kept(), replayLook*room)
	arguments["room"] = room
	err = tx.QueryRow(ctx, replayStatement, pgx.QueryExecModeCacheDescribe, arguments).Scan(&part.reached, &through, &queued, &oldest)
	return through, queued, oldest, err
}
