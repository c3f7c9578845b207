package goals

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"partilha.dev/pkg/postgres"
)

// A new goal counts the facts that exist, while others are being recorded. That each
// fact is counted exactly once rests on one lock for each tenant: whoever records
// facts shares it, whoever makes a goal has it alone, both until their commit. So
// either the goal is made first, and whoever records sees it; or the fact is recorded
// first, and the goal finds it. What depends on it has to be read by a later
// statement than the one that takes the lock: each sees what was committed when it began.

const shareTenantsStatement = `
select pg_advisory_xact_lock_shared(hashtextextended('goals ' || tenant_id::text, 0))
from unnest($1::uuid[]) as t (tenant_id)`

// shareTenants waits until no goal is being made for these tenants, and has new ones
// wait for the end of tx. Tenants are sorted, so that transactions which share
// several never wait for each other in a circle.
func shareTenants(ctx context.Context, tx *postgres.Tx, tenants []uuid.UUID) error {
	if _, err := tx.Exec(ctx, shareTenantsStatement, tenants); err != nil {
		return fmt.Errorf("share tenants: %w", err)
	}
	return nil
}

const holdTenantStatement = `
select pg_advisory_xact_lock(hashtextextended('goals ' || $1::uuid::text, 0))`

// holdTenant waits until nobody records facts or makes a goal for the tenant, and
// keeps it so until the end of tx.
func holdTenant(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID) error {
	if _, err := tx.Exec(ctx, holdTenantStatement, tenant); err != nil {
		return fmt.Errorf("hold tenant: %w", err)
	}
	return nil
}
