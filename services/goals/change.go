package goals

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// goalChange is the body of a PATCH; what is left out stays as it is.
type goalChange struct {
	Name     *string                        `json:"name"`
	Status   *string                        `json:"status"`
	StartsAt *openapi.Time                  `json:"starts_at"`
	EndsAt   openapi.Optional[openapi.Time] `json:"ends_at"`
}

func (s *Service) changeGoal(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("goal_id")
	if err != nil {
		return web.Answer{}, err
	}
	var wanted goalChange
	if err := call.Decode(&wanted); err != nil {
		return web.Answer{}, err
	}
	g, err := s.change(call.Context(), call.Tenant(), id, wanted)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: g.body()}, nil
}

// applyTo returns the goal as it is to be. Its error is an invalid_body where the goal
// would end before it begins.
func (c goalChange) applyTo(g goal) (goal, error) {
	if c.Name != nil {
		g.name = *c.Name
	}
	if c.Status != nil {
		g.status = *c.Status
	}
	if c.StartsAt != nil {
		g.startsAt = c.StartsAt.Time
	}
	if c.EndsAt.Sent {
		g.endsAt = nil
		if c.EndsAt.Value != nil {
			g.endsAt = &c.EndsAt.Value.Time
		}
	}
	if g.endsAt != nil && !g.endsAt.After(g.startsAt) {
		return g, fault.InvalidBody(endsTooEarly)
	}
	return g, nil
}

// change changes the goal and has its totals follow: what its window has gained is
// counted, what it has lost is taken out, and what happened while it was archived is
// counted when it is active again. What was reached stays reached. Its error is a
// rule_violated where the tenant has as many active goals as it may have.
func (s *Service) change(ctx context.Context, tenant, id uuid.UUID, wanted goalChange) (changed goal, err error) {
	err = s.alone(ctx, tenant, func(tx *postgres.Tx) error {
		before, err := readGoal(ctx, tx, findQuery, tenant, id)
		if err != nil {
			return err
		}
		if changed, err = wanted.applyTo(before); err != nil {
			return err
		}
		gained, lost, missed := differences(before, changed)
		past, err := countPast(ctx, tx, tenant, s.inCall()+1, append(append(gained, lost...), missed...)...) // before anybody waits
		if err != nil {
			return err
		}
		if err := holdTenant(ctx, tx, tenant); err != nil {
			return err
		}
		if before, err = readGoal(ctx, tx, lockQuery, tenant, id); err != nil {
			return err
		}
		if changed, err = wanted.applyTo(before); err != nil {
			return err
		}
		if err := followWindow(ctx, tx, before, &changed, past, past > s.inCall()); err != nil {
			return err
		}
		if before.status == archived && changed.status == active {
			if err := s.limitActive(ctx, tx, tenant); err != nil {
				return err
			}
		}
		return s.begin(ctx, tx, &changed)
	})
	return changed, err
}

// lockQuery waits for a step that fills the goal, and keeps others from it.
const lockQuery = findQuery + ` for update`

// differences are the windows in which a goal has still to count, or counts no more,
// after a change: what its window gained and lost, and, where it has rested, all of it.
func differences(before, after goal) (gained, lost, missed []window) {
	if before.status == archived && after.status == active {
		missed = []window{after.window()}
	}
	return after.window().less(before.window()), before.window().less(after.window()), missed
}

const changeGoalStatement = `
update goals set name = $3, status = $4, starts_at = $5, ends_at = $6, rested_from = $7, settled = $8,
	past_done = $9, past_total = $10, past_rough = $12, judged_partner = case when $11 then null else judged_partner end, judged_start = case when $11 then null else judged_start end
where tenant_id = $1 and goal_id = $2`

// followWindow stores the changed goal, and the stretches by which its totals become
// what its window says. The tenant is held.
// Past is how many facts they hold, or fewer than that where it is rough.
//
// What has been recorded so far, or had been when the goal was archived, is in the
// totals as the window was, at the latest once earlier stretches are worked off; so it
// takes the difference of the two windows. What was recorded while the goal rested is
// in no total; so it takes the whole new window.
func followWindow(ctx context.Context, tx *postgres.Tx, before goal, changed *goal, past int64, rough bool) error {
	recorded, err := mark(ctx, tx)
	if err != nil {
		return err
	}
	counted := recorded
	if before.restedFrom != nil {
		counted = *before.restedFrom
	}
	gained, lost, missed := differences(before, *changed)
	stretches := append(stretchesOf(-1, 0, counted, lost...), stretchesOf(1, 0, counted, gained...)...)
	stretches = append(stretches, stretchesOf(1, counted, recorded, missed...)...)

	switch {
	case changed.status == active:
		changed.restedFrom = nil
	case before.restedFrom == nil:
		changed.restedFrom = &recorded
	}
	anew := len(stretches) > 0
	var done, total *int64
	if anew {
		if changed.past == nil {
			changed.past = &backfill{}
		}
		changed.past.Total += past
		changed.past.rough = changed.past.rough || rough
		changed.settled = false
	}
	if changed.past != nil {
		done, total = &changed.past.Done, &changed.past.Total
	}
	if err := addStretches(ctx, tx, changed, stretches); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, changeGoalStatement, changed.tenantID, changed.id, changed.name, changed.status, changed.startsAt, changed.endsAt,
		changed.restedFrom, changed.settled, done, total, anew, changed.past != nil && changed.past.rough)
	if err != nil {
		return fmt.Errorf("change goal: %w", err)
	}
	return nil
}
