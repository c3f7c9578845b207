package webhooks

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// deleteEndpoint ends an endpoint; the history of its deliveries stays.
func (s *Service) deleteEndpoint(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("endpoint_id")
	if err != nil {
		return web.Answer{}, err
	}
	if err := s.remove(call.Context(), call.Tenant(), id); err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusNoContent}, nil
}

const (
	removeStatement = `
update endpoints set deleted_at = $3, secret = null, previous_secret = null, previous_until = null
where tenant_id = $1 and endpoint_id = $2 and deleted_at is null`

	// What was deleted so long ago that nothing is left of its history goes when another is.
	forgetEndpointsStatement = `
delete from endpoints p
where p.tenant_id = $1 and p.deleted_at < $2
	and not exists (select from pending d where d.tenant_id = p.tenant_id and d.endpoint_id = p.endpoint_id)
	and not exists (select from deliveries d where d.tenant_id = p.tenant_id and d.endpoint_id = p.endpoint_id)`
)

// remove forgets the endpoint's secret and skips what has not been sent. While it holds
// the tenant nothing new can be made for the endpoint, and from its commit on nothing
// is claimed; what is on its way by then still arrives.
func (s *Service) remove(ctx context.Context, tenant, id uuid.UUID) error {
	err := postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		lockTenants(tx, tenant)
		removed, err := tx.Exec(ctx, removeStatement, tenant, id, event.Instant(s.deps.Now()))
		if err != nil {
			return fmt.Errorf("mark as deleted: %w", err)
		}
		if removed.RowsAffected() == 0 {
			return web.NotFound()
		}
		if _, err := tx.Exec(ctx, forgetEndpointsStatement, tenant, s.oldestKept()); err != nil {
			return fmt.Errorf("forget old endpoints: %w", err)
		}
		return skipUnclaimed(ctx, tx, lane{tenant, id})
	})
	if err != nil {
		return fmt.Errorf("delete endpoint %s: %w", id, err)
	}
	return nil
}

// skipAtOnce bounds how long one statement holds the rows that it skips. A longer
// queue is skipped by the sweeper.
const skipAtOnce = 5000

// Whoever asks for this may have looked some time ago. So the endpoint is asked here
// whether it still cannot be sent to, and stays as it is until the commit.
const skipStatement = `
with closed as (
	select tenant_id, endpoint_id, deleted_at from endpoints
	where tenant_id = $1 and endpoint_id = $2 and (deleted_at is not null or disabled_reason is not null)
	for share),
gone as (
	select d.delivery_id from pending d join closed using (tenant_id, endpoint_id)
	where d.tenant_id = $1 and d.endpoint_id = $2 and d.claim is null
	order by d.delivery_id limit $3
	for update of d skip locked),
ended as (
	delete from pending p using gone
	where p.tenant_id = $1 and p.endpoint_id = $2 and p.delivery_id = gone.delivery_id
	returning p.*)
insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state, reason)
select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, 'skipped',
	case when closed.deleted_at is null then '` + reasonDisabled + `' else '` + reasonDeleted + `' end
from ended join closed using (tenant_id, endpoint_id)`

// skipUnclaimed ends deliveries of the lane that nobody has claimed, at most skipAtOnce;
// none where its endpoint is enabled.
func skipUnclaimed(ctx context.Context, tx *postgres.Tx, l lane) error {
	skipped, err := tx.Exec(ctx, skipStatement, l.tenant, l.endpoint, skipAtOnce)
	if err != nil {
		return fmt.Errorf("skip deliveries: %w", err)
	}
	tx.AfterCommit(func() { countEnded(stateSkipped, int(skipped.RowsAffected())) })
	return nil
}
