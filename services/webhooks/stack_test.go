package webhooks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(workerVariable); url != "" {
		runWorker(url)
		return
	}
	testkit.Main(m)
}

const (
	soon     = time.Minute // for what takes milliseconds on an idle machine
	testKey  = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	otherKey = "b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXItMDE="
	nowhere  = "nats://127.0.0.1:1" // a service works without NATS
)

// lenient lets webhooks go to receivers on this machine.
var lenient = Config{SecretKey: testKey, AllowHTTP: true, AllowNets: "127.0.0.0/8", Ports: "*"}

// stack is a database with what runs on it.
type stack struct {
	t    *testing.T
	url  string
	nats string
	pool *pgxpool.Pool
}

func newStack(t *testing.T) *stack {
	t.Helper()
	k := &stack{t: t, url: testkit.Database(t, Migrations...), nats: nowhere}
	k.pool = k.open()
	return k
}

// newStackWithNATS has a server with the three streams, as their owners make them.
func newStackWithNATS(t *testing.T) *stack {
	t.Helper()
	k := newStack(t)
	k.nats = testkit.NATS(t).URL()
	b := k.connect()
	for _, stream := range []bus.Stream{bus.Sales, bus.Commissions, bus.Goals} {
		if err := b.EnsureStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k *stack) open() *pgxpool.Pool {
	k.t.Helper()
	pool, err := postgres.Open(k.t.Context(), k.url, 8)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(pool.Close)
	return pool
}

func (k *stack) connect() *bus.Bus {
	k.t.Helper()
	b, err := bus.Connect(bus.Config{URL: k.nats}, zap.NewNop())
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(b.Close)
	return b
}

// service makes an instance with connections of its own.
func (k *stack) service(config Config) *Service {
	k.t.Helper()
	s, err := New(k.t.Context(), config, k.deps())
	if err != nil {
		k.t.Fatal(err)
	}
	return s
}

func (k *stack) deps() service.Deps {
	k.t.Helper()
	return service.Deps{Pool: k.open(), Bus: k.connect(), Log: zap.NewNop(), Now: time.Now}
}

// run runs parts of a service until the test ends or stop is called, which waits for
// their end.
func (k *stack) run(parts ...func(context.Context) error) (stop func()) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.RunAll(ctx, parts...) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				k.t.Error(err)
			}
		case <-time.After(time.Minute):
			k.t.Error("the service does not stop")
		}
	})
	k.t.Cleanup(stop)
	return stop
}

// member is somebody with a key.
type member struct {
	tenant uuid.UUID
	key    string
}

// member makes a key before the service starts. Without scopes it has all of them.
func (k *stack) member(tenant uuid.UUID, scopes ...auth.Scope) member {
	k.t.Helper()
	text, keyID, hash, err := auth.NewSecret()
	if err != nil {
		k.t.Fatal(err)
	}
	names := auth.Scopes(scopes).Strings()
	if len(scopes) == 0 {
		names = auth.AllScopes.Strings()
	}
	k.exec("insert into known_keys (key_id, key_hash, tenant_id, suspended, scopes, version) values ($1, $2, $3, false, $4, 1)",
		keyID, hash[:], tenant, names)
	return member{tenant, text}
}

func (k *stack) exec(statement string, args ...any) {
	k.t.Helper()
	if _, err := k.pool.Exec(k.t.Context(), statement, args...); err != nil {
		k.t.Fatal(err)
	}
}

// count returns the one number that a query answers.
func (k *stack) count(query string, args ...any) (n int) {
	k.t.Helper()
	if err := k.pool.QueryRow(k.t.Context(), query, args...).Scan(&n); err != nil {
		k.t.Fatal(err)
	}
	return n
}

// inState counts the deliveries that have ended in the state.
func (k *stack) inState(state string) int {
	k.t.Helper()
	return k.count("select count(*) from deliveries where state = $1", state)
}

// pending counts the deliveries that have no outcome: those that wait and those that
// are being sent.
func (k *stack) pending() int {
	k.t.Helper()
	return k.count("select count(*) from pending")
}

func (k *stack) waiting() int {
	k.t.Helper()
	return k.count("select count(*) from pending where claim is null")
}

func (k *stack) sending() int {
	k.t.Helper()
	return k.count("select count(*) from pending where claim is not null")
}

// blocked counts the statements with this text that wait for a lock.
func (k *stack) blocked(text string) int {
	k.t.Helper()
	return k.count(`select count(*) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid() and wait_event_type = 'Lock' and query like '%' || $1::text || '%'`, text)
}

// mostInFlight is how many deliveries of one endpoint are being sent, of that with the most.
func (k *stack) mostInFlight() int {
	k.t.Helper()
	return k.count("select coalesce(max(n), 0) from (select count(*) as n from pending where claim is not null group by endpoint_id) e")
}

// dump is all rows of the tables that events end in.
func (k *stack) dump() string {
	k.t.Helper()
	var all strings.Builder
	for _, table := range []string{"tenants", "events", "pending", "deliveries", "attempts", "receipts", "parked_events"} {
		var rows *string
		query := fmt.Sprintf("select string_agg(r::text, E'\\n' order by r::text) from %s r", table)
		if err := k.pool.QueryRow(k.t.Context(), query).Scan(&rows); err != nil {
			k.t.Fatal(err)
		}
		if rows != nil {
			fmt.Fprintf(&all, "%s\n%s\n", table, *rows)
		}
	}
	return all.String()
}

// fanOut hands events to the service as its consumers do.
func (k *stack) fanOut(s *Service, events ...event.Sealed) {
	k.t.Helper()
	for chunk := range slices.Chunk(events, 500) {
		if err := s.tell(k.t.Context(), chunk); err != nil {
			k.t.Fatal(err)
		}
	}
}

func (s *Service) tell(ctx context.Context, events []event.Sealed) error {
	return postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error { return s.fanOut(ctx, tx, events) })
}

// publish sends events to their streams under message ids with this suffix, in any order.
func (k *stack) publish(b *bus.Bus, suffix string, events ...event.Sealed) {
	k.t.Helper()
	outgoing := make([]bus.Outgoing, len(events))
	for i, e := range events {
		outgoing[i] = bus.Outgoing{Sealed: e, MessageID: e.ID.String() + suffix}
	}
	rand.Shuffle(len(outgoing), func(i, j int) { outgoing[i], outgoing[j] = outgoing[j], outgoing[i] })
	testkit.Eventually(k.t, soon, "the events are published", func() bool {
		_, err := b.Publish(k.t.Context(), outgoing)
		return err == nil
	})
}

// lagOf is how many messages the service's consumers have not acknowledged.
func lagOf(t *testing.T, b *bus.Bus, s *Service) (lag uint64) {
	t.Helper()
	for _, consumer := range s.Consumers() {
		stream := map[string]bus.Stream{"webhooks-sales": bus.Sales, "webhooks-commissions": bus.Commissions, "webhooks-goals": bus.Goals}[consumer.Name]
		durable, err := b.JetStream().Consumer(t.Context(), stream.Name, consumer.Name)
		if err != nil {
			return 1
		}
		info, err := durable.Info(t.Context())
		if err != nil {
			return 1
		}
		lag += info.NumPending + uint64(info.NumAckPending)
	}
	return lag
}
