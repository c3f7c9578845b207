package commissions

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// nowhere is an address at which no NATS answers.
const nowhere = "nats://127.0.0.1:1"

// fixture is a service with a database of its own.
type fixture struct {
	t    *testing.T
	deps service.Deps
	now  time.Time // what the service takes for the present
	*Service
}

// prepare makes everything but the service itself, which wire adds.
func prepare(t *testing.T, natsURL string) *fixture {
	t.Helper()
	pool, err := postgres.Open(t.Context(), testkit.Database(t, Migrations...), 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f := &fixture{t: t, now: event.Instant(time.Now())}
	f.deps = service.Deps{Pool: pool, Bus: connect(t, natsURL), Log: zap.NewNop(), Now: func() time.Time { return f.now }}
	return f
}

func connect(t *testing.T, url string) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(bus.Config{URL: url, Name: t.Name()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func (f *fixture) wire() *fixture {
	f.t.Helper()
	s, err := New(f.t.Context(), Config{}, f.deps)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Service = s
	return f
}

// run does the service's background work until stop, or the end of the test.
func (f *fixture) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("run: %v", err)
		}
	}
	f.t.Cleanup(stop)
	return stop
}

// key makes an API key and returns its text. It must come before wire.
func (f *fixture) key(tenant uuid.UUID, scopes ...auth.Scope) string {
	f.t.Helper()
	text, id, hash, err := auth.NewSecret()
	if err != nil {
		f.t.Fatal(err)
	}
	f.exec(`insert into known_keys (key_id, key_hash, tenant_id, suspended, scopes, version) values ($1, $2, $3, false, $4, 1)`,
		id, hash[:], tenant, auth.Scopes(scopes).Strings())
	return text
}

func (f *fixture) exec(statement string, args ...any) {
	f.t.Helper()
	if _, err := f.deps.Pool.Exec(f.t.Context(), statement, args...); err != nil {
		f.t.Fatal(err)
	}
}

// earnNow has the service handle the sales in one transaction.
func (f *fixture) earnNow(sales ...event.Event[event.SaleRecorded]) error {
	return earnIn(f.t.Context(), f.deps.Pool, f.Service, sales...)
}

func earnIn(ctx context.Context, pool *pgxpool.Pool, s *Service, sales ...event.Event[event.SaleRecorded]) error {
	return postgres.Transact(ctx, pool, func(tx *postgres.Tx) error { return s.earn(ctx, tx, slices.Clone(sales)) })
}

// mustEarn is earnNow for sales that have nothing wrong with them.
func (f *fixture) mustEarn(sales ...event.Event[event.SaleRecorded]) {
	f.t.Helper()
	if err := f.earnNow(sales...); err != nil {
		f.t.Fatal(err)
	}
}

// sale is a sale of 259.35 at 12.5 percent, recorded at the instant at, with changes.
func sale(tenant uuid.UUID, at time.Time, changes ...func(*event.SaleRecorded)) event.Event[event.SaleRecorded] {
	data := event.SaleRecorded{
		SaleID: newID(), PartnerID: newID(), CampaignID: newID(), PlanID: newID(), CommissionID: newID(),
		ExternalRef: "order-1", Amount: 259_35, SoldAt: at, CommissionPct: 12_5000, CommissionAmount: 32_42,
	}
	for _, change := range changes {
		change(&data)
	}
	return event.Event[event.SaleRecorded]{
		Name: data.EventName(), ID: event.IDOf(data.EventName(), data.SaleID.String()), CreatedAt: at, TenantID: tenant, Data: data,
	}
}

func worth(amount money.BRL, pct money.Pct, commission money.BRL) func(*event.SaleRecorded) {
	return func(s *event.SaleRecorded) { s.Amount, s.CommissionPct, s.CommissionAmount = amount, pct, commission }
}

func soldBy(partner uuid.UUID) func(*event.SaleRecorded) {
	return func(s *event.SaleRecorded) { s.PartnerID = partner }
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// dump is all rows of a query as text, in one order.
func (f *fixture) dump(query string) []string {
	f.t.Helper()
	rows, err := f.deps.Pool.Query(f.t.Context(), fmt.Sprintf(`select r::text from (%s) r order by 1`, query))
	if err != nil {
		f.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		f.t.Fatal(err)
	}
	return lines
}

// state is everything that handling an event may change.
func (f *fixture) state() map[string][]string {
	f.t.Helper()
	return map[string][]string{
		"commissions": f.dump(`select * from commissions`),
		"partners":    f.dump(`select * from partners`),
		"outbox":      f.dump(`select * from outbox`),
		"receipts":    f.dump(`select * from receipts`),
		"parked":      f.dump(`select consumer, event_id, body, reason from parked_events`),
	}
}

// get asks as the owner of the key; an empty key sends none.
func (f *fixture) get(key, target string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, target, nil)
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	answer := httptest.NewRecorder()
	f.Handler().ServeHTTP(answer, request)
	return answer
}
