package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// usualOverlap is how long a secret goes on signing after it was replaced, unless the
// tenant asks for another time.
const usualOverlap = 24 * time.Hour

// rotated is the answer to a rotation, the only one that shows the new secret.
type rotated struct {
	EndpointID    uuid.UUID     `json:"endpoint_id"`
	Secret        string        `json:"secret"`
	PreviousUntil *openapi.Time `json:"previous_valid_until"` // nil: it signs no more
}

// rotateSecret answers POST /api/v1/webhook-endpoints/{endpoint_id}/rotate-secret.
func (s *Service) rotateSecret(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("endpoint_id")
	if err != nil {
		return web.Answer{}, err
	}
	var wanted struct {
		OverlapSeconds *int `json:"overlap_seconds"`
	}
	if err := call.Decode(&wanted); err != nil {
		return web.Answer{}, err
	}
	overlap := orElse(wanted.OverlapSeconds, int(usualOverlap/time.Second))
	made, err := s.rotate(call.Context(), call.Tenant(), id, overlap)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: made}, nil
}

const rotateStatement = `
update endpoints set secret = $3,
	previous_secret = case when $4 > 0 then secret end,
	previous_until = case when $4 > 0 then clock_timestamp() + make_interval(secs => $4) end
where tenant_id = $1 and endpoint_id = $2 and deleted_at is null
returning previous_until`

// rotate gives the endpoint another secret, which signs whatever is claimed from then
// on. The one before signs beside it for so many seconds; one that was before that is
// forgotten.
func (s *Service) rotate(ctx context.Context, tenant, id uuid.UUID, overlap int) (rotated, error) {
	secret, err := newSecret()
	if err != nil {
		return rotated{}, fmt.Errorf("make secret: %w", err)
	}
	sealed, err := s.sealer.seal(id, secret)
	if err != nil {
		return rotated{}, err
	}
	made := rotated{EndpointID: id, Secret: secret}
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		lockTenants(tx, tenant)
		var until *time.Time
		err := tx.QueryRow(ctx, rotateStatement, tenant, id, sealed, overlap).Scan(&until)
		if postgres.Absent(err) {
			return web.NotFound()
		}
		if until != nil {
			made.PreviousUntil = &openapi.Time{Time: *until}
		}
		return err
	})
	if err != nil {
		return rotated{}, fmt.Errorf("rotate secret of endpoint %s: %w", id, err)
	}
	return made, nil
}
