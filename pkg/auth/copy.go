package auth

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"
	"time"

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
var Schema = postgres.Schema{Name: "auth", FS: postgres.Embedded(migrations)}

const (
	// deafAfter is how long a copy may hear nothing before it no longer vouches for
	// what moves money or keys.
	deafAfter   = time.Minute
	followEvery = 250 * time.Millisecond // a watch that has ended starts anew
	serverEvery = 500 * time.Millisecond // is the server still the same?
	bucketEvery = 5 * time.Second        // is the bucket?
	answerIn    = 2 * time.Second        // a server that is well answers sooner
	// firstWithin is how long after the start whoever moves money or keys waits for the
	// copy to be current, and is refused only then.
	firstWithin = 5 * time.Second
)

// Copy is a service's own copy of every key: in memory, and in its database for the
// next start. It follows the bucket that the sales service fills.
type Copy struct {
	pool *pgxpool.Pool
	bus  *bus.Bus
	log  *zap.Logger
	now  func() time.Time

	mu      sync.RWMutex
	keys    map[string]Key
	heard   time.Time      // when the bucket was last known to be followed; zero: never by this process
	unsaved map[string]Key // those of keys that the database does not have yet
	learnt  chan struct{}  // wakes whoever saves

	starting <-chan struct{} // closed when the bucket is followed, or firstWithin is over
	started  func()
}

// NewCopy reads what the service's database remembers. That may be older than a
// revocation, however shortly the process was away: until Run follows the bucket for the
// first time the copy does not vouch for what moves money or keys.
func NewCopy(ctx context.Context, pool *pgxpool.Pool, b *bus.Bus, log *zap.Logger, now func() time.Time) (*Copy, error) {
	starting, started := context.WithTimeout(context.WithoutCancel(ctx), firstWithin)
	c := &Copy{
		pool: pool, bus: b, log: log, now: now, starting: starting.Done(), started: started,
		keys: map[string]Key{}, unsaved: map[string]Key{}, learnt: make(chan struct{}, 1),
	}
	noteUnheard()
	return c, c.load(ctx)
}

// Key returns the key that the credential names. Its error is a fault: unauthorized
// where the key is not known, unavailable where it would be admitted to a sensitive
// scope and a revocation may have gone unheard. Of a process that has just started, a
// sensitive scope waits until the copy is current, for as long as that takes with NATS
// within reach.
func (c *Copy) Key(ctx context.Context, credential Credential, scope Scope) (Key, error) {
	if sensitive.Has(scope) {
		select {
		case <-c.starting:
		case <-ctx.Done():
		}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	key, ok := c.keys[credential.KeyID]
	if !ok {
		return Key{}, errUnauthorized
	}
	now := c.now()
	if sensitive.Has(scope) && now.Sub(c.heard) > deafAfter && key.Admit(credential, scope, now) == nil {
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
		c.keys[key.ID] = key
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

// Run follows the bucket, and saves what it learns, until ctx ends, through every
// restart or loss of NATS and of the database.
func (c *Copy) Run(ctx context.Context) error {
	var saving sync.WaitGroup
	saving.Go(func() { c.saveAll(ctx) })
	defer saving.Wait()
	for ctx.Err() == nil {
		if err := c.follow(ctx); err != nil && ctx.Err() == nil && c.bus.Connected() {
			c.log.Debug("the key bucket is not followed", zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(followEvery):
		}
	}
	return nil
}

// follow takes every key that the bucket holds and then every change, until the
// server or the bucket is another one than it was. The watch itself may not notice.
func (c *Copy) follow(ctx context.Context) error {
	server := c.bus.ServerID()
	bucket, err := c.open(ctx)
	if err != nil {
		return err
	}
	created, err := createdAt(ctx, bucket)
	if err != nil {
		return err
	}
	watcher, err := bucket.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watch key bucket: %w", err)
	}
	defer endWatch(watcher)
	checkServer, checkBucket := time.NewTicker(serverEvery), time.NewTicker(bucketEvery)
	defer checkServer.Stop()
	defer checkBucket.Stop()
	current := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return errors.New("watch key bucket: ended")
			case entry == nil: // all that was there has been given
				current = true
				c.hear()
			default:
				c.learn(entry)
			}
		case <-checkServer.C:
			if c.bus.ServerID() != server {
				return errors.New("watch key bucket: the server changed")
			}
			if current {
				c.hear()
			}
		case <-checkBucket.C:
			if again, err := createdAt(ctx, bucket); err != nil || !again.Equal(created) {
				return errors.Join(errors.New("watch key bucket: it is another one"), err)
			}
		}
	}
}

func (c *Copy) open(ctx context.Context) (jetstream.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	bucket, err := c.bus.JetStream().KeyValue(ctx, bucketName)
	if err != nil {
		return nil, fmt.Errorf("open key bucket: %w", err)
	}
	return bucket, nil
}

// createdAt tells one bucket from another of the same name.
func createdAt(ctx context.Context, bucket jetstream.KeyValue) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	status, err := bucket.Status(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("inspect key bucket: %w", err)
	}
	stream, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return time.Time{}, fmt.Errorf("inspect key bucket: it is kept in %s", status.BackingStore())
	}
	return stream.StreamInfo().Created, nil
}

// hear notes that nothing was missed until now.
func (c *Copy) hear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = c.now()
	noteHeard(c.heard)
	c.started()
}

// endWatch stops a watcher, which blocks on updates that nobody takes.
func endWatch(watcher jetstream.KeyWatcher) {
	_ = watcher.Stop() // fails only where it has ended already
	go func() {
		for range watcher.Updates() {
		}
	}()
}

// learn takes a key over, unless a newer version of it is known. It only touches
// memory: a revocation must hold even while the database is away.
func (c *Copy) learn(entry jetstream.KeyValueEntry) {
	key, ok := readEntry(entry)
	if !ok {
		c.log.Error("the key bucket holds something that is no key", zap.String("key_id", entry.Key()))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys[key.ID].Version >= key.Version {
		return
	}
	c.keys[key.ID], c.unsaved[key.ID] = key, key
	select {
	case c.learnt <- struct{}{}:
	default: // whoever saves has been told and has not looked yet
	}
}
