package sales

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// maxLiveKeys is how many keys of a tenant may work at the same time.
const maxLiveKeys = 100

// apiKey is a key as it is listed: never in clear.
type apiKey struct {
	APIKeyID   uuid.UUID   `json:"api_key_id"`
	Name       string      `json:"name"`
	Prefix     string      `json:"prefix"` // the part by which people tell keys apart
	Scopes     auth.Scopes `json:"scopes"`
	CreatedAt  time.Time   `json:"created_at"`
	ExpiresAt  *time.Time  `json:"expires_at"`
	RevokedAt  *time.Time  `json:"revoked_at"`
	LastUsedAt *time.Time  `json:"last_used_at"` // to the minute
}

// issuedKey is a new key, with the clear text that is shown this once.
type issuedKey struct {
	apiKey `json:",embed"`
	Clear  string `json:"api_key"`
}

type keyBody struct {
	Name      string        `json:"name"`
	Scopes    auth.Scopes   `json:"scopes"`
	ExpiresAt *openapi.Time `json:"expires_at"`
}

// createKey answers POST /api/v1/api-keys. A key grants only what it has itself.
func (s *Service) createKey(call *web.Call) (web.Answer, error) {
	var body keyBody
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	if body.Scopes == nil {
		body.Scopes = auth.DefaultScopes
	}
	if missing := call.Key.Scopes.Missing(body.Scopes); missing != "" {
		return web.Answer{}, fault.Newf(fault.Forbidden, "insufficient_scope", "this key cannot grant %s, which it lacks itself", missing)
	}
	return s.answerKey(call, call.Tenant(), body)
}

// createFirstKey answers POST /admin/v1/tenants/{tenant_id}/api-keys.
func (s *Service) createFirstKey(call *web.Call) (web.Answer, error) {
	tenant, err := call.PathID("tenant_id")
	if err != nil {
		return web.Answer{}, err
	}
	var body keyBody
	if err := call.Decode(&body); err != nil {
		return web.Answer{}, err
	}
	if body.Scopes == nil {
		body.Scopes = auth.AllScopes
	}
	return s.answerKey(call, tenant, body)
}

func (s *Service) answerKey(call *web.Call, tenant uuid.UUID, body keyBody) (web.Answer, error) {
	expires := instant(body.ExpiresAt)
	if expires != nil && !expires.After(s.deps.Now()) {
		return web.Answer{}, fault.InvalidBody(fault.Detail{Path: "/expires_at", Code: "too_small", Message: "must lie ahead"})
	}
	key, err := s.issueKey(call.Context(), tenant, body.Name, body.Scopes, expires)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: 201, Body: key}, nil
}

const countLiveKeysQuery = `
select count(*) from api_keys where tenant_id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)`

const issueKeyStatement = `
insert into api_keys (tenant_id, api_key_id, key_id, key_hash, name, scopes, expires_at, created_at)
values (@tenant_id, @api_key_id, @key_id, @key_hash, @name, @scopes, @expires_at, @created_at)`

// issueKey makes a key of the tenant; 404 where there is no such tenant, 422 where it
// has as many live keys as it may have.
func (s *Service) issueKey(ctx context.Context, tenant uuid.UUID, name string, scopes auth.Scopes, expires *time.Time) (issuedKey, error) {
	clear, keyID, hash, err := auth.NewSecret()
	if err != nil {
		return issuedKey{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return issuedKey{}, err
	}
	now := event.Instant(s.deps.Now())
	err = s.change(ctx, tenant, func(tx *postgres.Tx) error {
		var live int
		if err := tx.QueryRow(ctx, countLiveKeysQuery, tenant, now).Scan(&live); err != nil {
			return fmt.Errorf("count live keys: %w", err)
		}
		if live >= maxLiveKeys {
			return fault.Newf(fault.Rule, "rule_violated", "a tenant has at most %d live keys; revoke one first", maxLiveKeys)
		}
		_, err := tx.Exec(ctx, issueKeyStatement, pgx.NamedArgs{
			"tenant_id": tenant, "api_key_id": id, "key_id": keyID, "key_hash": hash[:], "name": name,
			"scopes": scopes.Strings(), "expires_at": expires, "created_at": now,
		})
		return err
	})
	return issuedKey{
		apiKey: apiKey{APIKeyID: id, Name: name, Prefix: "ptl_" + keyID, Scopes: scopes, CreatedAt: now, ExpiresAt: expires},
		Clear:  clear,
	}, err
}

const listKeysQuery = `
select api_key_id, name, 'ptl_' || key_id, scopes, created_at, expires_at, revoked_at, last_used_at from api_keys
where tenant_id = @tenant_id and (@after::uuid is null or api_key_id < @after)
order by api_key_id desc limit @limit`

func scanAPIKey(row pgx.CollectableRow) (k apiKey, err error) {
	var scopes []string
	err = row.Scan(&k.APIKeyID, &k.Name, &k.Prefix, &scopes, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.LastUsedAt)
	k.Scopes = auth.ScopesOf(scopes)
	return k, err
}

// listKeys answers GET /api/v1/api-keys.
func (s *Service) listKeys(call *web.Call) (web.Answer, error) {
	return list(s, call, scanAPIKey, func(k apiKey) uuid.UUID { return k.APIKeyID }, listKeysQuery, pgx.NamedArgs{})
}

const revokeKeyStatement = `
update api_keys set revoked_at = coalesce(revoked_at, $3), version = nextval('api_key_version')
where tenant_id = $1 and api_key_id = $2`

// revokeKey answers DELETE /api/v1/api-keys/{api_key_id}.
func (s *Service) revokeKey(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("api_key_id")
	if err != nil {
		return web.Answer{}, err
	}
	if err := s.endKey(call.Context(), call.Tenant(), id); err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: 204}, nil
}

// endKey revokes a key of the tenant; 404 where it has none of that id. Doing it again
// changes nothing.
func (s *Service) endKey(ctx context.Context, tenant, id uuid.UUID) error {
	return s.change(ctx, tenant, func(tx *postgres.Tx) error {
		tag, err := tx.Exec(ctx, revokeKeyStatement, tenant, id, event.Instant(s.deps.Now()))
		if err == nil && tag.RowsAffected() == 0 {
			err = web.NotFound()
		}
		return err
	})
}

const keysSinceQuery = `
select k.key_id, k.key_hash, k.tenant_id, t.status = 'suspended', k.scopes, k.expires_at, k.revoked_at, k.version
from api_keys k join tenants t on t.tenant_id = k.tenant_id
where k.version > $1 order by k.version`

// keysSince returns the keys that have changed since a version, for the other services.
func (s *Service) keysSince(ctx context.Context, since int64) ([]auth.Key, error) {
	rows, err := s.deps.Pool.Query(ctx, keysSinceQuery, since)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, auth.ScanKey)
}
