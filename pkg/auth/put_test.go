package auth

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/testkit"
)

// contested is a bucket to which somebody else writes right after it was first read.
type contested struct {
	jetstream.KeyValue
	t     *testing.T
	other *Key
	reads int
}

func (c *contested) Get(ctx context.Context, id string) (jetstream.KeyValueEntry, error) {
	c.reads++
	entry, err := c.KeyValue.Get(ctx, id)
	if c.other != nil {
		c.write(*c.other)
		c.other = nil
	}
	return entry, err
}

func (c *contested) write(key Key) {
	c.t.Helper()
	raw, err := json.Marshal(key)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.Put(c.t.Context(), key.ID, raw); err != nil {
		c.t.Fatal(err)
	}
}

func connect(t *testing.T) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(bus.Config{URL: testkit.NATS(t).URL(), Name: t.Name()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	testkit.Eventually(t, 20*time.Second, "the connection to NATS", b.Connected)
	return b
}

func TestAVersionThatAppearsBetweenReadingAndWritingIsHeeded(t *testing.T) {
	t.Parallel()
	bucket, err := connect(t).JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucketName})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name              string
		held, other, ours int64
		want              int64
	}{
		{"nothing, then a newer one", 0, 9, 5, 9},
		{"nothing, then an older one", 0, 3, 5, 5},
		{"an older one, then a newer one", 2, 9, 5, 9},
		{"an older one, then another older one", 2, 3, 5, 5},
	} {
		key := Key{ID: uuid.NewString()[:8], TenantID: uuid.New()}
		version := func(v int64) Key { key.Version = v; return key }
		race := &contested{KeyValue: bucket, t: t}
		if c.held > 0 {
			race.write(version(c.held))
		}
		other := version(c.other)
		race.other = &other
		if err := (&Announcer{bucket: race}).put(t.Context(), version(c.ours)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		entry, err := bucket.Get(t.Context(), key.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := readEntry(entry); !ok || got.Version != c.want {
			t.Errorf("%s: the bucket holds version %d, want %d", c.name, got.Version, c.want)
		}
	}
}

func TestARefillAsksForNoKeyThatTheBucketHasAlready(t *testing.T) {
	t.Parallel()
	b := connect(t)
	var keys []Key
	for range 50 {
		keys = append(keys, Key{ID: uuid.NewString()[:8], TenantID: uuid.New(), Version: 1})
	}
	changed := func(context.Context, int64) ([]Key, error) { return keys, nil }
	announce := func(a *Announcer) (reads int) {
		t.Helper()
		if err := a.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		count := &contested{KeyValue: a.bucket, t: t}
		a.bucket = count
		if err := a.announce(t.Context()); err != nil {
			t.Fatal(err)
		}
		return count.reads
	}
	if got := announce(NewAnnouncer(b, zap.NewNop(), changed)); got != len(keys) {
		t.Errorf("an empty bucket was read %d times, want %d", got, len(keys))
	}
	keys[7].Version = 2
	again := NewAnnouncer(b, zap.NewNop(), changed)
	for i, want := range []int{1, 0} {
		if got := announce(again); got != want {
			t.Errorf("look %d: the bucket was read %d times, want %d", i, got, want)
		}
	}
}
