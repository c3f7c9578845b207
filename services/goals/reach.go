package goals

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// arrival is a partner whose total in one period has come up to the goal's target.
type arrival struct {
	goal        *goal
	partnerID   uuid.UUID
	span        span
	progress    int64
	traceparent string // of what brought it about
}

func (a arrival) place() place {
	return placeOf(a.goal.tenantID, a.goal.id, a.partnerID, a.span.start)
}

const reachStatement = `
insert into reached (tenant_id, goal_id, partner_id, period_start, reached_at, progress)
select tenant_id, goal_id, partner_id, period_start, $6, progress
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::bigint[])
	as arrival (tenant_id, goal_id, partner_id, period_start, progress)
on conflict (tenant_id, goal_id, partner_id, period_start) do nothing
returning tenant_id, goal_id, partner_id, period_start`

// reach records who has reached a goal, once for each partner and period, for ever,
// and tells of it in the same transaction. A period that was over when the goal was
// made is not reached: nobody could strive for it.
func (s *Service) reach(ctx context.Context, tx *postgres.Tx, arrivals []arrival) error {
	at := event.Instant(s.deps.Now())
	var (
		tenants, goals, partners []uuid.UUID
		starts                   []time.Time
		progress                 []int64
	)
	byPlace := make(map[place]arrival, len(arrivals))
	for _, a := range arrivals {
		if a.goal.overBefore(a.goal.createdAt, a.span) {
			continue
		}
		byPlace[a.place()] = a
		tenants, goals, partners = append(tenants, a.goal.tenantID), append(goals, a.goal.id), append(partners, a.partnerID)
		starts, progress = append(starts, a.span.start), append(progress, a.progress)
	}
	if len(byPlace) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, reachStatement, tenants, goals, partners, starts, progress, at)
	if err != nil {
		return fmt.Errorf("record who reached a goal: %w", err)
	}
	first, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (place, error) {
		var tenantID, goalID, partnerID uuid.UUID
		var start time.Time
		err := row.Scan(&tenantID, &goalID, &partnerID, &start)
		return placeOf(tenantID, goalID, partnerID, start), err
	})
	if err != nil {
		return fmt.Errorf("record who reached a goal: %w", err)
	}
	told := make([]event.Sealed, len(first))
	for i, p := range first {
		if told[i], err = byPlace[p].seal(at); err != nil {
			return err
		}
	}
	tx.AfterCommit(func() { s.logReached(told) })
	s.relay.Add(tx, told...)
	return nil
}

// seal makes the event that tells of the arrival. Its id follows from goal, partner
// and period, so that there can be no second one, also where the period has been moved.
func (a arrival) seal(at time.Time) (event.Sealed, error) {
	g, shown := a.goal, a.goal.shown(a.span)
	cause := fmt.Sprintf("%s %s %d", g.id, a.partnerID, a.span.start.UnixMicro())
	return event.Seal(g.tenantID, cause, at, event.GoalReached{
		GoalID: g.id, Name: g.name, PartnerID: a.partnerID, Metric: string(g.metric),
		Target: g.metric.quantity(g.target), Progress: g.metric.quantity(a.progress),
		PeriodStart: shown.start, PeriodEnd: shown.end, ReachedAt: at, Reward: g.reward,
	}, a.traceparent)
}

// logReached notes how many arrivals were told of at once, and the first of them.
func (s *Service) logReached(told []event.Sealed) {
	if len(told) > 0 {
		s.deps.Log.Info("goals reached", zap.Int("times", len(told)), zap.Stringer("tenant_id", told[0].TenantID), zap.Stringer("event_id", told[0].ID))
	}
}
