package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
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
	soon    = 30 * time.Second // for what takes milliseconds on an idle machine
	testKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	nowhere = "nats://127.0.0.1:1" // a service works without NATS
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

// inState counts the deliveries that are in one of the states.
func (k *stack) inState(states ...string) int {
	k.t.Helper()
	return k.count("select count(*) from deliveries where state = any($1)", states)
}

// dump is all rows of the tables that events end in.
func (k *stack) dump() string {
	k.t.Helper()
	var all strings.Builder
	for _, table := range []string{"tenants", "events", "deliveries", "attempts", "receipts", "parked_events"} {
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

// answer is what the API said.
type answer struct {
	*httptest.ResponseRecorder
	t *testing.T
}

func (k *stack) ask(s *Service, who member, method, path, body string) answer {
	k.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if who.key != "" {
		r.Header.Set("Authorization", "Bearer "+who.key)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return answer{w, k.t}
}

// must fails the test unless the status is this one, and reads the body into into.
func (a answer) must(status int, into any) {
	a.t.Helper()
	if a.Code != status {
		a.t.Fatalf("status %d, want %d: %s", a.Code, status, a.Body)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(a.Body.Bytes(), into); err != nil {
		a.t.Fatalf("%v: %s", err, a.Body)
	}
}

// refused fails the test unless this is an error of the status and code.
func (a answer) refused(status int, code string) {
	a.t.Helper()
	var body struct {
		Code      string
		RequestID string `json:"request_id"`
	}
	a.must(status, &body)
	if body.Code != code || body.RequestID == "" {
		a.t.Errorf("code %q with request id %q, want %q", body.Code, body.RequestID, code)
	}
}

// wire is an endpoint or delivery as a caller reads it.
type wire struct {
	EndpointID     string `json:"endpoint_id"`
	URL            string `json:"url"`
	Events         []string
	Description    *string
	Status         string
	DisabledReason *string `json:"disabled_reason"`
	CreatedAt      string  `json:"created_at"`
	Secret         string

	DeliveryID string `json:"delivery_id"`
	EventID    string `json:"event_id"`
	Attempts   []struct {
		At         string
		DurationMS *int `json:"duration_ms"`
		StatusCode *int `json:"status_code"`
		Error      *string
		Excerpt    *string `json:"response_excerpt"`
	}
	Request *struct {
		Method, URL, Body string
		Headers           map[string]string
	}
}

type wirePage struct {
	Data       []wire
	NextCursor *string `json:"next_cursor"`
}

// register makes an endpoint through the API.
func (k *stack) register(s *Service, who member, url string, events ...string) wire {
	k.t.Helper()
	body, err := json.Marshal(map[string]any{"url": url, "events": events})
	if err != nil {
		k.t.Fatal(err)
	}
	var created wire
	k.ask(s, who, "POST", "/api/v1/webhook-endpoints", string(body)).must(201, &created)
	return created
}

// deliveries reads all pages of the tenant's deliveries.
func (k *stack) deliveries(s *Service, who member, query string) (all []wire) {
	k.t.Helper()
	path := "/api/v1/webhook-deliveries?limit=100" + query
	for next := path; next != ""; {
		var page wirePage
		k.ask(s, who, "GET", next, "").must(200, &page)
		all = append(all, page.Data...)
		next = ""
		if page.NextCursor != nil {
			next = path + "&cursor=" + *page.NextCursor
		}
	}
	return all
}

// fanOut hands events to the service as its consumers do.
func (k *stack) fanOut(s *Service, events ...event.Sealed) {
	k.t.Helper()
	for chunk := range slices.Chunk(events, 500) {
		if err := postgres.Transact(k.t.Context(), s.deps.Pool, func(tx *postgres.Tx) error {
			return s.fanOut(k.t.Context(), tx, chunk)
		}); err != nil {
			k.t.Fatal(err)
		}
	}
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

// joined makes the event that a partner joined.
func joined(t *testing.T, tenant uuid.UUID, at time.Time) event.Sealed {
	t.Helper()
	id := uuid.New()
	return seal(t, tenant, id, at, event.PartnerCreated{PartnerID: id, Name: "João", ReferralCode: "JOAO", Status: "active", CreatedAt: at})
}

func joinedMany(t *testing.T, tenant uuid.UUID, n int) []event.Sealed {
	t.Helper()
	events := make([]event.Sealed, n)
	for i := range events {
		events[i] = joined(t, tenant, time.Now())
	}
	return events
}

func sold(t *testing.T, tenant uuid.UUID, at time.Time) event.Sealed {
	t.Helper()
	id := uuid.New()
	return seal(t, tenant, id, at, event.SaleRecorded{SaleID: id, ExternalRef: "r", Amount: 100_00, SoldAt: at})
}

func seal[T event.Payload](t *testing.T, tenant, cause uuid.UUID, at time.Time, data T) event.Sealed {
	t.Helper()
	e, err := event.Seal(tenant, cause.String(), at, data, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// inbox is a tenant's receiver: it counts what it gets, and then does what it is told.
type inbox struct {
	*httptest.Server

	mu       sync.Mutex
	received []post
}

type post struct {
	method, path, host string
	header             http.Header
	body               []byte
	at                 time.Time
}

func newInbox(t *testing.T, then http.HandlerFunc) *inbox {
	t.Helper()
	in := &inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender died in the middle
		}
		in.mu.Lock()
		in.received = append(in.received, post{r.Method, r.URL.RequestURI(), r.Host, r.Header.Clone(), body, time.Now()})
		in.mu.Unlock()
		if then != nil {
			then(w, r)
		}
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) posts() []post {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.received)
}

func (in *inbox) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.received)
}

// timesPosted counts the POSTs of each event by its id.
func (in *inbox) timesPosted(t *testing.T) map[string]int {
	t.Helper()
	times := map[string]int{}
	for _, p := range in.posts() {
		e, err := event.Open(bytes.Clone(p.body))
		if err != nil {
			t.Fatal(err)
		}
		times[e.ID.String()]++
	}
	return times
}

// mustHaveOnce fails the test unless the inbox got each of these events exactly once,
// and no other.
func (in *inbox) mustHaveOnce(t *testing.T, events ...event.Sealed) {
	t.Helper()
	times := in.timesPosted(t)
	for _, e := range events {
		if n := times[e.ID.String()]; n != 1 {
			t.Errorf("event %s was posted %d times", e.ID, n)
		}
		delete(times, e.ID.String())
	}
	for id, n := range times {
		t.Errorf("event %s was posted %d times, and should not have been", id, n)
	}
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
