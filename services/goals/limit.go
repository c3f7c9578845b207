package goals

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
)

// defaultPerTenant is how many goals of a tenant may be active where nothing else is
// configured: whatever happens is held against each of them.
const defaultPerTenant = 500

const countActiveQuery = `
select count(*) from (select from goals where tenant_id = $1 and status = 'active' limit $2) as counting`

// limitActive is a rule_violated where more goals of the tenant are active now than may
// be. The tenant is held, and the goal in question has been stored.
func (s *Service) limitActive(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID) error {
	var found int
	if err := tx.QueryRow(ctx, countActiveQuery, tenant, s.perTenant+1).Scan(&found); err != nil {
		return fmt.Errorf("count active goals: %w", err)
	}
	if found > s.perTenant {
		return fault.Newf(fault.Rule, "rule_violated", "a tenant may have %d active goals; archive or delete one that is no longer needed", s.perTenant)
	}
	return nil
}
