package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// maxReplays is how many replays of a tenant may be running at a time.
const maxReplays = 5

// What became of a replay.
const (
	replayRunning = "running"
	replayDone    = "done"
	replayStopped = "stopped" // it was cancelled, or its endpoint deleted or disabled meanwhile
)

// undeliveredStates are what a replay sends again where nothing else is asked for. What
// an endpoint's filter kept away is not among what was skipped then: it is sent only where
// skipped is asked for by name.
var undeliveredStates = []string{stateFailed, stateUnknown, stateSkipped}

// replayRequest is what a tenant asks for.
type replayRequest struct {
	From     openapi.Time `json:"from"`
	To       openapi.Time `json:"to"`
	Statuses []string     `json:"statuses"`
	Events   []string     `json:"events"`
	filtered bool         // also what the endpoint's filter kept away
}

// replay is a window of an endpoint's deliveries that is sent again, as the API shows it.
type replay struct {
	ID         uuid.UUID      `json:"replay_id"`
	EndpointID uuid.UUID      `json:"endpoint_id"`
	From       openapi.Time   `json:"from"`
	To         openapi.Time   `json:"to"`
	Statuses   []string       `json:"statuses"`
	Events     *[]string      `json:"events"` // null: all
	Status     string         `json:"status"`
	Progress   replayProgress `json:"progress"`
	CreatedAt  openapi.Time   `json:"created_at"`
	EndedAt    *openapi.Time  `json:"ended_at"`
}

// replayProgress counts deliveries: those that were queued again, and those that there
// were when the replay was asked for; null where these are too many to be counted.
type replayProgress struct {
	Done  int64  `json:"done"`
	Total *int64 `json:"total"`
}

const replayColumns = `replay_id, endpoint_id, from_time, to_time, statuses, events, state, done, total, created_at, ended_at`

func scanReplay(row pgx.CollectableRow) (r replay, err error) {
	var ended *time.Time
	err = row.Scan(&r.ID, &r.EndpointID, &r.From.Time, &r.To.Time, &r.Statuses, &r.Events, &r.Status,
		&r.Progress.Done, &r.Progress.Total, &r.CreatedAt.Time, &ended)
	if ended != nil {
		r.EndedAt = &openapi.Time{Time: *ended}
	}
	return r, err
}

// createReplay answers POST /api/v1/webhook-endpoints/{endpoint_id}/replay. What it asks
// for is done in the background.
func (s *Service) createReplay(call *web.Call) (web.Answer, error) {
	var wanted replayRequest
	if err := call.Decode(&wanted); err != nil {
		return web.Answer{}, err
	}
	endpointID, err := call.PathID("endpoint_id")
	if err != nil {
		return web.Answer{}, err
	}
	if !wanted.From.Before(wanted.To.Time) {
		return web.Answer{}, fault.InvalidBody(fault.Detail{Path: "/to", Code: "too_small", Message: "must be later than from"})
	}
	if wanted.filtered = len(wanted.Statuses) > 0; !wanted.filtered {
		wanted.Statuses = undeliveredStates
	}
	made, err := s.addReplay(call.Context(), call.Tenant(), endpointID, wanted)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusAccepted, Body: made}, nil
}

// What a replay goes through, in the order of its ids: the next @look deliveries of its
// window whatever is wanted of them, so that however few that is no statement has to go
// through all the others. Each status but delivered is looked up in the index of what was
// not delivered; where delivered is asked for too, all are gone through.
const (
	ofReplay = `
	select delivery_id, created_at,
		state = any(@statuses::text[]) and (@events::text[] is null or name = any(@events)) and (@filtered or reason is distinct from '` + reasonFilter + `') as wanted
	from (
		select d.* from unnest(@statuses::text[]) as asked (state) cross join lateral (
			select * from deliveries
			where 'delivered' <> all(@statuses::text[]) and state <> 'delivered' and state = asked.state` + inReplay + `) d
		union all
		(select * from deliveries
		where 'delivered' = any(@statuses::text[])` + inReplay + `)) d
	order by delivery_id limit @look`

	inReplay = `
			and tenant_id = @tenant_id and endpoint_id = @endpoint_id
			and delivery_id > @reached and delivery_id < @before and created_at >= @from_time and created_at < @to_time
		order by delivery_id limit @look`

	countReplayQuery = `select count(*) filter (where wanted), count(*) from (` + ofReplay + `) looked`

	// For as long as a count may take.
	countBrieflyStatement = `select set_config('statement_timeout', $1, true)`

	runningReplaysQuery = `select count(*) from replays where tenant_id = $1 and state = 'running'`

	// What has ended long ago makes room when another begins.
	forgetReplaysStatement = `delete from replays where tenant_id = $1 and ended_at < $2`

	addReplayStatement = `
insert into replays (tenant_id, replay_id, endpoint_id, from_time, to_time, statuses, filtered, events, reached, total, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
returning ` + replayColumns
)

// A replay that has more deliveries than these to go through, or takes longer to, begins
// uncounted: the number is only for whoever looks on.
const (
	replayCounted     = 100_000
	replayCountWithin = 3 * time.Second

	queryCancelled = "57014" // PostgreSQL's word for a statement that took too long
)

// countReplay counts the deliveries of a part; nil where they are too many. It holds nothing
// that anybody waits for.
func (s *Service) countReplay(ctx context.Context, part replayPart) (total *int64, err error) {
	var looked int
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		if _, err := tx.Exec(ctx, lookUpStatement); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, countBrieflyStatement, strconv.FormatInt(replayCountWithin.Milliseconds(), 10)); err != nil {
			return err
		}
		arguments := part.arguments(s.oldestKept(), replayCounted+1)
		return tx.QueryRow(ctx, countReplayQuery, pgx.QueryExecModeCacheDescribe, arguments).Scan(&total, &looked)
	})
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == queryCancelled && ctx.Err() == nil:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("count deliveries: %w", err)
	case looked > replayCounted:
		return nil, nil
	}
	return total, nil
}

// addReplay stores a replay of an endpoint of the tenant, of what has happened by now at
// most: what is still to come is sent anyhow. What is too old to be kept until it is sent
// is left out, and so is what is pending, unless it has ended in one of the statuses by
// the time the replay comes by it.
func (s *Service) addReplay(ctx context.Context, tenant, endpointID uuid.UUID, wanted replayRequest) (made replay, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return made, fmt.Errorf("make replay id: %w", err)
	}
	part := replayPart{tenant: tenant, endpoint: endpointID, from: wanted.From.Time, to: wanted.To.Time,
		statuses: wanted.Statuses, filtered: wanted.filtered, events: wanted.Events, reached: firstDeliveryID(wanted.From.Time)}
	// What is refused anyhow is not counted first.
	if err := s.replayable(ctx, s.deps.Pool, part); err != nil {
		return made, fmt.Errorf("make replay of endpoint %s: %w", endpointID, err)
	}
	total, err := s.countReplay(ctx, part)
	if err != nil {
		return made, fmt.Errorf("make replay of endpoint %s: %w", endpointID, err)
	}
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		lockTenants(tx, tenant)
		if err := s.replayable(ctx, tx, part); err != nil {
			return err
		}
		now := event.Instant(s.deps.Now())
		if now.Before(part.to) {
			part.to = now
		}
		if _, err := tx.Exec(ctx, forgetReplaysStatement, tenant, s.oldestKept()); err != nil {
			return fmt.Errorf("forget old replays: %w", err)
		}
		rows, err := tx.Query(ctx, addReplayStatement, tenant, id, endpointID, part.from, part.to, part.statuses,
			part.filtered, part.events, part.reached, total, now)
		if err != nil {
			return err
		}
		made, err = pgx.CollectExactlyOneRow(rows, scanReplay)
		return err
	})
	if err != nil {
		return made, fmt.Errorf("make replay of endpoint %s: %w", endpointID, err)
	}
	return made, nil
}

// replayable tells why the part cannot be replayed now, if so.
func (s *Service) replayable(ctx context.Context, db querier, part replayPart) error {
	found, err := endpointIn(ctx, db, part.tenant, part.endpoint)
	if err != nil {
		return err
	}
	if found.Status != statusEnabled {
		return fault.New(fault.Rule, "rule_violated", "this endpoint is disabled; enable it first")
	}
	if !part.from.Before(event.Instant(s.deps.Now())) {
		return fault.InvalidBody(fault.Detail{Path: "/from", Code: "too_large", Message: "must be in the past"})
	}
	var running int
	if err := db.QueryRow(ctx, runningReplaysQuery, part.tenant).Scan(&running); err != nil {
		return fmt.Errorf("count replays: %w", postgres.Explain(err))
	}
	if running >= maxReplays {
		return fault.Newf(fault.Rule, "rule_violated", "a tenant may have %d replays running at a time; wait until one has ended", maxReplays)
	}
	return nil
}

const getReplayQuery = `
select ` + replayColumns + ` from replays
where tenant_id = $1 and endpoint_id = $2 and replay_id = $3`

// replayAt reads which replay of which endpoint an address names. Where the endpoint is
// deleted, or not the tenant's, it is not found.
func (s *Service) replayAt(call *web.Call) (endpointID, id uuid.UUID, err error) {
	if endpointID, err = call.PathID("endpoint_id"); err != nil {
		return endpointID, id, err
	}
	if id, err = call.PathID("replay_id"); err != nil {
		return endpointID, id, err
	}
	_, err = endpointIn(call.Context(), s.deps.Pool, call.Tenant(), endpointID)
	return endpointID, id, err
}

// getReplay answers one replay of an endpoint as it is now.
func (s *Service) getReplay(call *web.Call) (web.Answer, error) {
	endpointID, id, err := s.replayAt(call)
	if err != nil {
		return web.Answer{}, err
	}
	rows, err := s.deps.Pool.Query(call.Context(), getReplayQuery, call.Tenant(), endpointID, id)
	if err != nil {
		return web.Answer{}, fmt.Errorf("read replay %s: %w", id, postgres.Explain(err))
	}
	found, err := pgx.CollectExactlyOneRow(rows, scanReplay)
	switch {
	case postgres.Absent(err):
		return web.Answer{}, web.NotFound()
	case err != nil:
		return web.Answer{}, fmt.Errorf("read replay %s: %w", id, postgres.Explain(err))
	}
	return web.Answer{Status: http.StatusOK, Body: found}, nil
}

const listReplaysQuery = `
select ` + replayColumns + ` from replays
where tenant_id = $1 and endpoint_id = $2 and replay_id < $3
order by replay_id desc limit $4`

// listReplays answers a page of an endpoint's replays, the newest first. An endpoint that
// is deleted, or not the tenant's, is not found.
func (s *Service) listReplays(call *web.Call) (web.Answer, error) {
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	endpointID, err := call.PathID("endpoint_id")
	if err != nil {
		return web.Answer{}, err
	}
	if _, err := endpointIn(call.Context(), s.deps.Pool, call.Tenant(), endpointID); err != nil {
		return web.Answer{}, err
	}
	rows, err := s.deps.Pool.Query(call.Context(), listReplaysQuery, call.Tenant(), endpointID, before(page), page.Limit+1)
	if err != nil {
		return web.Answer{}, fmt.Errorf("list replays: %w", postgres.Explain(err))
	}
	list, err := pgx.CollectRows(rows, scanReplay)
	if err != nil {
		return web.Answer{}, fmt.Errorf("list replays: %w", postgres.Explain(err))
	}
	return web.Cut(page, list, func(r replay) uuid.UUID { return r.ID }), nil
}
