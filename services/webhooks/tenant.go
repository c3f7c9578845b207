package webhooks

import (
	"github.com/google/uuid"

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

// lockTenants holds the tenants from the next statement on until tx ends: meanwhile nobody
// else numbers their events, nor adds or deletes an endpoint of theirs. The ids must be
// sorted, so that two transactions never wait for each other.
func lockTenants(tx *postgres.Tx, tenants ...uuid.UUID) {
	tx.Later(postgres.Doing("add tenants"), addTenantsStatement, tenants)
	tx.Later(postgres.Doing("lock tenants"), lockTenantsStatement, tenants)
}
