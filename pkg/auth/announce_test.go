package auth_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/testkit"
)

func TestABucketIsRefilledAfterNATSWasWiped(t *testing.T) {
	w := newWorld(t)
	sales := newRegistry()
	w.announce(sales)
	_, first := sales.issue(t)
	second, secondID := sales.issue(t)
	sales.revoke(secondID)
	c, _ := w.copyOf(w.bus())
	w.eventually(c, patience, second, auth.SalesRead, "unauthorized")
	w.saved(first, 1)

	w.nats.Kill()
	w.nats.Wipe()
	w.nats.Start()

	bucket := w.bucket()
	testkit.Eventually(t, patience, "the refilled bucket", func() bool {
		return held(t, bucket, first) == 1 && held(t, bucket, secondID) == 3
	})
	third, _ := sales.issue(t)
	w.eventually(c, patience, third, auth.SalesRead, "") // the copy follows the new bucket
}

func TestTwoAnnouncersLeaveTheNewerVersionOfEveryKey(t *testing.T) {
	w := newWorld(t)
	const keys = 200
	one, other := newRegistry(), newRegistry()
	ids := make([]string, keys)
	for i := range keys {
		_, key := makeKey(t, 0)
		ids[i] = key.ID
		one.keys[key.ID], other.keys[key.ID] = withVersion(key, int64(1+i%2)), withVersion(key, int64(2-i%2))
	}
	bucket := w.bucket()
	w.announce(one)
	w.announce(other)
	testkit.Eventually(t, patience, "all keys, each in its newer version", func() bool {
		for _, id := range ids {
			if held(t, bucket, id) != 2 {
				return false
			}
		}
		return true
	})
	settled := w.settled(one, other)
	testkit.Eventually(t, patience, "the last word of both", settled)
	for _, id := range ids {
		if got := held(t, bucket, id); got != 2 {
			t.Errorf("in the end the bucket holds version %d", got)
		}
	}
}

// settled gives each registry another key; what it returns says whether both have
// been announced, and so everything that came before them.
func (w *world) settled(registries ...*registry) func() bool {
	bucket := w.bucket()
	var ids []string
	for _, r := range registries {
		r.mu.Lock()
		r.version = 10
		r.mu.Unlock()
		_, id := r.issue(w.t)
		ids = append(ids, id)
	}
	return func() bool {
		for _, id := range ids {
			if held(w.t, bucket, id) == 0 {
				return false
			}
		}
		return true
	}
}

func TestAnAnnouncerThatIsBehindChangesNothing(t *testing.T) {
	w := newWorld(t)
	bucket := w.bucket()
	_, key := makeKey(t, 7)
	key.RevokedAt = new(w.clock.Now())
	put(t, bucket, key)
	behind := newRegistry()
	behind.keys[key.ID] = withVersion(key, 6)
	w.announce(behind)
	testkit.Eventually(t, patience, "the announcer's work", w.settled(behind))
	if got := held(t, bucket, key.ID); got != 7 {
		t.Errorf("the bucket holds version %d, want 7", got)
	}
}

func TestAChangeThatCommitsLateIsStillAnnounced(t *testing.T) {
	w := newWorld(t)
	sales := newRegistry()
	sales.version = 500
	w.announce(sales)
	bucket := w.bucket()
	_, id := sales.issue(t)
	testkit.Eventually(t, patience, "the first key", func() bool { return held(t, bucket, id) == 501 })

	_, late := makeKey(t, 499) // its version was drawn before, and it commits only now
	sales.mu.Lock()
	sales.keys[late.ID] = late
	sales.mu.Unlock()

	testkit.Eventually(t, soon, "the late key", func() bool { return held(t, bucket, late.ID) == 499 })
}

func TestAnAnnouncerGoesOnAfterItsDatabaseWasAway(t *testing.T) {
	w := newWorld(t)
	sales := newRegistry()
	var away atomic.Bool
	var asked atomic.Int64
	run(t, auth.NewAnnouncer(w.bus(), zap.NewNop(), func(ctx context.Context, since int64) ([]auth.Key, error) {
		if asked.Add(1); away.Load() {
			return nil, errors.New("connection refused")
		}
		return sales.since(ctx, since)
	}).Run)
	bucket := w.bucket()
	_, first := sales.issue(t)
	testkit.Eventually(t, patience, "the first key", func() bool { return held(t, bucket, first) == 1 })

	away.Store(true)
	sales.revoke(first)
	before := asked.Load()
	testkit.Eventually(t, patience, "two failures", func() bool { return asked.Load() > before+1 })
	away.Store(false)

	testkit.Eventually(t, patience, "the revocation", func() bool { return held(t, bucket, first) == 2 })
}

func withVersion(key auth.Key, version int64) auth.Key {
	key.Version = version
	return key
}
