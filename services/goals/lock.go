package goals

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"partilha.dev/pkg/postgres"
)

// A goal counts the facts that exist when it is made or changed, while others are being
// recorded. That each fact is counted exactly once rests on one lock for each tenant:
// whoever records facts shares it, whoever makes or changes a goal has it alone, both
// until their commit. So either the goal was changed first, and whoever records sees it;
// or the fact was recorded first, and has a lower number than the mark that the change
// draws. What depends on it has to be read by a later statement than the one that takes
// the lock: each sees what was committed when it began.
//
// Whoever needs the lock takes it before any row. A step that fills a goal locks the
// goal's row and never needs it.

const shareTenantsStatement = `
select pg_advisory_xact_lock_shared(hashtextextended('goals ' || tenant_id::text, 0))
from unnest($1::uuid[]) as t (tenant_id)`

// shareTenants has the next statement wait until no goal of these tenants is being made or
// changed, and has new ones wait for the end of tx. Tenants are sorted, so that transactions which share
// several never wait for each other in a circle.
func shareTenants(tx *postgres.Tx, tenants []uuid.UUID) {
	tx.Later(postgres.Doing("share tenants"), shareTenantsStatement, tenants)
}

const holdTenantStatement = `
select pg_advisory_xact_lock(hashtextextended('goals ' || $1::uuid::text, 0))`

// holdTenant waits until nobody records facts or changes a goal of the tenant, and
// keeps it so until the end of tx.
func holdTenant(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID) error {
	if _, err := tx.Exec(ctx, holdTenantStatement, tenant); err != nil {
		return fmt.Errorf("hold tenant: %w", err)
	}
	return nil
}
