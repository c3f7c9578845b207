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

// addition is what a batch of facts adds at one place.
type addition struct {
	place
	goal        *goal
	span        span
	amount      int64  // in the goal's unit
	traceparent string // of the last fact among them
}

// keptEnd is the end of the period as the total keeps it: nil where it is the goal's own
// end, which may change.
func (a addition) keptEnd() *time.Time {
	if a.goal.period == total {
		return nil
	}
	return a.span.end
}

// counter decides which facts one goal counts, and in which period.
type counter struct {
	*calendar
	window window
}

// counts tells whether the fact, which is of the goal's tenant and of a partner whom the
// goal is for, counts.
func (c counter) counts(f fact) bool {
	return c.window.holds(f.occurredAt) && (c.goal.campaignID == nil || *c.goal.campaignID == f.campaignID)
}

// counters are those of one tenant, by the partners whom their goals are for: of many
// goals for a few partners each a fact meets only those of its own partner.
type counters struct {
	everybody []counter
	only      map[uuid.UUID][]counter // by partner
}

func (a *counters) add(c counter) {
	if c.goal.partnerIDs == nil {
		a.everybody = append(a.everybody, c)
		return
	}
	if a.only == nil {
		a.only = map[uuid.UUID][]counter{}
	}
	for _, partner := range c.goal.partnerIDs {
		a.only[partner] = append(a.only[partner], c)
	}
}

// tally adds up what the facts mean to the goals, sorted by place.
func tally(goals []goal, facts []fact) ([]addition, error) {
	tenants := map[uuid.UUID]*counters{}
	for i := range goals {
		g := &goals[i]
		calendar, err := newCalendar(g)
		if err != nil {
			return nil, err
		}
		if tenants[g.tenantID] == nil {
			tenants[g.tenantID] = &counters{}
		}
		tenants[g.tenantID].add(counter{calendar, g.window()})
	}
	sums := map[place]*addition{}
	for _, f := range facts {
		a := tenants[f.tenantID]
		if a == nil {
			continue
		}
		for _, met := range [][]counter{a.everybody, a.only[f.partnerID]} {
			for _, c := range met {
				c.addTo(sums, f)
			}
		}
	}
	additions := make([]addition, 0, len(sums))
	for _, sum := range sums {
		additions = append(additions, *sum)
	}
	slices.SortFunc(additions, func(a, b addition) int { return a.place.compare(b.place) })
	return additions, nil
}

// addTo adds the fact to the sum at its place, if it counts and adds anything.
func (c counter) addTo(sums map[place]*addition, f fact) {
	worth := c.goal.metric.worth(f)
	if worth == 0 || !c.counts(f) {
		return
	}
	in := c.spanOf(f.occurredAt)
	at := placeOf(f.tenantID, c.goal.id, f.partnerID, in.start)
	sum, ok := sums[at]
	if !ok {
		sum = &addition{place: at, goal: c.goal, span: in}
		sums[at] = sum
	}
	sum.amount += worth
	sum.traceparent = f.traceparent
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
// transaction locks totals. It returns the places of settled goals whose progress came
// up to the target by this addition. Totals of other goals are not complete; they are
// judged when they are.
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
		starts, ends, amounts = append(starts, a.span.start), append(ends, a.keptEnd()), append(amounts, a.amount)
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
		if a.goal.settled && progress >= a.goal.target && progress-a.amount < a.goal.target {
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
