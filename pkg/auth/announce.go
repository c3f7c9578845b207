package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
)

const (
	bucketName    = "keys"
	announceEvery = 200 * time.Millisecond
	refillEvery   = 30 * time.Second
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
	told    map[string]int64
	latest  int64
}

// NewAnnouncer makes an announcer of what changed returns.
func NewAnnouncer(b *bus.Bus, log *zap.Logger, changed func(ctx context.Context, since int64) ([]Key, error)) *Announcer {
	return &Announcer{bus: b, log: log, changed: changed}
}

// Run announces changes until ctx ends, and everything again from time to time and
// whenever the server has changed, since that may have forgotten.
func (a *Announcer) Run(ctx context.Context) error {
	var server string
	var filled time.Time
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		if id := a.bus.ServerID(); id != "" {
			if id != server || time.Since(filled) > refillEvery {
				a.told, a.latest, filled = map[string]int64{}, 0, time.Now()
			}
			err := a.announce(ctx)
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

func (a *Announcer) announce(ctx context.Context) error {
	keys, err := a.changed(ctx, max(0, a.latest-versionOverlap))
	if err != nil {
		return fmt.Errorf("read changed keys: %w", err)
	}
	var bucket jetstream.KeyValue
	for _, key := range keys {
		if a.told[key.ID] >= key.Version {
			continue
		}
		if bucket == nil {
			if bucket, err = a.bucket(ctx); err != nil {
				return err
			}
		}
		if err := a.put(ctx, bucket, key); err != nil {
			return err
		}
		a.told[key.ID] = key.Version
		a.latest = max(a.latest, key.Version)
	}
	return nil
}

func (a *Announcer) bucket(ctx context.Context) (jetstream.KeyValue, error) {
	bucket, err := a.bus.JetStream().CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucketName, Description: "API keys, the last state of each", History: 1,
		Storage: jetstream.FileStorage, Replicas: a.bus.Replicas(),
	})
	if err != nil {
		return nil, fmt.Errorf("create key bucket: %w", err)
	}
	return bucket, nil
}

// put writes the key unless the bucket holds a newer version; two replicas that
// announce different versions leave the newer one.
func (a *Announcer) put(ctx context.Context, bucket jetstream.KeyValue, key Key) error {
	value, err := json.Marshal(key)
	if err != nil {
		return fmt.Errorf("write key %s: %w", key.ID, err)
	}
	for {
		held, err := bucket.Get(ctx, key.ID)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			_, err = bucket.Create(ctx, key.ID, value)
		case err == nil:
			var known Key
			if json.Unmarshal(held.Value(), &known) == nil && known.Version >= key.Version {
				return nil
			}
			_, err = bucket.Update(ctx, key.ID, value, held.Revision())
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
