package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// resendDelivery answers POST /api/v1/webhook-deliveries/{delivery_id}/resend: a person
// has decided that a delivery which has ended is to be sent again.
func (s *Service) resendDelivery(call *web.Call) (web.Answer, error) {
	if err := call.Decode(&struct{}{}); err != nil {
		return web.Answer{}, err
	}
	id, err := call.PathID("delivery_id")
	if err != nil {
		return web.Answer{}, err
	}
	if err := s.resend(call.Context(), call.Tenant(), id); err != nil {
		return web.Answer{}, err
	}
	found, err := s.delivery(call.Context(), call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusAccepted, Body: found.delivery}, nil
}

// Whoever takes the row of what has ended puts it back among what is pending: there is
// one row for a delivery, here or there, so that however many ask at once it is sent
// again once. What was tried before stays in attempts.
const (
	requeueStatement = `
with again as (
	delete from deliveries d using endpoints p
	where d.tenant_id = $1 and d.delivery_id = $2 and d.created_at >= $3 and d.created_at < $4
		and p.tenant_id = d.tenant_id and p.endpoint_id = d.endpoint_id and p.deleted_at is null and p.disabled_reason is null
	returning d.tenant_id, d.endpoint_id, d.delivery_id, d.created_at, d.event_id, d.name)
insert into pending (tenant_id, endpoint_id, delivery_id, created_at, event_id, name)
select * from again
returning endpoint_id, created_at`

	// Why a delivery cannot be sent again, where it cannot: what it is, and whether its
	// endpoint is there and enabled.
	resendableQuery = `
select d.state, p.deleted_at is null, p.disabled_reason is null
from (
	select next.* from endpoints p cross join lateral (` + pendingRows + `
		where tenant_id = $1 and endpoint_id = p.endpoint_id and delivery_id = $2) next
	where p.tenant_id = $1 and ` + mayHavePending + `
	union all` + endedRows + `
	where tenant_id = $1 and delivery_id = $2 and created_at >= $3 and created_at < $4) d
join endpoints p on p.tenant_id = d.tenant_id and p.endpoint_id = d.endpoint_id`
)

// oldestKept is the beginning of the oldest day of which everything is surely kept.
// What is older may be dropped at any moment, so that it can no longer be sent.
func (s *Service) oldestKept() time.Time { return dayOf(s.deps.Now()).AddDate(0, 0, -s.keepDays) }

// resend queues a delivery that has ended anew. It fails with 409 while the delivery is
// pending, and where nobody would be there to receive it.
func (s *Service) resend(ctx context.Context, tenant, id uuid.UUID) error {
	from, until := createdWithin(id)
	var since time.Time
	var endpointID uuid.UUID
	err := postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		if _, err := tx.Exec(ctx, postgres.PlanOnce); err != nil {
			return fmt.Errorf("set how to plan: %w", err)
		}
		err := pgx.ErrNoRows
		if !from.Before(s.oldestKept()) {
			err = tx.QueryRow(ctx, requeueStatement, tenant, id, from, until).Scan(&endpointID, &since)
		}
		if postgres.Absent(err) {
			return s.notResendable(ctx, tx, tenant, id)
		}
		tx.AfterCommit(func() {
			s.dispatcher.lanes.wake(map[lane]time.Time{{tenant, endpointID}: since.Truncate(time.Millisecond)})
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("resend delivery %s: %w", id, err)
	}
	return nil
}

// notResendable says why.
func (s *Service) notResendable(ctx context.Context, tx *postgres.Tx, tenant, id uuid.UUID) error {
	from, until := createdWithin(id)
	var state string
	var exists, enabled bool
	err := tx.QueryRow(ctx, resendableQuery, tenant, id, from, until).Scan(&state, &exists, &enabled)
	switch {
	case postgres.Absent(err):
		return web.NotFound()
	case err != nil:
		return err
	case state == statusPending:
		return fault.New(fault.Conflict, "invalid_transition", "this delivery is pending; wait until it has ended")
	case !exists:
		return fault.New(fault.Conflict, "invalid_transition", "the endpoint of this delivery is deleted")
	case !enabled:
		return fault.New(fault.Conflict, "invalid_transition", "the endpoint of this delivery is disabled; enable it first")
	case from.Before(s.oldestKept()):
		return fault.Newf(fault.Conflict, "invalid_transition", "this delivery is older than the %d days within which it can be sent again", s.keepDays)
	default: // somebody else has just sent it again
		return fault.New(fault.Conflict, "invalid_transition", "this delivery is being sent again; look at it first")
	}
}
