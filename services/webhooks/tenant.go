package webhooks

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
)

const (
	addTenantsStatement = `
insert into tenants (tenant_id) select unnest($1::uuid[])
on conflict do nothing`

	lockTenantsStatement = `
select from tenants where tenant_id = any($1::uuid[])
order by tenant_id for update`
)

// lockTenants holds the tenants until tx ends: meanwhile nobody else numbers their
// events, nor adds or deletes an endpoint of theirs. The ids must be sorted, so that
// two transactions never wait for each other.
func lockTenants(ctx context.Context, tx *postgres.Tx, tenants ...uuid.UUID) error {
	var both pgx.Batch // one round trip
	both.Queue(addTenantsStatement, tenants)
	both.Queue(lockTenantsStatement, tenants)
	if err := tx.SendBatch(ctx, &both).Close(); err != nil {
		return fmt.Errorf("lock tenants: %w", err)
	}
	return nil
}
