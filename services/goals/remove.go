package goals

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

func (s *Service) deleteGoal(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("goal_id")
	if err != nil {
		return web.Answer{}, err
	}
	if err := s.remove(call.Context(), call.Tenant(), id); err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusNoContent}, nil
}

const (
	someReachedQuery         = `select exists (select from reached where tenant_id = $1 and goal_id = $2)`
	removeGoalStatement      = `delete from goals where tenant_id = $1 and goal_id = $2`
	removeStretchesStatement = `delete from stretches where tenant_id = $1 and goal_id = $2`
	silenceGoalStatement     = `delete from listened where tenant_id = $1 and goal_id = $2`
	leaveStatement           = `insert into leftovers (tenant_id, goal_id) values ($1, $2)`
)

// remove forgets a goal that nobody has reached; a conflict if somebody has. Nobody
// counts for it from the commit on, since the tenant is held; its totals, which nobody
// can see any more, are cleared in the background. Whoever listens to it notices at the
// next look that nobody is said to.
func (s *Service) remove(ctx context.Context, tenant, id uuid.UUID) error {
	err := s.alone(ctx, tenant, func(tx *postgres.Tx) error {
		if err := holdTenant(ctx, tx, tenant); err != nil {
			return err
		}
		gone, err := tx.Exec(ctx, removeGoalStatement, tenant, id) // first, to wait for a step that is under way
		if err != nil {
			return err
		}
		if gone.RowsAffected() == 0 {
			return web.NotFound()
		}
		var reached bool
		if err := tx.QueryRow(ctx, someReachedQuery, tenant, id).Scan(&reached); err != nil {
			return err
		}
		if reached {
			return fault.New(fault.Conflict, "conflict", "somebody has reached the goal; archive it instead")
		}
		if _, err := tx.Exec(ctx, removeStretchesStatement, tenant, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, leaveStatement, tenant, id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, silenceGoalStatement, tenant, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete goal %s: %w", id, err)
	}
	return nil
}

// clearLeftovers removes the totals of deleted goals, a bounded number in each
// transaction, until none are left or a replica is busy with the rest.
func (s *Service) clearLeftovers(ctx context.Context) {
	for ctx.Err() == nil {
		cleared, err := s.clearSome(ctx)
		if err != nil && ctx.Err() == nil {
			s.deps.Log.Warn("cannot clear the totals of a deleted goal", zap.Error(err))
		}
		if err != nil || !cleared {
			return
		}
	}
}

const (
	claimLeftoverStatement = `
select tenant_id, goal_id from leftovers order by tenant_id, goal_id limit 1 for update skip locked`
	clearTotalsStatement = `
delete from totals t using (
	select partner_id, period_start from totals where tenant_id = $1 and goal_id = $2
	order by partner_id, period_start limit $3) as part
where t.tenant_id = $1 and t.goal_id = $2 and t.partner_id = part.partner_id and t.period_start = part.period_start`
	clearedStatement = `delete from leftovers where tenant_id = $1 and goal_id = $2`
)

// clearSome removes some totals of one deleted goal, and reports false if there is none.
func (s *Service) clearSome(ctx context.Context) (cleared bool, err error) {
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		var gone goalKey
		err := tx.QueryRow(ctx, claimLeftoverStatement).Scan(&gone.tenantID, &gone.goalID)
		if cleared = !postgres.Absent(err); !cleared {
			return nil
		}
		if err != nil {
			return fmt.Errorf("claim leftover: %w", err)
		}
		removed, err := tx.Exec(ctx, clearTotalsStatement, gone.tenantID, gone.goalID, s.atOnce)
		if err != nil {
			return fmt.Errorf("clear totals: %w", err)
		}
		if removed.RowsAffected() == int64(s.atOnce) {
			return nil
		}
		if _, err := tx.Exec(ctx, clearedStatement, gone.tenantID, gone.goalID); err != nil {
			return fmt.Errorf("end leftover: %w", err)
		}
		return nil
	})
	return cleared, err
}
