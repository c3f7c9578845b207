package goals

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
)

// A goal that looks back is filled in steps, each a transaction of bounded size: first
// its stretches are counted, then it is settled, then everybody whose total has come up
// to the target by then is found. Until it is settled nobody is judged, neither by a
// step nor by what happens meanwhile: half of the past may lack a refund, or still have
// what is to be taken out.

// atOnce is how many facts, or totals, are read in one step: enough that a partner's
// total is written once for many of his facts.
const atOnce = 100_000

// next is what a goal's filling needs after a step.
type next int

const (
	nothing  next = iota // the goal is filled
	sizing               // its past to be measured, for which no row need be held
	counting             // another step, of what is to be counted
	settling             // to be settled, which the tenant has to be held for
	judging              // another step, of who is to be judged
)

// step goes through at most so many facts, or totals, of what is left of the goal's past.
// The goal's row is locked.
func (s *Service) step(ctx context.Context, tx *postgres.Tx, g *goal, most int) (next, error) {
	if g.past.rough {
		return sizing, nil
	}
	first, err := firstStretch(ctx, tx, g)
	switch {
	case err != nil:
		return nothing, err
	case first != nil:
		return counting, s.countPart(ctx, tx, g, first, most)
	case !g.settled:
		return settling, nil
	default:
		return s.judgePart(ctx, tx, g, most)
	}
}

const pastDoneStatement = `
update goals set past_done = past_done + $3, past_total = greatest(past_total, past_done + $3) where tenant_id = $1 and goal_id = $2`

// countPart counts the stretch's next facts. What has been read and what came of it
// commit together, so that none is counted twice, whenever this process ends.
func (s *Service) countPart(ctx context.Context, tx *postgres.Tx, g *goal, part *stretch, most int) error {
	as := *g // what counts is the stretch, whatever the goal's window is by now
	as.settled = false
	c, err := newCalendar(&as)
	if err != nil {
		return err
	}
	sums := sums{}
	read, last, err := part.nextFacts(ctx, tx, g, most, func(partner uuid.UUID, at time.Time, worth int64) {
		sums.add(c, partner, at, part.sign*worth)
	})
	if err != nil {
		return err
	}
	if err := part.advance(ctx, tx, g, last, read < most); err != nil {
		return err
	}
	if _, err := addToTotals(ctx, tx, sums.sorted()); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, pastDoneStatement, g.tenantID, g.id, read); err != nil {
		return fmt.Errorf("note what is counted: %w", err)
	}
	g.past.Done += int64(read)
	g.past.Total = max(g.past.Total, g.past.Done)
	return nil
}

const settleStatement = `
update goals g set settled = true
where tenant_id = $1 and goal_id = $2 and status = 'active' and not settled
	and not exists (select from stretches s where s.tenant_id = g.tenant_id and s.goal_id = g.goal_id)`

// settle has the goal judge what is counted from now on, if its past is counted. The
// tenant is held: whoever counts at the same time knows it, or has committed, so nobody
// who comes up to the target is overlooked.
func settle(ctx context.Context, tx *postgres.Tx, tenant, id uuid.UUID) error {
	if _, err := tx.Exec(ctx, settleStatement, tenant, id); err != nil {
		return fmt.Errorf("settle goal: %w", err)
	}
	return nil
}

const (
	nextTotalsQuery = `
select partner_id, period_start, progress from totals
where tenant_id = $1 and goal_id = $2 and (partner_id, period_start) > (
	coalesce((select judged_partner from goals where tenant_id = $1 and goal_id = $2), '00000000-0000-0000-0000-000000000000'),
	coalesce((select judged_start from goals where tenant_id = $1 and goal_id = $2), '-infinity'))
order by partner_id, period_start limit $3`
	judgedStatement = `
update goals set judged_partner = $3, judged_start = $4 where tenant_id = $1 and goal_id = $2`
	filledStatement = `
update goals set past_done = null, past_total = null, judged_partner = null, judged_start = null where tenant_id = $1 and goal_id = $2`
)

// judgePart finds who has come up to the target of the goal, which is settled, among its
// next totals.
func (s *Service) judgePart(ctx context.Context, tx *postgres.Tx, g *goal, most int) (next, error) {
	ctx, span := trace.Start(ctx, "judge goal")
	defer span.End()
	c, err := newCalendar(g)
	if err != nil {
		return nothing, err
	}
	rows, err := tx.Query(ctx, nextTotalsQuery, g.tenantID, g.id, most)
	if err != nil {
		return nothing, fmt.Errorf("read totals: %w", err)
	}
	var arrivals []arrival
	var partner uuid.UUID
	var start time.Time
	var progress int64
	read := 0
	_, err = pgx.ForEachRow(rows, []any{&partner, &start, &progress}, func() error {
		read++
		if progress >= g.target {
			arrivals = append(arrivals, arrival{goal: g, partnerID: partner, span: c.spanOf(start), progress: progress, traceparent: trace.Parent(ctx)})
		}
		return nil
	})
	if err != nil {
		return nothing, fmt.Errorf("read totals: %w", err)
	}
	if err := s.reach(ctx, tx, arrivals); err != nil {
		return nothing, err
	}
	if read == most {
		_, err = tx.Exec(ctx, judgedStatement, g.tenantID, g.id, partner, start)
		return judging, noted(err)
	}
	_, err = tx.Exec(ctx, filledStatement, g.tenantID, g.id)
	g.past = nil
	return nothing, noted(err)
}

func noted(err error) error {
	if err != nil {
		return fmt.Errorf("note who is judged: %w", err)
	}
	return nil
}

// So many facts, and as many totals, a call that holds the tenant may go through, in so
// many steps.
const (
	factsInCall = 10_000
	stepsInCall = 6
)

// inCall is how many facts, or totals, one step in a call goes through.
func (s *Service) inCall() int64 { return int64(min(s.atOnce, factsInCall)) }

// begin fills the goal, if its past is so short, and so few partners have progress, that
// a call, and whoever waits for the tenant meanwhile, may wait for that; else the rest is
// done in the background. The tenant is held and the goal's row is locked.
func (s *Service) begin(ctx context.Context, tx *postgres.Tx, g *goal) error {
	if g.status != active || g.past == nil {
		return nil
	}
	if most := s.inCall(); g.past.Total <= most {
		needs := counting
		for n := 0; n < stepsInCall && needs != judging; n++ {
			var err error
			needs, err = s.step(ctx, tx, g, int(most))
			if err == nil && needs == settling {
				err = settle(ctx, tx, g.tenantID, g.id)
				g.settled = true
			}
			if err != nil || needs == nothing {
				return err
			}
		}
	}
	tx.AfterCommit(s.wakeFilling)
	return nil
}
