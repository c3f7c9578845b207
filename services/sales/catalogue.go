package sales

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
)

// catalogue answers from memory what a sale or a conversion needs to know: whose key
// it is, and at which terms the partner sells.
//
// What it remembers of a tenant was read at one catalogue_version. The statement
// that records reads the version again, so that what was decided on a memory that has
// grown old is decided anew. Only consent is remembered, never a refusal: a
// refusal is always decided on what the database says at that moment.
type catalogue struct {
	deps service.Deps

	mu      sync.RWMutex
	tenants map[uuid.UUID]*snapshot
	owners  map[string]uuid.UUID // by key id
}

// snapshot is what is remembered of one tenant as of one version.
type snapshot struct {
	version int64
	keys    map[string]rememberedKey
	offers  map[offerKey]offer
}

type rememberedKey struct {
	auth.Key
	readAt time.Time
}

// offerKey is what a report names.
type offerKey struct {
	referralCode string
	campaignID   uuid.UUID
	planID       uuid.NullUUID // a conversion may name none
}

// offer are the terms at which a partner sells: who it is, between which moments, and,
// where a plan is named, what it pays.
type offer struct {
	partnerID        uuid.UUID
	startsAt, endsAt *time.Time
	pct              money.Pct
	holdDays         int
	conversion       *money.BRL // nil: a conversion earns nothing
}

const (
	// keyFreshFor is how long a key is trusted without being read again. It bounds how
	// long a revocation on another replica goes unnoticed where no sale is recorded.
	keyFreshFor = time.Second
	// snapshotLimit bounds the memory of one tenant's offers.
	snapshotLimit = 100_000
)

func newCatalogue(deps service.Deps) *catalogue {
	return &catalogue{deps: deps, tenants: map[uuid.UUID]*snapshot{}, owners: map[string]uuid.UUID{}}
}

// Key returns the key that the credential names. Unknown is a fault of kind
// Unauthorized. Where the key was read from the database for it and admits the
// credential, that is also noted as a use of the key, at most once a minute.
func (c *catalogue) Key(ctx context.Context, credential auth.Credential, scope auth.Scope) (auth.Key, error) {
	now := c.deps.Now()
	if key, _, ok := c.recall(credential.KeyID); ok && now.Sub(key.readAt) < keyFreshFor && key.Admit(credential, scope, now) == nil {
		return key.Key, nil
	}
	key, unnoted, err := c.readKey(ctx, credential.KeyID)
	if err != nil || !unnoted || key.Admit(credential, scope, now) != nil {
		return key, err
	}
	return key, c.noteUse(ctx, key.TenantID, key.ID, now)
}

// recall returns what is remembered of a key, and the version of its tenant at which
// that was true.
func (c *catalogue) recall(keyID string) (rememberedKey, int64, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := c.tenants[c.owners[keyID]]
	if s == nil {
		return rememberedKey{}, 0, false
	}
	key, ok := s.keys[keyID]
	return key, s.version, ok
}

const readKeyQuery = `
select k.key_id, k.key_hash, k.tenant_id, t.status = 'suspended', k.scopes, k.expires_at, k.revoked_at, k.version, t.catalogue_version,
       k.last_used_at is null or k.last_used_at < @now::timestamptz - interval '1 minute'
from api_keys k join tenants t on t.tenant_id = k.tenant_id
where k.key_id = @key_id`

// readKey reads the key from the database and remembers it; unnoted tells whether a
// use of it is due to be noted.
func (c *catalogue) readKey(ctx context.Context, keyID string) (key auth.Key, unnoted bool, err error) {
	var hash []byte
	var scopes []string
	var version int64
	now := c.deps.Now()
	err = c.deps.Pool.QueryRow(ctx, readKeyQuery, pgx.NamedArgs{"key_id": keyID, "now": now}).Scan(
		&key.ID, &hash, &key.TenantID, &key.Suspended, &scopes, &key.ExpiresAt, &key.RevokedAt, &key.Version, &version, &unnoted)
	if postgres.Absent(err) {
		return key, false, auth.Unauthorized()
	}
	if err != nil {
		return key, false, fmt.Errorf("read key: %w", postgres.Explain(err))
	}
	copy(key.Hash[:], hash)
	key.Scopes = auth.ScopesOf(scopes)
	c.remember(key.TenantID, version, func(s *snapshot) {
		s.keys[keyID], c.owners[keyID] = rememberedKey{key, now}, key.TenantID
	})
	return key, unnoted, nil
}

// A use that is lost with the server is noted at the next one: it need not wait for the
// disk, and least of all for a standby.
const noteUseStatement = `
update api_keys set last_used_at = @now
from (select set_config('synchronous_commit', 'off', true)) as relaxed
where tenant_id = @tenant_id and key_id = @key_id and (last_used_at is null or last_used_at < @now::timestamptz - interval '1 minute')`

func (c *catalogue) noteUse(ctx context.Context, tenant uuid.UUID, keyID string, now time.Time) error {
	_, err := c.deps.Pool.Exec(ctx, noteUseStatement, pgx.NamedArgs{"tenant_id": tenant, "key_id": keyID, "now": now})
	if err != nil {
		return fmt.Errorf("note use of key: %w", postgres.Explain(err))
	}
	return nil
}

// offer returns the remembered terms and the version at which they held.
func (c *catalogue) offer(tenant uuid.UUID, key offerKey) (offer, int64, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := c.tenants[tenant]
	if s == nil {
		return offer{}, 0, false
	}
	o, ok := s.offers[key]
	return o, s.version, ok
}

// remember puts something that was read at version into the tenant's snapshot. What
// is older than the snapshot is not kept; what is newer starts a new one.
func (c *catalogue) remember(tenant uuid.UUID, version int64, put func(*snapshot)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.tenants[tenant]
	switch {
	case s != nil && s.version > version:
		return
	case s == nil || s.version < version || len(s.offers) >= snapshotLimit:
		s = &snapshot{version: version, keys: map[string]rememberedKey{}, offers: map[offerKey]offer{}}
		c.tenants[tenant] = s
	}
	put(s)
}

// outdated forgets the tenant's snapshot if it is of that version or an older one.
func (c *catalogue) outdated(tenant uuid.UUID, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.tenants[tenant]; s != nil && s.version <= version {
		delete(c.tenants, tenant)
	}
}

// forget drops the tenant's snapshot after its catalogue was changed here.
func (c *catalogue) forget(tenant uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tenants, tenant)
}
