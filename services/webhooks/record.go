package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/fault"
)

const (
	recordAtOnce = 512
	recordEvery  = 10 * time.Millisecond // at most, so that a busy worker needs few commits
	recordWithin = 10 * time.Second      // a statement that takes longer has failed
	recordPause  = 100 * time.Millisecond
)

// attempt is one sending and what came of it.
type attempt struct {
	claimed
	outcome
	signature string
	again     time.Duration // after which it is attempted again; 0: this was the last attempt
}

// state is what the delivery came to if this was the last attempt.
func (a attempt) state() string {
	if a.Delivered {
		return stateDelivered
	}
	return stateFailed
}

// recorder writes down what came of attempts, in groups: each gathers while more is to
// come, for a moment at most, and while the statement before is under way.
type recorder struct {
	pool     *pgxpool.Pool
	log      *zap.Logger
	attempts chan attempt
	idle     chan struct{} // has an element when no more is to come for now
}

func newRecorder(pool *pgxpool.Pool, log *zap.Logger, room int) *recorder {
	return &recorder{pool: pool, log: log, attempts: make(chan attempt, room), idle: make(chan struct{}, 1)}
}

// hurry has what was gathered recorded at once: nothing more is under way.
func (r *recorder) hurry() {
	select {
	case r.idle <- struct{}{}:
	default:
	}
}

// run records until attempts is closed. While the database is away it tries again and
// again; once ctx has ended it gives up what it cannot record, which then becomes
// unknown when the lease is over.
func (r *recorder) run(ctx context.Context) {
	for first := range r.attempts {
		batch := r.gather(first)
		r.record(ctx, batch)
	}
}

// gather adds what comes within a moment of first, or until nothing more is under way.
func (r *recorder) gather(first attempt) []attempt {
	batch := []attempt{first}
	moment := time.NewTimer(recordEvery)
	defer moment.Stop()
	for len(batch) < recordAtOnce {
		select {
		case a, ok := <-r.attempts:
			if !ok {
				return batch
			}
			batch = append(batch, a)
		case <-r.idle:
			for len(r.attempts) > 0 && len(batch) < recordAtOnce {
				batch = append(batch, <-r.attempts)
			}
			return batch
		case <-moment.C:
			return batch
		}
	}
	return batch
}

// record writes all of them, in halves where the database refuses some, so that one
// that cannot be written spoils only itself.
func (r *recorder) record(ctx context.Context, batch []attempt) {
	for {
		err := r.write(batch)
		switch {
		case err == nil:
			for _, a := range batch {
				r.tell(a)
			}
			return
		case fault.KindOf(err) != fault.Unavailable && len(batch) > 1:
			half := len(batch) / 2
			r.record(ctx, batch[:half])
			r.record(ctx, batch[half:])
			return
		case fault.KindOf(err) != fault.Unavailable || ctx.Err() != nil:
			r.log.Error("outcomes are lost; the deliveries become unknown", zap.Int("deliveries", len(batch)),
				zap.Stringer("delivery_id", batch[0].id), zap.Error(err))
			return
		}
		r.log.Error("cannot record outcomes yet", zap.Int("deliveries", len(batch)), zap.Error(err))
		pause(ctx, recordPause)
	}
}

// An outcome counts only under the claim that it came of. What is to be attempted again
// stays, and is due so many milliseconds after its outcome was recorded.
const recordStatement = `
with told as (
	select * from ` + toldRows + `),
postponed as (
	update pending p set claim = null, claimed_at = null, attempts = p.attempts + 1,
		due_at = now() + told.again_ms * interval '1 ms'
	from told
	where told.again_ms > 0 and p.tenant_id = told.tenant_id and p.endpoint_id = told.endpoint_id
		and p.delivery_id = told.delivery_id and p.claim = told.claim
	returning told.*),
ended as (
	delete from pending p using told
	where told.again_ms = 0 and p.tenant_id = told.tenant_id and p.endpoint_id = told.endpoint_id
		and p.delivery_id = told.delivery_id and p.claim = told.claim
	returning told.*, p.event_id, p.name),
kept as (
	insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state)
	select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state from ended),
noted as (
	insert into attempts (tenant_id, delivery_id, created_at, claim, at, duration_ms,
		status_code, error, response_excerpt, url, signature)
	select tenant_id, delivery_id, created_at, claim, at, duration_ms,
		nullif(status_code, 0), nullif(error, ''), nullif(response_excerpt, ''), url, signature
	from (select ` + toldColumns + ` from ended union all select ` + toldColumns + ` from postponed) made
	returning 1)
select count(*) from noted`

// Where the lease ran out meanwhile, the delivery is unknown until its own worker tells, or
// waits to be sent again, which it need not be if it has arrived. That worker is known by
// the attempt, which was noted under its claim when it was given up. A delivery that is
// to be attempted again is not ended by a failure, one that somebody has had sent again
// is sent all the same, and one stays unknown while another attempt at it is.
const recordLateStatement = `
with told as (
	select * from ` + toldRows + `),
noted as (
	update attempts a set at = told.at, duration_ms = told.duration_ms, status_code = nullif(told.status_code, 0),
		error = nullif(told.error, ''), response_excerpt = nullif(told.response_excerpt, ''), url = told.url, signature = told.signature
	from told
	where a.tenant_id = told.tenant_id and a.delivery_id = told.delivery_id and a.created_at = told.created_at
		and a.claim = told.claim and a.duration_ms is null
	returning told.*),
arrived as (
	delete from pending p using noted
	where noted.state = 'delivered' and p.tenant_id = noted.tenant_id and p.endpoint_id = noted.endpoint_id
		and p.delivery_id = noted.delivery_id and p.claim is null and p.due_at is not null
	returning p.*),
kept as (
	insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state)
	select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, 'delivered' from arrived)
update deliveries d set state = noted.state
from noted
where d.tenant_id = noted.tenant_id and d.delivery_id = noted.delivery_id and d.created_at = noted.created_at
	and d.state = 'unknown' and noted.again_ms = 0
	and (noted.state = 'delivered' or not exists (select from attempts other
		where other.tenant_id = d.tenant_id and other.delivery_id = d.delivery_id and other.created_at = d.created_at
			and other.claim <> noted.claim and other.duration_ms is null))`

const (
	toldColumns = `tenant_id, endpoint_id, delivery_id, created_at, claim, state, at, duration_ms,
			status_code, error, response_excerpt, url, signature`

	toldRows = `unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::uuid[], $6::text[], $7::timestamptz[], $8::integer[],
		$9::smallint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::integer[])
		as told (` + toldColumns + `, again_ms)`
)

func (r *recorder) write(batch []attempt) error {
	var (
		tenants, endpoints, ids, claims            []uuid.UUID
		created, at                                []time.Time
		states, errors, excerpts, urls, signatures []string
		durations, again                           []int64
		statuses                                   []int16
	)
	for _, a := range batch {
		tenants, endpoints, ids, claims = append(tenants, a.tenant), append(endpoints, a.endpoint), append(ids, a.id), append(claims, a.claim)
		created, at = append(created, a.createdAt), append(at, a.At)
		states, errors, excerpts = append(states, a.state()), append(errors, string(a.Error)), append(excerpts, a.Excerpt)
		urls, signatures = append(urls, a.url), append(signatures, a.signature)
		durations, statuses = append(durations, a.Duration.Milliseconds()), append(statuses, int16(a.StatusCode))
		again = append(again, int64((a.again+time.Millisecond-1)/time.Millisecond))
	}
	told := []any{tenants, endpoints, ids, created, claims, states, at, durations, statuses, errors, excerpts, urls, signatures, again}
	ctx, cancel := context.WithTimeout(context.Background(), recordWithin)
	defer cancel()
	ended, err := runPlanned(ctx, r.pool, pgx.RowTo[int], recordStatement, told...)
	if err != nil {
		return fmt.Errorf("record outcomes: %w", err)
	}
	if ended[0] == len(batch) {
		return nil
	}
	if _, err := runPlanned(ctx, r.pool, pgx.RowTo[int], recordLateStatement, told...); err != nil {
		return fmt.Errorf("record late outcomes: %w", err)
	}
	return nil
}

// maxCause bounds what is logged of a cause, in bytes: Go's errors quote what a receiver says.
const maxCause = 200

// cause is why the attempt failed, for the log; "" where there is nothing to say.
func (a attempt) cause() string {
	if a.Cause == nil {
		return ""
	}
	return excerpt([]byte(a.Cause.Error()), maxCause)
}

// tell is the one line of an attempt for the log. It names nothing that the tenant
// keeps to itself: no body, no secret, no path or query of the URL.
func (r *recorder) tell(a attempt) {
	if a.again > 0 {
		attemptsPostponed.Inc()
	} else {
		countEnded(a.state(), 1)
	}
	attemptSeconds.Observe(a.Duration.Seconds())
	if line := r.log.Check(zap.InfoLevel, "webhook "+a.state()); line != nil {
		line.Write(zap.Stringer("tenant_id", a.tenant), zap.Stringer("event_id", a.eventID), zap.String("event", a.name),
			zap.Stringer("endpoint_id", a.endpoint), zap.Stringer("delivery_id", a.id), zap.Duration("took", a.Duration),
			zap.Int("status_code", a.StatusCode), zap.String("error", string(a.Error)), zap.String("cause", a.cause()),
			zap.Int("attempt", a.attempts+1), zap.Duration("again_after", a.again))
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
