package outbox

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

const (
	windowLength = time.Minute // windows begin on the full minute
	countAtOnce  = 10          // windows that one statement counts
	countMost    = 30          // such statements in one round
)

// tellRegularly tells what each window holds.
func (r *Relay) tellRegularly(ctx context.Context) {
	tick := time.NewTicker(r.tempo.reconcileEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.tellWindows(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("cannot count windows", zap.Error(err))
		}
	}
}

const forgetToldStatement = `delete from outbox_windows where started_at < now() - $1::interval`

// tellWindows counts the windows of which something was published since they were counted,
// and puts into the outbox what was not told yet. A window without events is not told.
// Replicas share the work.
func (r *Relay) tellWindows(ctx context.Context) error {
	if _, err := r.pool.Exec(ctx, forgetToldStatement, bus.Retention); err != nil {
		return fmt.Errorf("forget old windows: %w", err)
	}
	for range countMost {
		more, err := r.tellSome(ctx)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// A window is told once all that it counts is on the stream, so that no consumer hears of
// it first. Whoever publishes more of it meanwhile waits to note that until the count is
// over, and has it counted again. The latest come first, however many old ones there are.
const takeUncountedQuery = `
delete from outbox_uncounted where started_at in (
	select started_at from outbox_uncounted
	where started_at + $1::interval <= least(now() - $2::interval, (select min(created_at) from outbox_pending))
	order by started_at desc limit $3 for update skip locked)
returning started_at, clock_timestamp()`

// tellSome tells of some windows, and whether there may be more.
func (r *Relay) tellSome(ctx context.Context) (more bool, err error) {
	err = postgres.Transact(ctx, r.pool, func(tx *postgres.Tx) error {
		rows, err := tx.Query(ctx, takeUncountedQuery, windowLength, r.tempo.closeAfter, countAtOnce)
		if err != nil {
			return fmt.Errorf("read which windows are to be counted: %w", err)
		}
		var starts []time.Time
		var start, now time.Time
		_, err = pgx.ForEachRow(rows, []any{&start, &now}, func() error {
			starts = append(starts, start)
			return nil
		})
		if err != nil {
			return fmt.Errorf("read which windows are to be counted: %w", err)
		}
		if len(starts) == 0 {
			return nil
		}
		windows, err := countWindows(ctx, tx, starts)
		if err != nil {
			return err
		}
		for start, events := range windows {
			w := event.Window{Start: start, End: start.Add(windowLength), CountedAt: event.Instant(now), Events: events}
			if err := r.tell(ctx, tx, w); err != nil {
				return err
			}
		}
		more = len(starts) == countAtOnce
		return nil
	})
	return more, err
}

// An amount is written with two decimals, so that its centavos are whole.
const countEventsQuery = `
select w.started_at, e.name, count(*),
	coalesce(sum((e.data ->> 'amount_brl')::numeric * 100), 0)::bigint,
	coalesce(sum((e.data ->> 'commission_amount_brl')::numeric * 100), 0)::bigint
from unnest($1::timestamptz[]) as w (started_at) cross join lateral (
	select name, convert_from(body, 'UTF8')::json -> 'data' as data from outbox
	where created_at >= w.started_at and created_at < w.started_at + $2::interval and name not like 'window.%'
	offset 0) e
group by 1, 2`

// countWindows counts the events of each window by their names.
func countWindows(ctx context.Context, tx *postgres.Tx, starts []time.Time) (map[time.Time]map[string]event.Tally, error) {
	rows, err := tx.Query(ctx, countEventsQuery, starts, windowLength)
	if err != nil {
		return nil, fmt.Errorf("count windows: %w", err)
	}
	windows := map[time.Time]map[string]event.Tally{}
	var start time.Time
	var name string
	var t event.Tally
	_, err = pgx.ForEachRow(rows, []any{&start, &name, &t.Count, &t.Centavos, &t.Commissions}, func() error {
		if windows[start.UTC()] == nil {
			windows[start.UTC()] = map[string]event.Tally{}
		}
		windows[start.UTC()][name] = t
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count windows: %w", err)
	}
	return windows, nil
}

const recountStatement = `
with forgotten as (delete from outbox_windows)
insert into outbox_uncounted (started_at)
select w from generate_series(date_bin($1, now() - $2::interval, 'epoch'), now(), $1) as w
where exists (select from outbox where created_at >= w and created_at < w + $1)
order by w
on conflict do nothing`

// recount has every window that the log has events of counted and told again.
func recount(ctx context.Context, tx *postgres.Tx) error {
	if _, err := tx.Exec(ctx, recountStatement, windowLength, bus.Retention); err != nil {
		return fmt.Errorf("have windows counted again: %w", err)
	}
	return nil
}

const toldWindowQuery = `select events from outbox_windows where started_at = $1`

const tellWindowStatement = `
insert into outbox_windows (started_at, counted_at, events) values ($1, $2, $3)
on conflict (started_at) do update set counted_at = excluded.counted_at, events = excluded.events`

// tell puts the window into the outbox, unless it was told with the same count.
func (r *Relay) tell(ctx context.Context, tx *postgres.Tx, w event.Window) error {
	var told map[string]event.Tally
	err := tx.QueryRow(ctx, toldWindowQuery, w.Start).Scan(&told)
	if err == nil && maps.Equal(told, w.Events) {
		return nil
	}
	if err != nil && !postgres.Absent(err) {
		return fmt.Errorf("read told window: %w", err)
	}
	if _, err := tx.Exec(ctx, tellWindowStatement, w.Start, w.CountedAt, w.Events); err != nil {
		return fmt.Errorf("note told window: %w", err)
	}
	sealed, err := w.Seal(r.stream.WindowName())
	if err != nil {
		return err
	}
	r.Add(tx, sealed)
	return nil
}
