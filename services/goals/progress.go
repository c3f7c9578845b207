package goals

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
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
	Rank        int64          `json:"rank"`
}

func (s *Service) listProgress(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("goal_id")
	if err != nil {
		return web.Answer{}, err
	}
	if err := call.Query("limit", "cursor", "partner_id", "period_start"); err != nil {
		return web.Answer{}, err
	}
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	partner, err := call.QueryID("partner_id")
	if err != nil {
		return web.Answer{}, err
	}
	start, err := call.QueryTime("period_start")
	if err != nil {
		return web.Answer{}, err
	}
	g, err := s.find(call.Context(), call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	if start == nil {
		if start, err = g.presentStart(s.deps.Now()); err != nil {
			return web.Answer{}, err
		}
	}
	rows, err := s.leaderboard(call.Context(), g, *start, partner, page)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Cut(page, rows, func(row progressBody) uuid.UUID { return row.PartnerID }), nil
}

// presentStart is the start of the goal's period at the instant now.
func (g *goal) presentStart(now time.Time) (*time.Time, error) {
	c, err := newCalendar(g)
	if err != nil {
		return nil, err
	}
	start := c.spanOf(now).start
	return &start, nil
}

const knownPlaceQuery = `
select exists (
	select from totals where tenant_id = $1 and goal_id = $2 and period_start = $3 and partner_id = $4)`

const leaderboardQuery = `
select best.partner_id, best.period_end, best.progress, best.rank, r.reached_at
from (
	select partner_id, period_end, progress, rank() over (order by progress desc) as rank
	from totals where tenant_id = $1 and goal_id = $2 and period_start = $3) as best
left join reached r on r.tenant_id = $1 and r.goal_id = $2 and r.partner_id = best.partner_id and r.period_start = $3
left join totals after on after.tenant_id = $1 and after.goal_id = $2 and after.partner_id = $5 and after.period_start = $3
where ($4::uuid is null or best.partner_id = $4)
	and ($5::uuid is null or best.progress < after.progress or best.progress = after.progress and best.partner_id > $5)
order by best.progress desc, best.partner_id limit $6`

// leaderboard returns one row more than the page holds, if there are more. The page
// begins behind the place at which the last partner of the page before stands now.
func (s *Service) leaderboard(ctx context.Context, g *goal, start time.Time, partner *uuid.UUID, page web.Page) ([]progressBody, error) {
	if page.After != nil {
		var known bool
		if err := s.deps.Pool.QueryRow(ctx, knownPlaceQuery, g.tenantID, g.id, start, page.After).Scan(&known); err != nil {
			return nil, postgres.Explain(fmt.Errorf("find the cursor's place: %w", err))
		}
		if !known {
			return nil, fault.InvalidParameter("cursor", "must be the next_cursor of an earlier answer of this list, with the same filters")
		}
	}
	rows, err := s.deps.Pool.Query(ctx, leaderboardQuery, g.tenantID, g.id, start, partner, page.After, page.Limit+1)
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("read progress: %w", err))
	}
	board, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (progressBody, error) {
		body := progressBody{GoalID: g.id, PeriodStart: start, Target: g.metric.quantity(g.target)}
		var progress int64
		err := row.Scan(&body.PartnerID, &body.PeriodEnd, &progress, &body.Rank, &body.ReachedAt)
		body.Progress, body.Percent = g.metric.quantity(progress), percentOf(progress, g.target)
		body.Reached = body.ReachedAt != nil
		if g.period == total {
			body.PeriodEnd = g.endsAt
		}
		return body, err
	})
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("read progress: %w", err))
	}
	return board, nil
}

// percentOf is progress in percent of the target as a JSON number with at most two
// decimals, rounded half away from zero.
func percentOf(progress, target int64) jsontext.Value {
	percent := decimal.New(progress, 2).DivRound(decimal.NewFromInt(target), 2)
	return jsontext.Value(percent.String())
}
