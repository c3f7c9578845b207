package goals

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"partilha.dev/pkg/postgres"
)

// fillEvery is how often the service looks for goals that have something to count of
// the past, after it has found none and unless it knows of one.
const fillEvery = time.Second

// fillGoals fills goals, and clears what deleted ones left, until ctx ends. Any number
// of replicas may do so at once.
func (s *Service) fillGoals(ctx context.Context) error {
	tick := time.NewTicker(fillEvery)
	defer tick.Stop()
	for {
		s.fillBehind(ctx)
		s.clearLeftovers(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.unfilled:
		}
	}
}

// wakeFilling has the service look for goals to fill at once.
func (s *Service) wakeFilling() {
	select {
	case s.unfilled <- struct{}{}:
	default:
	}
}

// fillBehind takes steps until no goal needs another one, or none can be filled.
func (s *Service) fillBehind(ctx context.Context) {
	for s.turn(ctx) {
	}
}

// turn takes one step for each tenant, so that however much one tenant has to count, it
// holds up nobody else. A goal that cannot be filled is passed over, and the tenant's next
// one is tried. It returns false when nothing was done.
func (s *Service) turn(ctx context.Context) (done bool) {
	var past uuid.UUID
	failed := []uuid.UUID{}
	for {
		g, err := s.stepBehind(ctx, past, failed)
		switch {
		case ctx.Err() != nil:
			return false
		case g == nil && err != nil:
			s.deps.Log.Warn("cannot look for goals to fill", zap.Error(err))
			return false
		case g == nil:
			return done
		case err != nil:
			s.deps.Log.Error("cannot fill goal", zap.Stringer("tenant_id", g.tenantID), zap.Stringer("goal_id", g.id), zap.Error(err))
			failed = append(failed, g.id)
		default:
			past, done = g.tenantID, true
		}
	}
}

// Of a tenant's goals the one comes first of which the least is counted: so a short past
// does not wait for a long one.
const claimBehindStatement = `
select ` + goalColumns + ` from goals
where past_total is not null and status = 'active' and tenant_id > $1 and goal_id <> all($2)
order by tenant_id, past_done, goal_id limit 1
for update skip locked`

// stepBehind takes one step for the first tenant behind past that has a goal which needs
// one, is none of the failed ones and is not in another replica's hands. It returns that
// goal; nil if there is none.
func (s *Service) stepBehind(ctx context.Context, past uuid.UUID, failed []uuid.UUID) (g *goal, err error) {
	var needs next
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		g = nil
		rows, err := tx.Query(ctx, claimBehindStatement, past, failed)
		if err != nil {
			return fmt.Errorf("claim goal: %w", err)
		}
		claimed, err := pgx.CollectExactlyOneRow(rows, scanGoal)
		if postgres.Absent(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("claim goal: %w", err)
		}
		g = &claimed
		needs, err = s.step(ctx, tx, g, s.atOnce)
		return err
	})
	switch {
	case err != nil:
		return g, err
	case needs == sizing:
		return g, s.countRemaining(ctx, g)
	case needs != settling:
		return g, nil
	}
	// The goal's row is free again: who holds the tenant may be waiting for it.
	return g, postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		if err := holdTenant(ctx, tx, g.tenantID); err != nil {
			return err
		}
		return settle(ctx, tx, g.tenantID, g.id)
	})
}
