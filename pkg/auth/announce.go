package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
)

const (
	bucketName    = "keys"
	announceEvery = 200 * time.Millisecond
	refillEvery   = 30 * time.Second
	lookWithin    = 10 * time.Second
	// versionOverlap covers transactions that drew a version early and committed late.
	versionOverlap = 1000
)

// Announcer tells every other service which keys there are. Only the sales service,
// which issues them, runs one; any number of its replicas may.
type Announcer struct {
	bus *bus.Bus
	log *zap.Logger
	// changed returns the keys whose version is above since, of every tenant.
	changed func(ctx context.Context, since int64) ([]Key, error)

	bucket jetstream.KeyValue
	told   map[string]int64 // the version that the bucket is known to hold of each key
	latest int64            // the highest of them
}

// NewAnnouncer makes an announcer of what changed returns.
func NewAnnouncer(b *bus.Bus, log *zap.Logger, changed func(ctx context.Context, since int64) ([]Key, error)) *Announcer {
	return &Announcer{bus: b, log: log, changed: changed}
}

// Run announces changes until ctx ends. From time to time, and whenever the server
// has changed, it looks at what the bucket holds, since the server may have forgotten,
// and announces again what is missing.
func (a *Announcer) Run(ctx context.Context) error {
	var server string
	var looked time.Time
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		if id := a.bus.ServerID(); id != "" {
			var err error
			if id != server || time.Since(looked) > refillEvery {
				looked = time.Now()
				err = a.look(ctx)
			}
			if err == nil {
				err = a.announce(ctx)
			}
			if err != nil && ctx.Err() == nil {
				a.log.Warn("cannot announce keys yet", zap.Error(err))
				id = ""
			}
			server = id
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look opens the bucket, or makes it, and reads which version of each key it holds:
// all at once, since asking for one key after the other would delay a revocation.
func (a *Announcer) look(ctx context.Context) error {
	bucket, err := a.bus.JetStream().CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucketName, Description: "API keys, the last state of each", History: 1,
		Storage: jetstream.FileStorage, Replicas: a.bus.Replicas(),
	})
	if err != nil {
		return fmt.Errorf("create key bucket: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	watcher, err := bucket.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("read key bucket: %w", err)
	}
	defer endWatch(watcher)
	a.bucket, a.told, a.latest = bucket, map[string]int64{}, 0
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("read key bucket: %w", ctx.Err())
		case entry, ok := <-watcher.Updates():
			if !ok {
				return errors.New("read key bucket: ended")
			}
			if entry == nil { // all that was there has been given
				return nil
			}
			if key, ok := readEntry(entry); ok {
				a.told[key.ID] = key.Version
			}
		}
	}
}

func (a *Announcer) announce(ctx context.Context) error {
	keys, err := a.changed(ctx, max(0, a.latest-versionOverlap))
	if err != nil {
		return fmt.Errorf("read changed keys: %w", err)
	}
	for _, key := range keys {
		if a.told[key.ID] < key.Version {
			if err := a.put(ctx, key); err != nil {
				return err
			}
			a.told[key.ID] = key.Version
		}
		a.latest = max(a.latest, key.Version)
	}
	return nil
}

// put writes the key unless the bucket holds a newer version; two replicas that
// announce different versions leave the newer one.
func (a *Announcer) put(ctx context.Context, key Key) error {
	value, err := json.Marshal(key)
	if err != nil {
		return fmt.Errorf("write key %s: %w", key.ID, err)
	}
	for {
		held, err := a.bucket.Get(ctx, key.ID)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			_, err = a.bucket.Create(ctx, key.ID, value)
		case err == nil:
			if known, ok := readEntry(held); ok && known.Version >= key.Version {
				return nil
			}
			_, err = a.bucket.Update(ctx, key.ID, value, held.Revision())
		}
		if err == nil {
			return nil
		}
		var api *jetstream.APIError
		if raced := errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence; !raced {
			return fmt.Errorf("announce key %s: %w", key.ID, err)
		}
	}
}

// readEntry reads a key from the bucket; false where the entry is none.
func readEntry(entry jetstream.KeyValueEntry) (key Key, ok bool) {
	err := json.Unmarshal(entry.Value(), &key)
	return key, err == nil && key.ID == entry.Key() && key.TenantID != uuid.Nil
}
