package webhooks

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/postgres"
	sealing "partilha.dev/pkg/seal"
)

// secretPrefix lets secret scanners recognise a leaked signing secret.
const secretPrefix = "whsec_"

// newSecret returns a signing secret: "whsec_" and 32 random bytes in 43 characters
// of unpadded base64url.
func newSecret() (string, error) {
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return secretPrefix + base64.RawURLEncoding.EncodeToString(random[:]), nil
}

// sealer keeps signing secrets unreadable at rest, each bound to the endpoint that it
// belongs to. It is safe for concurrent use.
type sealer struct {
	ring *sealing.Ring
}

// newSealer takes the keys as configured; see [sealing.NewRing].
func newSealer(encodedKeys string) (*sealer, error) {
	ring, err := sealing.NewRing(encodedKeys)
	if err != nil {
		return nil, err
	}
	return &sealer{ring: ring}, nil
}

// seal encrypts the secret of one endpoint under the first key.
func (s *sealer) seal(endpointID uuid.UUID, secret string) ([]byte, error) {
	sealed, err := s.ring.Seal([]byte(secret), endpointID[:])
	if err != nil {
		return nil, fmt.Errorf("seal secret of endpoint %s: %w", endpointID, err)
	}
	return sealed, nil
}

// open decrypts what seal made for the same endpoint. Another endpoint's secret is an
// error, as is one whose key is not configured any more.
func (s *sealer) open(endpointID uuid.UUID, sealed []byte) (string, error) {
	secret, err := s.ring.Open(sealed, endpointID[:])
	if err != nil {
		return "", fmt.Errorf("open secret of endpoint %s: %w", endpointID, err)
	}
	return string(secret), nil
}

// A key is told by the first bytes of what it has sealed, of which sealing.IDSize says how
// many.
const secretOfEachKeyQuery = `
with kept as (
	select endpoint_id, secret as sealed from endpoints where secret is not null
	union all
	select endpoint_id, previous_secret from endpoints where previous_until > now())
select distinct on (substring(sealed for $1)) endpoint_id, sealed from kept
order by substring(sealed for $1)`

// checkKeys opens a stored secret of each key. Without one of the keys something could
// not be signed, which is better learned at the start.
func (s *sealer) checkKeys(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, secretOfEachKeyQuery, sealing.IDSize)
	if err != nil {
		return fmt.Errorf("read a secret of each key: %w", postgres.Explain(err))
	}
	var id uuid.UUID
	var sealed []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &sealed}, func() error {
		if _, err := s.open(id, sealed); err != nil {
			return fmt.Errorf("WEBHOOKS_SECRET_KEY does not have the key that a secret was sealed with: %w", err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("check the keys of secrets: %w", postgres.Explain(err))
	}
	return nil
}
