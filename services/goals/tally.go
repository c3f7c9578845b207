package goals

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
)

// place is where progress is kept: one partner in one period of one goal.
type place struct {
	tenantID, goalID, partnerID uuid.UUID
	since                       int64 // the start of the period, in microseconds of Unix time
}

func placeOf(tenantID, goalID, partnerID uuid.UUID, start time.Time) place {
	return place{tenantID, goalID, partnerID, start.UnixMicro()}
}

func (p place) compare(other place) int {
	return cmp.Or(
		bytes.Compare(p.tenantID[:], other.tenantID[:]),
		bytes.Compare(p.goalID[:], other.goalID[:]),
		bytes.Compare(p.partnerID[:], other.partnerID[:]),
		cmp.Compare(p.since, other.since),
	)
}

// addition is what a batch of sales adds at one place.
type addition struct {
	place
	goal        *goal
	span        span
	amount      int64  // in the goal's unit
	traceparent string // of the last sale among them
}

// counter decides which sales one goal counts, and in which period.
type counter struct {
	*calendar
	partners map[uuid.UUID]bool // nil: every partner
}

func newCounter(g *goal) (counter, error) {
	calendar, err := newCalendar(g)
	if err != nil {
		return counter{}, err
	}
	c := counter{calendar: calendar}
	if g.partnerIDs != nil {
		c.partners = make(map[uuid.UUID]bool, len(g.partnerIDs))
		for _, id := range g.partnerIDs {
			c.partners[id] = true
		}
	}
	return c, nil
}

// counts tells whether the sale, which is of the goal's tenant, counts.
func (c counter) counts(sale fact) bool {
	g := c.goal
	return !sale.occurredAt.Before(g.startsAt) &&
		(g.endsAt == nil || sale.occurredAt.Before(*g.endsAt)) &&
		(g.campaignID == nil || *g.campaignID == sale.campaignID) &&
		(c.partners == nil || c.partners[sale.partnerID])
}

// tally adds up what the sales mean to the goals, sorted by place.
func tally(goals []goal, sales []fact) ([]addition, error) {
	counters := map[uuid.UUID][]counter{} // by tenant
	for i := range goals {
		c, err := newCounter(&goals[i])
		if err != nil {
			return nil, err
		}
		counters[c.goal.tenantID] = append(counters[c.goal.tenantID], c)
	}
	sums := map[place]*addition{}
	for _, sale := range sales {
		for _, c := range counters[sale.tenantID] {
			if !c.counts(sale) {
				continue
			}
			in := c.spanOf(sale.occurredAt)
			at := placeOf(sale.tenantID, c.goal.id, sale.partnerID, in.start)
			sum, ok := sums[at]
			if !ok {
				sum = &addition{place: at, goal: c.goal, span: in}
				sums[at] = sum
			}
			sum.amount += c.goal.worth(sale)
			sum.traceparent = sale.traceparent
		}
	}
	additions := make([]addition, 0, len(sums))
	for _, sum := range sums {
		additions = append(additions, *sum)
	}
	slices.SortFunc(additions, func(a, b addition) int { return a.place.compare(b.place) })
	return additions, nil
}

const addToTotalsStatement = `
with added as (
	insert into totals as t (tenant_id, goal_id, partner_id, period_start, period_end, progress)
	select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::timestamptz[], $6::bigint[])
	on conflict (tenant_id, goal_id, partner_id, period_start) do update
	set progress = t.progress + excluded.progress
	returning tenant_id, goal_id, partner_id, period_start, progress),` + tellListeners + `
select tenant_id, goal_id, partner_id, period_start, progress from added`

// addToTotals adds what is sorted by place, which is the order in which every
// transaction locks totals. It returns the places whose progress came up to the
// target by this addition: a total passes its target in one transaction only.
func addToTotals(ctx context.Context, tx *postgres.Tx, additions []addition) ([]arrival, error) {
	if len(additions) == 0 {
		return nil, nil
	}
	var (
		tenants, goals, partners []uuid.UUID
		starts                   []time.Time
		ends                     []*time.Time
		amounts                  []int64
	)
	at := make(map[place]addition, len(additions))
	for _, a := range additions {
		at[a.place] = a
		tenants, goals, partners = append(tenants, a.tenantID), append(goals, a.goalID), append(partners, a.partnerID)
		starts, ends, amounts = append(starts, a.span.start), append(ends, a.span.end), append(amounts, a.amount)
	}
	rows, err := tx.Query(ctx, addToTotalsStatement, tenants, goals, partners, starts, ends, amounts)
	if err != nil {
		return nil, fmt.Errorf("add to totals: %w", err)
	}
	var arrivals []arrival
	var tenantID, goalID, partnerID uuid.UUID
	var start time.Time
	var progress int64
	_, err = pgx.ForEachRow(rows, []any{&tenantID, &goalID, &partnerID, &start, &progress}, func() error {
		a := at[placeOf(tenantID, goalID, partnerID, start)]
		if progress >= a.goal.target && progress-a.amount < a.goal.target {
			arrivals = append(arrivals, arrival{
				goal: a.goal, partnerID: a.partnerID, span: a.span, progress: progress, traceparent: a.traceparent,
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("add to totals: %w", err)
	}
	return arrivals, nil
}
