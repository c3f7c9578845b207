package auth_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// soon is how long a change may take to be known where the machine does much else at the
// same time. It is promised within a second, and without its announcement it would be
// known after half a minute at the earliest.
const soon = 20 * time.Second

func TestEveryChangeOfAKeyIsKnownElsewhereWithinASecond(t *testing.T) {
	w := newWorld(t)
	sales := newRegistry()
	w.announce(sales)
	c, _ := w.copyOf(w.bus())
	first, _ := sales.issue(t)
	w.eventually(c, patience, first, auth.SalesRead, "") // everything runs

	text, id := sales.issue(t, auth.SalesRead)
	w.eventually(c, soon, text, auth.SalesRead, "")
	if got := w.verdict(c, text, auth.GoalsRead); got != "insufficient_scope" {
		t.Errorf("a scope that it lacks: %q", got)
	}

	sales.change(id, func(k *auth.Key) { k.Suspended = true })
	w.eventually(c, soon, text, auth.SalesRead, "tenant_suspended")
	sales.change(id, func(k *auth.Key) { k.Suspended = false })
	w.eventually(c, soon, text, auth.SalesRead, "")

	sales.change(id, func(k *auth.Key) { k.ExpiresAt = new(w.clock.Now()) })
	w.eventually(c, soon, text, auth.SalesRead, "unauthorized")
	sales.change(id, func(k *auth.Key) { k.ExpiresAt = new(w.clock.Now().Add(time.Hour)) })
	w.eventually(c, soon, text, auth.SalesRead, "")

	sales.revoke(id)
	w.eventually(c, soon, text, auth.SalesRead, "unauthorized")
	if got := w.verdict(c, first, auth.SalesRead); got != "" {
		t.Errorf("another key: %q", got)
	}
}

func TestACopyThatStartsWithoutNATSKnowsTheKeysFromItsDatabase(t *testing.T) {
	w := newWorld(t)
	sales := newRegistry()
	stopAnnouncing := w.announce(sales)
	good, goodID := sales.issue(t, auth.SalesRead, auth.GoalsWrite)
	bad, badID := sales.issue(t)
	expires := w.clock.Now().Add(time.Minute).Truncate(time.Microsecond)
	sales.change(goodID, func(k *auth.Key) { k.ExpiresAt = &expires })
	sales.revoke(badID)
	_, stop := w.copyOf(w.bus())
	w.saved(goodID, 3)
	w.saved(badID, 4)
	stop()
	stopAnnouncing()
	b := w.bus()
	w.nats.Kill()

	c, _ := w.copyOf(b)

	credential, _ := auth.Parse(good)
	key, err := c.Key(t.Context(), credential, auth.SalesRead)
	if err != nil {
		t.Fatal(err)
	}
	sales.mu.Lock()
	want := sales.keys[goodID]
	sales.mu.Unlock()
	if got, want := asJSON(t, key), asJSON(t, want); got != want {
		t.Errorf("the key is remembered as %s, want %s", got, want)
	}
	if got := w.verdict(c, bad, auth.SalesRead); got != "unauthorized" {
		t.Errorf("the revoked key: %q", got)
	}
	w.clock.forward(time.Minute)
	if got := w.verdict(c, good, auth.SalesRead); got != "unauthorized" {
		t.Errorf("when it has expired: %q", got)
	}
}

func TestAnOlderVersionNeverReplacesANewerOne(t *testing.T) {
	w := newWorld(t)
	bucket := w.bucket()
	c, _ := w.copyOf(w.bus())

	text, key := makeKey(t, 5)
	key.RevokedAt = new(w.clock.Now())
	put(t, bucket, key)
	w.eventually(c, patience, text, auth.SalesRead, "unauthorized")
	w.saved(key.ID, 5)

	// What another replica has saved in the same database, before this one hears of it.
	ahead, aheadKey := makeKey(t, 9)
	if _, err := w.pool.Exec(t.Context(), `insert into known_keys values ($1, $2, $3, false, '{}', null, now(), 9)`,
		aheadKey.ID, aheadKey.Hash[:], aheadKey.TenantID); err != nil {
		t.Fatal(err)
	}
	key.RevokedAt, key.Version, aheadKey.Version = nil, 4, 8
	put(t, bucket, key)
	put(t, bucket, aheadKey)
	last, lastKey := makeKey(t, 1)
	put(t, bucket, lastKey)
	w.eventually(c, patience, last, auth.SalesRead, "")
	w.saved(lastKey.ID, 1)
	testkit.Eventually(t, patience, "the other replica's key", func() bool { return w.verdict(c, ahead, auth.SalesRead) == "" })

	if got := w.verdict(c, text, auth.SalesRead); got != "unauthorized" {
		t.Errorf("in memory the older version holds: %q", got)
	}
	if got := w.savedVersion(key.ID); got != 5 {
		t.Errorf("the database has version %d, want 5", got)
	}
	w.restartedKnows(text, "unauthorized")
	w.restartedKnows(ahead, "unauthorized")
}

// restartedKnows checks the verdict of a copy that has heard nothing yet.
func (w *world) restartedKnows(text, want string) {
	w.t.Helper()
	c, err := auth.NewCopy(w.t.Context(), w.pool, w.bus(), zap.NewNop(), w.clock.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	if got := w.verdict(c, text, auth.SalesRead); got != want {
		w.t.Errorf("after a restart: %q, want %q", got, want)
	}
}

func TestRevocationsHoldWhileTheDatabaseIsAwayAndAreSavedLater(t *testing.T) {
	t.Parallel()
	server := testkit.Postgres(t)
	if err := server.CreateDatabase(t.Context(), "keys"); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), server.URL("keys"), auth.Schema); err != nil {
		t.Fatal(err)
	}
	w := worldOn(t, server.URL("keys"))
	sales := newRegistry()
	w.announce(sales)
	one, oneID := sales.issue(t)
	other, otherID := sales.issue(t)
	c, _ := w.copyOf(w.bus())
	w.saved(oneID, 1)
	w.saved(otherID, 2)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}

	sales.revoke(oneID)
	sales.revoke(otherID)
	w.eventually(c, patience, one, auth.SalesRead, "unauthorized")
	w.eventually(c, patience, other, auth.SalesRead, "unauthorized")
	latest, _ := sales.issue(t)
	w.eventually(c, patience, latest, auth.SalesRead, "")

	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.saved(oneID, 3)
	w.saved(otherID, 4)
	w.restartedKnows(one, "unauthorized")
	w.restartedKnows(other, "unauthorized")
}

func TestGarbageInTheBucketIsSurvived(t *testing.T) {
	w := newWorld(t)
	core, logs := observer.New(zap.ErrorLevel)
	w.log = zap.New(core)
	bucket := w.bucket()
	c, _ := w.copyOf(w.bus())
	_, victim := makeKey(t, 1)
	_, ownerless := makeKey(t, 1)
	ownerless.TenantID = [16]byte{}
	_, poisoned := makeKey(t, 1)
	poisoned.Scopes = auth.Scopes{"a\x00b"} // no text column takes this
	impostorText, impostor := makeKey(t, 1<<62)
	for name, value := range map[string][]byte{
		"noise": {0, 1, 2, 255}, "empty": {}, "null": []byte("null"), "list": []byte("[1]"), "object": []byte("{}"),
		"half": []byte(`{"key_id":"half","version":`), "types": []byte(`{"key_id":7,"version":"x"}`),
		victim.ID:    []byte(asJSON(t, impostor)), // one key under the name of another
		ownerless.ID: []byte(asJSON(t, ownerless)),
		poisoned.ID:  []byte(asJSON(t, poisoned)),
	} {
		if _, err := bucket.Put(t.Context(), name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := bucket.Delete(t.Context(), "noise"); err != nil {
		t.Fatal(err)
	}

	good, key := makeKey(t, 1)
	put(t, bucket, key)
	w.eventually(c, patience, good, auth.SalesRead, "")
	w.saved(key.ID, 1)
	testkit.Eventually(t, patience, "a word about the key that the database refuses", func() bool {
		return logs.FilterMessage("a key cannot be saved").FilterField(zap.String("key_id", poisoned.ID)).Len() == 1
	})
	if got := logs.FilterMessage("the key bucket holds something that is no key").FilterField(zap.String("key_id", "half")).Len(); got != 1 {
		t.Errorf("%d words about what is no key", got)
	}
	if got := w.verdict(c, impostorText, auth.SalesRead); got != "unauthorized" {
		t.Errorf("a key under another's name: %q", got)
	}

	sales := newRegistry()
	sales.keys[victim.ID] = victim
	w.announce(sales)
	testkit.Eventually(t, patience, "the mended entry", func() bool { return held(t, bucket, victim.ID) == 1 })
	w.saved(victim.ID, 1)
}

func TestABucketThatWasDeletedAndMadeAnewIsFollowed(t *testing.T) {
	w := newWorld(t)
	bucket := w.bucket()
	c, _ := w.copyOf(w.bus())
	text, key := makeKey(t, 1)
	put(t, bucket, key)
	w.eventually(c, patience, text, auth.SalesRead, "")

	if err := w.bus().JetStream().DeleteKeyValue(t.Context(), "keys"); err != nil {
		t.Fatal(err)
	}
	key.Version, key.RevokedAt = 2, new(w.clock.Now())
	put(t, w.bucket(), key)

	w.eventually(c, patience, text, auth.SalesRead, "unauthorized")
}

func TestACopyCannotStartWithoutItsTable(t *testing.T) {
	t.Parallel()
	w := worldOn(t, testkit.Database(t))
	if _, err := auth.NewCopy(t.Context(), w.pool, w.bus(), zap.NewNop(), w.clock.Now); err == nil {
		t.Error("it starts and would admit nobody")
	}
}

func put(t *testing.T, bucket jetstream.KeyValue, key auth.Key) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := bucket.Put(ctx, key.ID, []byte(asJSON(t, key))); err != nil {
		t.Fatal(err)
	}
}

// held is the version that the bucket holds of a key; 0 where it holds none.
func held(t *testing.T, bucket jetstream.KeyValue, id string) int64 {
	t.Helper()
	entry, err := bucket.Get(t.Context(), id)
	if err != nil {
		return 0
	}
	var key auth.Key
	if err := json.Unmarshal(entry.Value(), &key); err != nil || key.ID != id {
		return 0
	}
	return key.Version
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
