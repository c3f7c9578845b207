package goals

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// partnerProgress is how far one partner has come towards one of several goals: with as
// much of the goal as a page about the partner shows.
type partnerProgress struct {
	Name   string `json:"name"`
	Metric metric `json:"metric"`
	Period period `json:"period"`
	Status string `json:"status"`
	progressBody
}

// listPartnerProgress answers GET /api/v1/goals/progress, the newest goal first.
func (s *Service) listPartnerProgress(call *web.Call) (web.Answer, error) {
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	partner, err := call.QueryID("partner_id")
	switch {
	case err != nil:
		return web.Answer{}, err
	case partner == nil:
		return web.Answer{}, fault.InvalidParameter("partner_id", "is needed: whose progress is it?")
	}
	goals, err := s.goalsOfPartner(call.Context(), call.Tenant(), *partner, page)
	if err != nil {
		return web.Answer{}, err
	}
	rows, err := s.progressOfPartner(call.Context(), call.Tenant(), *partner, goals)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Cut(page, rows, func(p partnerProgress) uuid.UUID { return p.GoalID }), nil
}

const goalsOfPartnerQuery = `
select ` + goalColumns + ` from goals
where tenant_id = $1 and ($2::uuid is null or goal_id < $2) and (partner_ids is null or $3 = any(partner_ids))
order by goal_id desc limit $4`

// goalsOfPartner returns the goals that count the partner's sales, one more than the page
// holds if there are more.
func (s *Service) goalsOfPartner(ctx context.Context, tenant, partner uuid.UUID, page web.Page) ([]goal, error) {
	rows, err := s.deps.Pool.Query(ctx, goalsOfPartnerQuery, tenant, page.After, partner, page.Limit+1)
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("list goals of a partner: %w", err))
	}
	goals, err := pgx.CollectRows(rows, scanGoal)
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("list goals of a partner: %w", err))
	}
	return goals, nil
}

const progressOfPartnerQuery = `
select asked.n, t.progress, r.reached_at,` + nearRank + `
from unnest($3::uuid[], $4::timestamptz[]) with ordinality as asked (goal_id, period_start, n)
join totals t on t.tenant_id = $1 and t.goal_id = asked.goal_id and t.partner_id = $2 and t.period_start = asked.period_start` + joinReached

// progressOfPartner is how the partner stands in the present period of each of the goals,
// in their order.
func (s *Service) progressOfPartner(ctx context.Context, tenant, partner uuid.UUID, goals []goal) ([]partnerProgress, error) {
	all := make([]partnerProgress, len(goals))
	ids, spans, starts := make([]uuid.UUID, len(goals)), make([]span, len(goals)), make([]time.Time, len(goals))
	now := s.deps.Now()
	for i := range goals {
		g := &goals[i]
		present, err := g.presentSpan(now)
		if err != nil {
			return nil, err
		}
		ids[i], spans[i], starts[i] = g.id, present, present.start
		all[i] = partnerProgress{g.name, g.metric, g.period, g.status, g.progressOf(partner, present)}
	}
	rows, err := s.deps.Pool.Query(ctx, progressOfPartnerQuery, tenant, partner, ids, starts)
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("read a partner's progress: %w", err))
	}
	var n, progress int64
	var reachedAt *time.Time
	var rank *int64
	_, err = pgx.ForEachRow(rows, []any{&n, &progress, &reachedAt, &rank}, func() error {
		row := &all[n-1]
		row.measure(&goals[n-1], spans[n-1], progress)
		row.Reached, row.ReachedAt, row.Rank = reachedAt != nil, reachedAt, rank
		return nil
	})
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("read a partner's progress: %w", err))
	}
	return all, nil
}
