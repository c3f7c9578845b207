package auth_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// patience is for what must happen, where the time that it takes is not the promise.
const patience = time.Minute

// clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is one NATS server, and one database of a service that keeps a copy.
type world struct {
	t     *testing.T
	nats  *testkit.NATSServer
	url   string
	pool  *pgxpool.Pool
	clock *clock
	log   *zap.Logger // of the copies
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return worldOn(t, testkit.Database(t, auth.Schema))
}

func worldOn(t *testing.T, databaseURL string) *world {
	t.Helper()
	pool, err := postgres.Open(t.Context(), databaseURL, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &world{t: t, nats: testkit.NATS(t), url: databaseURL, pool: pool, clock: &clock{now: time.Now().UTC()}, log: zap.NewNop()}
}

func (w *world) bus() *bus.Bus {
	w.t.Helper()
	b, err := bus.Connect(bus.Config{URL: w.nats.URL(), Name: w.t.Name()}, zap.NewNop())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Close)
	testkit.Eventually(w.t, patience, "the connection to NATS", b.Connected)
	return b
}

// bucket opens the bucket as another program would, and makes it where it is missing.
func (w *world) bucket() jetstream.KeyValue {
	w.t.Helper()
	bucket, err := w.bus().JetStream().CreateOrUpdateKeyValue(w.t.Context(), jetstream.KeyValueConfig{
		Bucket: "keys", Description: "API keys, the last state of each", History: 1, Storage: jetstream.FileStorage, Replicas: 1,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return bucket
}

// copyOf makes a copy that runs until the test ends or stop is called.
func (w *world) copyOf(b *bus.Bus) (c *auth.Copy, stop func()) {
	w.t.Helper()
	c, err := auth.NewCopy(w.t.Context(), w.pool, b, w.log, w.clock.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	return c, run(w.t, c.Run)
}

// announce runs an announcer until the test ends or stop is called.
func (w *world) announce(r *registry) (stop func()) {
	w.t.Helper()
	return run(w.t, auth.NewAnnouncer(w.bus(), zap.NewNop(), r.since).Run)
}

// run runs part in the background; stop, which may be called twice, waits for its end.
func run(t *testing.T, part func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("does not end")
		}
	})
	t.Cleanup(stop)
	return stop
}

// verdict is the code of the error that a caller with this key gets; "" if it is admitted.
func (w *world) verdict(c *auth.Copy, text string, scope auth.Scope) string {
	credential, ok := auth.Parse(text)
	if !ok {
		w.t.Fatalf("%q is no key", text)
	}
	key, err := c.Key(w.t.Context(), credential, scope)
	if err == nil {
		err = key.Admit(credential, scope, w.clock.Now())
	}
	switch f := fault.Of(err); {
	case err == nil:
		return ""
	case f == nil:
		return err.Error()
	default:
		return f.Code
	}
}

// eventually waits until a caller with this key gets that verdict.
func (w *world) eventually(c *auth.Copy, within time.Duration, text string, scope auth.Scope, want string) {
	w.t.Helper()
	testkit.Eventually(w.t, within, "the verdict "+want, func() bool { return w.verdict(c, text, scope) == want })
}

// saved waits until the service's database has this version of the key, or a later one.
func (w *world) saved(keyID string, version int64) {
	w.t.Helper()
	testkit.Eventually(w.t, patience, "the key in the database", func() bool { return w.savedVersion(keyID) >= version })
}

func (w *world) savedVersion(keyID string) (version int64) {
	err := w.pool.QueryRow(w.t.Context(), `select coalesce(max(version), 0) from known_keys where key_id = $1`, keyID).Scan(&version)
	if err != nil {
		return -1
	}
	return version
}

// registry stands for the sales service: it issues keys, and a change of one gives it
// the next version.
type registry struct {
	mu      sync.Mutex
	version int64
	keys    map[string]auth.Key
}

func newRegistry() *registry { return &registry{keys: map[string]auth.Key{}} }

func (r *registry) since(_ context.Context, version int64) (changed []auth.Key, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range r.keys {
		if key.Version > version {
			changed = append(changed, key)
		}
	}
	slices.SortFunc(changed, func(a, b auth.Key) int { return int(a.Version - b.Version) })
	return changed, nil
}

// issue makes a key and returns its text and its id.
func (r *registry) issue(t *testing.T, scopes ...auth.Scope) (text, id string) {
	t.Helper()
	text, key := makeKey(t, 0, scopes...)
	r.change(key.ID, func(k *auth.Key) { *k = key })
	return text, key.ID
}

func (r *registry) change(id string, change func(*auth.Key)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := r.keys[id]
	change(&key)
	r.version++
	key.Version = r.version
	r.keys[id] = key
}

func (r *registry) revoke(id string) {
	r.change(id, func(k *auth.Key) { k.RevokedAt = new(time.Now().UTC()) })
}

func makeKey(t *testing.T, version int64, scopes ...auth.Scope) (text string, key auth.Key) {
	t.Helper()
	text, id, hash, err := auth.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	if len(scopes) == 0 {
		scopes = auth.AllScopes
	}
	return text, auth.Key{ID: id, Hash: hash, TenantID: uuid.New(), Scopes: scopes, Version: version}
}
