package auth

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the table of a service that keeps a copy of the keys.
var Schema = postgres.Schema{Name: "auth", FS: sub(migrations)}

func sub(files embed.FS) fs.FS {
	root, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return root
}

// deafAfter is how long a copy may hear nothing before it no longer vouches for
// what moves money or keys.
const deafAfter = time.Minute

// Copy is a service's own copy of every key: in memory, and in its database for the
// next start. It follows the bucket that the sales service fills.
type Copy struct {
	pool *pgxpool.Pool
	bus  *bus.Bus
	log  *zap.Logger
	now  func() time.Time

	mu     sync.RWMutex
	keys   map[string]Key
	heard  time.Time        // when the bucket was last known to be followed
	stored map[string]int64 // the version that the database has of each key
}

// NewCopy reads what the service's database remembers.
func NewCopy(ctx context.Context, pool *pgxpool.Pool, b *bus.Bus, log *zap.Logger, now func() time.Time) (*Copy, error) {
	c := &Copy{pool: pool, bus: b, log: log, now: now, heard: now(), keys: map[string]Key{}, stored: map[string]int64{}}
	return c, c.load(ctx)
}

// Key returns the key that the credential names. Its error is a fault: unauthorized
// where the key is not known, unavailable where it is to be used for a sensitive
// scope and a revocation may have gone unheard.
func (c *Copy) Key(_ context.Context, credential Credential, scope Scope) (Key, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	key, ok := c.keys[credential.KeyID]
	if !ok {
		return Key{}, errUnauthorized
	}
	if sensitive.Has(scope) && c.now().Sub(c.heard) > deafAfter {
		return Key{}, fault.New(fault.Unavailable, "unavailable", "keys cannot be checked at the moment; repeat the same call later")
	}
	return key, nil
}

const loadQuery = `
select key_id, key_hash, tenant_id, suspended, scopes, expires_at, revoked_at, version from known_keys`

func (c *Copy) load(ctx context.Context) error {
	rows, err := c.pool.Query(ctx, loadQuery)
	if err != nil {
		return fmt.Errorf("read known keys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, ScanKey)
	if err != nil {
		return fmt.Errorf("read known keys: %w", err)
	}
	for _, key := range keys {
		c.keys[key.ID], c.stored[key.ID] = key, key.Version
	}
	return nil
}

// ScanKey reads a row of key_id, key_hash, tenant_id, suspended, scopes, expires_at,
// revoked_at, version.
func ScanKey(row pgx.CollectableRow) (key Key, err error) {
	var hash []byte
	var scopes []string
	err = row.Scan(&key.ID, &hash, &key.TenantID, &key.Suspended, &scopes, &key.ExpiresAt, &key.RevokedAt, &key.Version)
	copy(key.Hash[:], hash)
	key.Scopes = ScopesOf(scopes)
	return key, err
}

// Run follows the bucket until ctx ends, through every restart or loss of the server.
func (c *Copy) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.follow(ctx); err != nil && ctx.Err() == nil && c.bus.Connected() {
			c.log.Debug("key bucket is not there yet", zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
	return nil
}

// follow takes every key that the bucket holds and then every change, until the
// server is another one than it was.
func (c *Copy) follow(ctx context.Context) error {
	server := c.bus.ServerID()
	bucket, err := c.bus.JetStream().KeyValue(ctx, bucketName)
	if err != nil {
		return fmt.Errorf("open key bucket: %w", err)
	}
	watcher, err := bucket.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watch key bucket: %w", err)
	}
	defer watcher.Stop()
	alive := time.NewTicker(500 * time.Millisecond)
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, ok := <-watcher.Updates():
			if !ok {
				return fmt.Errorf("watch key bucket: ended")
			}
			if entry != nil { // nil: all that was there has been given
				if err := c.learn(ctx, entry); err != nil {
					return err
				}
			}
		case <-alive.C:
			if c.bus.ServerID() != server {
				return fmt.Errorf("watch key bucket: the server changed")
			}
			c.mu.Lock()
			c.heard = c.now()
			c.mu.Unlock()
		}
	}
}

const learnStatement = `
insert into known_keys (key_id, key_hash, tenant_id, suspended, scopes, expires_at, revoked_at, version)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (key_id) do update
set key_hash = excluded.key_hash, tenant_id = excluded.tenant_id, suspended = excluded.suspended, scopes = excluded.scopes,
    expires_at = excluded.expires_at, revoked_at = excluded.revoked_at, version = excluded.version
where known_keys.version < excluded.version`

// learn takes a key over, unless a newer version of it is known. Memory first: a
// revocation must hold even while the database is away.
func (c *Copy) learn(ctx context.Context, entry jetstream.KeyValueEntry) error {
	var key Key
	if err := json.Unmarshal(entry.Value(), &key); err != nil || key.ID == "" || key.TenantID == uuid.Nil {
		c.log.Error("the key bucket holds something that is no key", zap.String("key_id", entry.Key()))
		return nil
	}
	c.mu.Lock()
	if c.keys[key.ID].Version < key.Version {
		c.keys[key.ID] = key
	}
	stored := c.stored[key.ID] >= key.Version
	c.mu.Unlock()
	if stored {
		return nil
	}
	_, err := c.pool.Exec(ctx, learnStatement, key.ID, key.Hash[:], key.TenantID, key.Suspended, key.Scopes.Strings(), key.ExpiresAt, key.RevokedAt, key.Version)
	if err != nil {
		return fmt.Errorf("remember key %s: %w", key.ID, err) // it is told again when the watch starts anew
	}
	c.mu.Lock()
	c.stored[key.ID] = key.Version
	c.mu.Unlock()
	return nil
}
