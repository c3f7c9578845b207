package goals

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"partilha.dev/pkg/postgres"
)

// window is a stretch of time, from since, inclusive, to until, exclusive.
type window struct {
	since time.Time
	until *time.Time // nil: for ever
}

func (w window) holds(at time.Time) bool {
	return !at.Before(w.since) && (w.until == nil || at.Before(*w.until))
}

// less returns the parts of the window that are not in the other one, in the order of
// time.
func (w window) less(other window) (parts []window) {
	before := window{w.since, earlier(w.until, &other.since)}
	if before.until.After(before.since) {
		parts = append(parts, before)
	}
	if other.until == nil {
		return parts
	}
	after := window{w.since, w.until}
	if other.until.After(after.since) {
		after.since = *other.until
	}
	if after.until == nil || after.until.After(after.since) {
		parts = append(parts, after)
	}
	return parts
}

// earlier returns the earlier of two moments, of which nil is the last.
func earlier(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// stretch is a part of the past that is to be counted, or to be taken out of what was
// counted: the facts of its window that were recorded between two marks. Whatever is
// recorded later was or will be counted at once.
type stretch struct {
	window
	number int64
	sign   int64   // 1: its facts are added; -1: they are taken out
	after  int64   // the last recording before it
	upto   int64   // its last recording
	read   factKey // the last fact of it that has been read
}

// stretchesOf makes stretches of windows, of which nothing has been read.
func stretchesOf(sign int64, after, upto int64, windows ...window) []stretch {
	made := make([]stretch, len(windows))
	for i, w := range windows {
		made[i] = stretch{window: w, sign: sign, after: after, upto: upto}
	}
	return made
}

const markStatement = `select nextval('recordings')`

// mark parts the recordings of a tenant that is held: those that were made have a lower
// number, those that follow a higher one.
func mark(ctx context.Context, tx *postgres.Tx) (number int64, err error) {
	if err := tx.QueryRow(ctx, markStatement).Scan(&number); err != nil {
		return 0, fmt.Errorf("mark recordings: %w", err)
	}
	return number, nil
}

const addStretchStatement = `
insert into stretches (tenant_id, goal_id, sign, since, until, recorded_after, recorded_until, read_at, read_kind, read_source)
values ($1, $2, $3, $4, $5, $6, $7, $4, '', '00000000-0000-0000-0000-000000000000')`

// addStretches stores what is to be counted of the goal's past, behind what is there.
func addStretches(ctx context.Context, tx *postgres.Tx, g *goal, stretches []stretch) error {
	for _, s := range stretches {
		if _, err := tx.Exec(ctx, addStretchStatement, g.tenantID, g.id, s.sign, s.since, s.until, s.after, s.upto); err != nil {
			return fmt.Errorf("add stretch: %w", err)
		}
	}
	return nil
}

const firstStretchQuery = `
select number, sign, since, until, recorded_after, recorded_until, read_at, read_kind, read_source
from stretches where tenant_id = $1 and goal_id = $2 order by number limit 1`

// firstStretch returns what is next of the goal's past; nil if all of it is counted.
func firstStretch(ctx context.Context, tx *postgres.Tx, g *goal) (*stretch, error) {
	s := stretch{read: factKey{tenantID: g.tenantID}}
	err := tx.QueryRow(ctx, firstStretchQuery, g.tenantID, g.id).Scan(&s.number, &s.sign, &s.since, &s.until, &s.after, &s.upto,
		&s.read.occurredAt, &s.read.kind, &s.read.sourceID)
	switch {
	case postgres.Absent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find stretch: %w", err)
	default:
		return &s, nil
	}
}

// What does not count for the goal is read as well, as worth nothing, so that a part of
// the past has as many facts as were asked for.
const nextFactsQuery = `
select occurred_at, kind, source_id, partner_id, case
	when recorded <= $7 or recorded > $8 or $9::uuid is not null and campaign_id <> $9 or $10::uuid[] is not null and partner_id <> all($10) then 0
	when $11 = 'sales_count' then sales
	when $11 = 'sales_amount' then amount_centavos
	when $11 = 'commission_amount' then commission_centavos
	else conversions end
from facts
where tenant_id = $1 and (occurred_at, kind, source_id) > ($2, $3, $4) and occurred_at < coalesce($5, 'infinity'::timestamptz)
order by occurred_at, kind, source_id limit $6`

// nextFacts goes through the stretch's next facts, at most so many, and calls count for
// each that counts for the goal, with what it adds to the goal's metric. It returns how
// many it has read, and the last one.
func (s *stretch) nextFacts(ctx context.Context, tx *postgres.Tx, g *goal, most int,
	count func(partner uuid.UUID, at time.Time, worth int64)) (read int, last factKey, err error) {

	last = s.read
	rows, err := tx.Query(ctx, nextFactsQuery, last.tenantID, last.occurredAt, last.kind, last.sourceID, s.until, most,
		s.after, s.upto, g.campaignID, g.partnerIDs, string(g.metric))
	if err != nil {
		return 0, last, fmt.Errorf("read facts: %w", err)
	}
	var partner uuid.UUID
	var worth int64
	_, err = pgx.ForEachRow(rows, []any{&last.occurredAt, &last.kind, &last.sourceID, &partner, &worth}, func() error {
		if read++; worth != 0 {
			count(partner, last.occurredAt, worth)
		}
		return nil
	})
	if err != nil {
		return 0, last, fmt.Errorf("read facts: %w", err)
	}
	return read, last, nil
}

const (
	advanceStretchStatement = `
update stretches set read_at = $4, read_kind = $5, read_source = $6 where tenant_id = $1 and goal_id = $2 and number = $3`
	endStretchStatement = `
delete from stretches where tenant_id = $1 and goal_id = $2 and number = $3`
)

// advance remembers how far the stretch has been read; an ended one is removed.
func (s *stretch) advance(ctx context.Context, tx *postgres.Tx, g *goal, last factKey, ended bool) (err error) {
	if ended {
		_, err = tx.Exec(ctx, endStretchStatement, g.tenantID, g.id, s.number)
	} else {
		_, err = tx.Exec(ctx, advanceStretchStatement, g.tenantID, g.id, s.number, last.occurredAt, last.kind, last.sourceID)
	}
	if err != nil {
		return fmt.Errorf("advance stretch: %w", err)
	}
	return nil
}

const countPastQuery = `
select count(*) from (
	select from facts where tenant_id = $1 and occurred_at >= $2 and occurred_at < coalesce($3, 'infinity'::timestamptz)
	order by occurred_at limit $4) as past`

// countPast returns how many facts the windows hold now, or most where they hold more.
func countPast(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID, most int64, windows ...window) (total int64, err error) {
	for _, w := range windows {
		var n int64
		if err := tx.QueryRow(ctx, countPastQuery, tenant, w.since, w.until, most-total).Scan(&n); err != nil {
			return 0, fmt.Errorf("count past facts: %w", err)
		}
		total += n
	}
	return total, nil
}

const (
	sizeWithin = 3 * time.Second // no other goal is filled meanwhile

	queryCancelled = "57014" // PostgreSQL's word for a statement that took too long
)

const (
	sizeBrieflyStatement = `select set_config('statement_timeout', $1, true)`

	remainingQuery = `
select g.past_done, g.past_total, (
	select coalesce(sum(n), 0)::bigint from stretches s cross join lateral (
		select count(*) as n from facts f
		where f.tenant_id = $1 and (f.occurred_at, f.kind, f.source_id) > (s.read_at, s.read_kind, s.read_source)
			and f.occurred_at < coalesce(s.until, 'infinity'::timestamptz)) as left_over
	where s.tenant_id = $1 and s.goal_id = $2)
from goals g where g.tenant_id = $1 and g.goal_id = $2 and g.past_rough`

	knownStatement = `
update goals set past_total = $5, past_rough = false where tenant_id = $1 and goal_id = $2 and past_done = $3 and past_total = $4`
)

// countRemaining finds how many facts there are to go through for a goal of which only
// that they are many is known. It locks nothing while it counts; where the goal has
// changed meanwhile it leaves that to the next step. Where counting takes too long the
// goal is filled all the same, and its total grows with what is done.
func (s *Service) countRemaining(ctx context.Context, g *goal) error {
	var done, total, remaining int64
	err := postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		if _, err := tx.Exec(ctx, sizeBrieflyStatement, strconv.FormatInt(s.sizeWithin.Milliseconds(), 10)); err != nil {
			return err
		}
		return tx.QueryRow(ctx, remainingQuery, g.tenantID, g.id).Scan(&done, &total, &remaining)
	})
	known := done + remaining
	var refused *pgconn.PgError
	switch {
	case postgres.Absent(err):
		return nil
	case errors.As(err, &refused) && refused.Code == queryCancelled && ctx.Err() == nil:
		done, total, known = g.past.Done, g.past.Total, g.past.Total
	case err != nil:
		return fmt.Errorf("count what remains: %w", err)
	}
	if _, err := s.deps.Pool.Exec(ctx, knownStatement, g.tenantID, g.id, done, total, known); err != nil {
		return fmt.Errorf("note what remains: %w", err)
	}
	return nil
}
