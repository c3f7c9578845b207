package goals

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"partilha.dev/pkg/event"
)

// progressBody is how far one partner has come in one period.
type progressBody struct {
	GoalID      uuid.UUID      `json:"goal_id"`
	PartnerID   uuid.UUID      `json:"partner_id"`
	PeriodStart time.Time      `json:"period_start"`
	PeriodEnd   *time.Time     `json:"period_end"`
	Progress    event.Quantity `json:"progress"`
	Target      event.Quantity `json:"target"`
	Percent     jsontext.Value `json:"percent"`
	Reached     bool           `json:"reached"`
	ReachedAt   *time.Time     `json:"reached_at"`
	Rank        *int64         `json:"rank"` // nil: not known

	start    time.Time // of the period, by which totals know it
	position int64     // on the leaderboard, where no two share one; from 1
}

// progressOf is how a partner of whom nothing has counted yet stands in a period of the goal.
func (g *goal) progressOf(partner uuid.UUID, in span) progressBody {
	body := progressBody{GoalID: g.id, PartnerID: partner, start: in.start}
	body.measure(g, in, 0)
	return body
}

// measure holds progress in a period against the goal.
func (b *progressBody) measure(g *goal, in span, progress int64) {
	b.Progress, b.Target, b.Percent = g.metric.quantity(progress), g.metric.quantity(g.target), percentOf(progress, g.target)
	in = g.shown(in)
	b.PeriodStart, b.PeriodEnd = in.start, in.end
}

// shown is one of the goal's periods as it is told of. That of a goal in all is the
// goal's window: totals know it by the start that the goal was made with.
func (g *goal) shown(in span) span {
	if g.period == total {
		return span{g.startsAt, g.endsAt}
	}
	return in
}

// startOf is the start by which totals know the period that is shown to begin at start:
// for another moment than that at which a goal in all begins, one that they do not know.
func (g *goal) startOf(start time.Time) time.Time {
	if g.period == total {
		return g.origin.Add(start.Sub(g.startsAt))
	}
	return start
}

// progressColumns are of a total t and, where it has been reached, of its row r.
const progressColumns = `t.partner_id, t.period_start, t.period_end, t.progress, r.reached_at`

// scanProgress reads rows of progressColumns and a rank, all of one goal.
func (g *goal) scanProgress(row pgx.CollectableRow) (progressBody, error) {
	body := progressBody{GoalID: g.id}
	var progress int64
	var end *time.Time
	err := row.Scan(&body.PartnerID, &body.start, &end, &progress, &body.ReachedAt, &body.Rank)
	body.measure(g, span{body.start, end}, progress)
	body.Reached = body.ReachedAt != nil
	return body, err
}

// joinReached adds to a total t when it was reached.
const joinReached = `
left join reached r on r.tenant_id = t.tenant_id and r.goal_id = t.goal_id and r.partner_id = t.partner_id and r.period_start = t.period_start`

// nearRank is the rank of a total t, or null where more than a thousand are better. That
// they are wanted in the order of the index has PostgreSQL walk along it and stop there;
// else it may collect all who are better before it counts the first.
const nearRank = `
	(select case when count(*) <= 1000 then count(*) + 1 end from (
		select from totals b where b.tenant_id = t.tenant_id and b.goal_id = t.goal_id and b.period_start = t.period_start and b.progress > t.progress
		order by b.progress desc limit 1001) as better)`

// presentSpan is the period of the goal at the instant now.
func (g *goal) presentSpan(now time.Time) (span, error) {
	c, err := newCalendar(g)
	if err != nil {
		return span{}, err
	}
	return c.spanOf(now), nil
}

// percentOf is progress in percent of the target as a JSON number with at most two
// decimals, rounded half away from zero.
func percentOf(progress, target int64) jsontext.Value {
	percent := decimal.New(progress, 2).DivRound(decimal.NewFromInt(target), 2)
	return jsontext.Value(percent.String())
}
