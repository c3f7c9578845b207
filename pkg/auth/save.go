package auth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
)

const (
	saveEvery  = time.Second // what could not be saved is tried again
	saveWithin = 5 * time.Second
)

// saveAll saves what is learnt until ctx ends.
func (c *Copy) saveAll(ctx context.Context) {
	again := time.NewTicker(saveEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.learnt:
		case <-again.C:
		}
		if err := c.save(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("cannot save keys yet", zap.Error(err))
		}
	}
}

const saveStatement = `
insert into known_keys (key_id, key_hash, tenant_id, suspended, scopes, expires_at, revoked_at, version)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (key_id) do update
set key_hash = excluded.key_hash, tenant_id = excluded.tenant_id, suspended = excluded.suspended, scopes = excluded.scopes,
    expires_at = excluded.expires_at, revoked_at = excluded.revoked_at, version = excluded.version
where known_keys.version < excluded.version`

// save writes what the database does not have yet. Its error means that the database
// is away; a key that the database refuses is given up, so that it cannot hold up others.
func (c *Copy) save(ctx context.Context) error {
	c.mu.RLock()
	unsaved := slices.Collect(maps.Values(c.unsaved))
	c.mu.RUnlock()
	for _, key := range unsaved {
		err := c.saveKey(ctx, key)
		if fault.KindOf(err) == fault.Unavailable {
			return err
		}
		if err != nil {
			c.log.Error("a key cannot be saved", zap.String("key_id", key.ID), zap.Error(err))
		}
		c.mu.Lock()
		if c.unsaved[key.ID].Version == key.Version {
			delete(c.unsaved, key.ID)
		}
		c.mu.Unlock()
	}
	return nil
}

func (c *Copy) saveKey(ctx context.Context, key Key) error {
	ctx, cancel := context.WithTimeout(ctx, saveWithin)
	defer cancel()
	_, err := c.pool.Exec(ctx, saveStatement, key.ID, key.Hash[:], key.TenantID, key.Suspended, key.Scopes.Strings(), key.ExpiresAt, key.RevokedAt, key.Version)
	if err != nil {
		return fmt.Errorf("save key %s: %w", key.ID, postgres.Explain(err))
	}
	return nil
}
