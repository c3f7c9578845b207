package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/postgres"
)

const (
	windowAgain = 5 * time.Second // after a window could not be noted
	windowsKept = Retention       // receipts are kept for longer
	openAtOnce  = 500             // windows that are looked at in one round because they do not agree yet
	oldAtOnce   = 20              // and because they were not looked at for the longest time
)

// checkTempo is how patient a check is.
type checkTempo struct {
	every time.Duration
	// grace is how long a window may differ after it was heard of: it exceeds the time in
	// which its owner counts it once more, and the longest delay of an event that failed.
	grace time.Duration
}

var usualCheck = checkTempo{every: 30 * time.Second, grace: 3 * time.Minute}

// Difference is a window of which a consumer has not what the stream's owner has told.
type Difference struct {
	Consumer string
	Stream   string
	Start    time.Time
	End      time.Time
	Text     string // what differs
	Fresh    bool   // its time of grace is not over: it is no alarm
}

// Window names the window: its stream and its beginning.
func (d Difference) Window() string { return d.Stream + "/" + d.Start.UTC().Format(time.RFC3339) }

// CheckRegularly compares what the consumers have with what they were told, until ctx
// ends: a new window soon, and each again from time to time. Replicas share the work. It
// tells of every window that differs in the log and counts them in a metric, both until
// they agree.
func CheckRegularly(ctx context.Context, pool *pgxpool.Pool, consumers []Consumer, log *zap.Logger) error {
	return checkRegularly(ctx, pool, consumers, log, usualCheck)
}

func checkRegularly(ctx context.Context, pool *pgxpool.Pool, consumers []Consumer, log *zap.Logger, tempo checkTempo) error {
	for _, c := range consumers {
		differing.WithLabelValues(streamOf(c.Events[0]).Name, c.Name) // 0 until something is known
	}
	tick := time.NewTicker(tempo.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := checkRound(ctx, pool, consumers, log, tempo.grace); err != nil && ctx.Err() == nil {
			log.Warn("cannot check windows", zap.Error(err))
		}
	}
}

// Windows of a consumer that there is no more are never checked, and would stand before
// all others.
const dueWindowsQuery = `
(select consumer, started_at from windows where consumer = any($1) and not agrees order by checked_at nulls first limit $2)
union all
(select consumer, started_at from windows where consumer = any($1) and agrees order by checked_at limit $3)`

const forgetWindowsStatement = `delete from windows where ended_at < now() - $1::interval`

func checkRound(ctx context.Context, pool *pgxpool.Pool, consumers []Consumer, log *zap.Logger, grace time.Duration) error {
	if _, err := pool.Exec(ctx, forgetWindowsStatement, windowsKept); err != nil {
		return fmt.Errorf("forget old windows: %w", err)
	}
	if err := checkEach(ctx, pool, consumers, log, grace, dueWindowsQuery, openAtOnce, oldAtOnce); err != nil {
		return err
	}
	found, err := Differences(ctx, pool)
	if err != nil {
		return err
	}
	count := map[string]int{}
	for _, d := range found {
		if !d.Fresh {
			count[d.Consumer]++
		}
	}
	for _, c := range consumers {
		differing.WithLabelValues(streamOf(c.Events[0]).Name, c.Name).Set(float64(count[c.Name]))
	}
	return nil
}

const allWindowsQuery = `select consumer, started_at from windows where consumer = any($1) order by started_at, consumer`

const countWindowsQuery = `select count(*) from windows`

// CheckNow compares every window now, and returns how many there are and those that
// differ.
func CheckNow(ctx context.Context, pool *pgxpool.Pool, consumers []Consumer) (windows int, found []Difference, err error) {
	if err := checkEach(ctx, pool, consumers, zap.NewNop(), usualCheck.grace, allWindowsQuery); err != nil {
		return 0, nil, err
	}
	if err := pool.QueryRow(ctx, countWindowsQuery).Scan(&windows); err != nil {
		return 0, nil, fmt.Errorf("count windows: %w", err)
	}
	found, err = Differences(ctx, pool)
	return windows, found, err
}

const differencesQuery = `
select consumer, stream, started_at, ended_at, difference, not differs from windows
where not agrees and checked_at is not null order by started_at, consumer`

// Differences returns the windows that differed when they were looked at last.
func Differences(ctx context.Context, pool *pgxpool.Pool) ([]Difference, error) {
	rows, err := pool.Query(ctx, differencesQuery)
	if err != nil {
		return nil, fmt.Errorf("read windows: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Difference])
}

// checkEach checks the windows that a query names. Its first parameter are the consumers'
// names.
func checkEach(ctx context.Context, pool *pgxpool.Pool, consumers []Consumer, log *zap.Logger, grace time.Duration, query string, args ...any) error {
	type key struct {
		Consumer string
		Start    time.Time
	}
	byName := map[string]Consumer{}
	for _, c := range consumers {
		byName[c.Name] = c
	}
	rows, err := pool.Query(ctx, query, append([]any{slices.Collect(maps.Keys(byName))}, args...)...)
	if err != nil {
		return fmt.Errorf("read windows: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
	if err != nil {
		return fmt.Errorf("read windows: %w", err)
	}
	var failures []error
	for _, k := range keys {
		c := byName[k.Consumer]
		if err := c.check(ctx, pool, k.Start, log, grace); err != nil {
			failures = append(failures, fmt.Errorf("check window %s of %s: %w", k.Start.UTC().Format(time.RFC3339), c.Name, err))
		}
		if ctx.Err() != nil || len(failures) > 10 {
			break
		}
	}
	return errors.Join(failures...)
}

const takeWindowQuery = `
select stream, started_at, ended_at, events, centavos, commission_centavos, differs, heard_at <= now() - $3::interval
from windows where consumer = $1 and started_at = $2 for update skip locked`

const keepCheckStatement = `
update windows set checked_at = now(), agrees = $3, differs = $4, difference = $5 where consumer = $1 and started_at = $2`

// check compares one window, unless another replica is about to.
func (c Consumer) check(ctx context.Context, pool *pgxpool.Pool, start time.Time, log *zap.Logger, grace time.Duration) error {
	return postgres.Transact(ctx, pool, func(tx *postgres.Tx) error {
		d := Difference{Consumer: c.Name}
		var told tally
		var differed, due bool
		err := tx.QueryRow(ctx, takeWindowQuery, c.Name, start, grace).Scan(
			&d.Stream, &d.Start, &d.End, &told.events, &told.centavos, &told.commissions, &differed, &due)
		if postgres.Absent(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read window: %w", err)
		}
		here, err := c.count(ctx, tx, d.Start, d.End)
		if err != nil {
			return err
		}
		d.Text = told.differs(here)
		differs := d.Text != "" && (due || differed)
		if _, err := tx.Exec(ctx, keepCheckStatement, c.Name, start, d.Text == "", differs, d.Text); err != nil {
			return fmt.Errorf("keep check: %w", err)
		}
		if differs != differed {
			tx.AfterCommit(func() { d.tell(log) })
		}
		return nil
	})
}

func (d Difference) tell(log *zap.Logger) {
	fields := []zap.Field{zap.String("window", d.Window()), zap.String("stream", d.Stream), zap.String("consumer", d.Consumer)}
	if d.Text == "" {
		log.Info("window agrees again", fields...)
		return
	}
	log.Error("window differs", append(fields, zap.Time("until", d.End), zap.String("difference", d.Text))...)
}

// tally is what a consumer was told of a window, or has of it.
type tally struct {
	events, parked        int64
	centavos, commissions *int64 // nil: not known
}

const countReceiptsQuery = `
select count(*), null::bigint, null::bigint from receipts where created_at >= $1 and created_at < $2 and consumer = $3`

const countParkedThenQuery = `
select count(*) from parked_events where consumer = $1 and created_at >= $2 and created_at < $3`

// count returns what the consumer has of a window.
func (c Consumer) count(ctx context.Context, tx *postgres.Tx, start, end time.Time) (here tally, err error) {
	query, which := countReceiptsQuery, any(c.Name)
	if c.counted != "" {
		query, which = c.counted, c.Events
	}
	if err := tx.QueryRow(ctx, query, start, end, which).Scan(&here.events, &here.centavos, &here.commissions); err != nil {
		return tally{}, fmt.Errorf("count events: %w", err)
	}
	if err := tx.QueryRow(ctx, countParkedThenQuery, c.Name, start, end).Scan(&here.parked); err != nil {
		return tally{}, fmt.Errorf("count parked events: %w", err)
	}
	return here, nil
}

// differs tells in words what is not as it was told; "" where all is. An event that is
// parked may be missing, and its money with it.
func (told tally) differs(here tally) string {
	if here.events > told.events || here.events+here.parked < told.events {
		text := fmt.Sprintf("%d events were told, %d are here", told.events, here.events)
		if here.parked > 0 {
			text += fmt.Sprintf(", %d are parked", here.parked)
		}
		return text
	}
	if here.events != told.events {
		return ""
	}
	var texts []string
	for _, sum := range []struct {
		of         string
		told, here *int64
	}{{"amounts", told.centavos, here.centavos}, {"commissions", told.commissions, here.commissions}} {
		if sum.here != nil && *sum.here != *sum.told {
			texts = append(texts, fmt.Sprintf("%s of %d centavos were told, %d are here", sum.of, *sum.told, *sum.here))
		}
	}
	return strings.Join(texts, "; ")
}
