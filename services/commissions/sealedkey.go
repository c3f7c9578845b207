package commissions

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
)

// owner is what the sealed key of a withdrawal is bound to, so that it opens nowhere else.
func owner(tenant, withdrawal uuid.UUID) []byte { return append(tenant[:], withdrawal[:]...) }

// sealKey makes a withdrawal's PIX key unreadable at rest.
func (s *Service) sealKey(tenant, withdrawal uuid.UUID, key string) ([]byte, error) {
	sealed, err := s.ring.Seal([]byte(key), owner(tenant, withdrawal))
	if err != nil {
		return nil, fmt.Errorf("seal key of withdrawal %s: %w", withdrawal, err)
	}
	return sealed, nil
}

// openKey reads what sealKey made for the same withdrawal.
func (s *Service) openKey(tenant, withdrawal uuid.UUID, sealed []byte) (string, error) {
	key, err := s.ring.Open(sealed, owner(tenant, withdrawal))
	if err != nil {
		return "", fmt.Errorf("open key of withdrawal %s: %w", withdrawal, err)
	}
	return string(key), nil
}

// The first bytes of what is sealed name the key that sealed it. From each of these names
// the next one is looked up in their index, however many rows there are.
const sealedByEachQuery = `
with recursive seals as (
	(select substring(pix_key for 4) as seal from withdrawals order by substring(pix_key for 4) limit 1)
	union all
	select (select substring(pix_key for 4) from withdrawals where substring(pix_key for 4) > seals.seal order by substring(pix_key for 4) limit 1)
	from seals where seals.seal is not null)
select example.* from seals cross join lateral (
	select tenant_id, withdrawal_id, pix_key from withdrawals where substring(pix_key for 4) = seals.seal limit 1) example`

// checkSecretKey opens one PIX key that was sealed under each key. Without one of them
// somebody could not be paid, which is better learned at the start.
func (s *Service) checkSecretKey(ctx context.Context) error {
	rows, err := s.deps.Pool.Query(ctx, sealedByEachQuery)
	if err != nil {
		return fmt.Errorf("read what each key has sealed: %w", postgres.Explain(err))
	}
	var tenant, withdrawal uuid.UUID
	var sealed []byte
	_, err = pgx.ForEachRow(rows, []any{&tenant, &withdrawal, &sealed}, func() error {
		if _, err := s.openKey(tenant, withdrawal, sealed); err != nil {
			return fmt.Errorf("COMMISSIONS_SECRET_KEY does not have the key that a PIX key was sealed with: %w", err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("check the sealing keys: %w", postgres.Explain(err))
	}
	return nil
}
