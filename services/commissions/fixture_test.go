package commissions

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
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
	"partilha.dev/services/commissions/internal/pix"
)

// runAs in the environment makes this test binary the program of the service.
const runAs = "COMMISSIONS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(runAs) != "" {
		service.Main(service.Program{Name: "commissions", Schemas: Migrations, New: func(ctx context.Context, deps service.Deps) (service.Service, error) {
			return New(ctx, Config{SecretKey: os.Getenv("COMMISSIONS_SECRET_KEY")}, deps)
		}})
		os.Exit(0)
	}
	testkit.Main(m)
}

// nowhere is an address at which no NATS answers.
const nowhere = "nats://127.0.0.1:1"

// sealingKey is the key of PIX keys.
var sealingKey = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("pix-", 8)))

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

// announceKeys stands for the sales service, which fills the bucket of keys, and has none.
// Without a bucket nobody moves money.
func announceKeys(t *testing.T, natsURL string) {
	t.Helper()
	none := func(context.Context, int64) ([]auth.Key, error) { return nil, nil }
	announcer := auth.NewAnnouncer(connect(t, natsURL), zap.NewNop(), none)
	ended := make(chan error, 1)
	go func() { ended <- announcer.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (f *fixture) wire() *fixture {
	f.t.Helper()
	s, err := New(f.t.Context(), Config{SecretKey: sealingKey}, f.deps)
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
	return handle(f, f.earnFromSales, sales...)
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

// refundOf is a refund of the sale that takes back that much of its commission.
func refundOf(sold event.Event[event.SaleRecorded], reversed money.BRL) event.Event[event.SaleRefunded] {
	s := sold.Data
	data := event.SaleRefunded{
		RefundID: newID(), SaleID: s.SaleID, PartnerID: s.PartnerID, CampaignID: s.CampaignID, CommissionID: s.CommissionID,
		Amount: 1, CommissionReversed: reversed, RefundedTotal: 1, SaleAmount: s.Amount, CommissionAmount: s.CommissionAmount,
		SoldAt: s.SoldAt, RefundedAt: sold.CreatedAt,
	}
	return event.Event[event.SaleRefunded]{
		Name: data.EventName(), ID: event.IDOf(data.EventName(), data.RefundID.String()), CreatedAt: sold.CreatedAt, TenantID: sold.TenantID, Data: data,
	}
}

// conversion is a conversion that earned that much; 0 is nothing at all.
func conversion(tenant uuid.UUID, at time.Time, commission money.BRL) event.Event[event.ConversionRecorded] {
	data := event.ConversionRecorded{ConversionID: newID(), PartnerID: newID(), CampaignID: newID(), Type: "lead", ExternalRef: "lead-1", OccurredAt: at}
	if commission > 0 {
		data.PlanID, data.CommissionID, data.CommissionAmount = new(newID()), new(newID()), &commission
	}
	return event.Event[event.ConversionRecorded]{
		Name: data.EventName(), ID: event.IDOf(data.EventName(), data.ConversionID.String()), CreatedAt: at, TenantID: tenant, Data: data,
	}
}

// goalReached is a goal that a partner reached, with that reward.
func goalReached(tenant uuid.UUID, at time.Time, reward money.BRL) event.Event[event.GoalReached] {
	data := event.GoalReached{
		GoalID: newID(), Name: "Meta", PartnerID: newID(), Metric: "sales_count", Target: event.Quantity{Value: 10},
		Progress: event.Quantity{Value: 10}, PeriodStart: at, ReachedAt: at, Reward: &reward,
	}
	return event.Event[event.GoalReached]{
		Name: data.EventName(), ID: event.IDOf(data.EventName(), data.GoalID.String()), CreatedAt: at, TenantID: tenant, Data: data,
	}
}

// handle has one of the service's handlers take the events in one transaction.
func handle[T event.Payload](f *fixture, handler func(context.Context, *postgres.Tx, []event.Event[T]) error, events ...event.Event[T]) error {
	return postgres.Transact(f.t.Context(), f.deps.Pool, func(tx *postgres.Tx) error { return handler(f.t.Context(), tx, slices.Clone(events)) })
}

// mustReverse is for refunds that have nothing wrong with them.
func (f *fixture) mustReverse(refunds ...event.Event[event.SaleRefunded]) {
	f.t.Helper()
	if err := handle(f, f.reverse, refunds...); err != nil {
		f.t.Fatal(err)
	}
}

// mustRelease releases a batch of what is due and returns how many holds have ended.
func (f *fixture) mustRelease() int {
	f.t.Helper()
	ended, err := f.release(f.t.Context(), held{}, releaseBatch)
	if err != nil {
		f.t.Fatal(err)
	}
	return len(ended)
}

// books is what a partner has.
func (f *fixture) books(tenant, partner uuid.UUID) balances {
	f.t.Helper()
	b, err := one(f.t.Context(), f.Service, scanBalance, showBalanceQuery, tenant, partner)
	if err != nil {
		f.t.Fatal(err)
	}
	return b.balances
}

// balanced fails unless the tenant's books hold all that they must.
func (f *fixture) balanced(tenant uuid.UUID) {
	f.t.Helper()
	found, err := f.verify(f.t.Context(), tenant)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range found.Checks {
		if !c.OK {
			f.t.Errorf("%s: %s", c.Name, c.Detail)
		}
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
		"accounts":    f.dump(`select * from accounts`),
		"transfers":   f.dump(`select * from transfers`),
		"holds":       f.dump(`select * from holds`),
		"partners":    f.dump(`select * from partners`),
		"withdrawals": f.dump(`select * from withdrawals`),
		"states":      f.dump(`select * from withdrawal_states`),
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

// ask is for a withdrawal of that much, with a reference of its own.
func ask(partner uuid.UUID, amount money.BRL) withdrawalRequest {
	return withdrawalRequest{PartnerID: &partner, Amount: amount, KeyType: pix.CPF, Key: "529.982.247-25", ExternalRef: newID().String()}
}

// operatorKey is the id of the key with which tests change withdrawals beside the API.
const operatorKey = "operator"

// ask asks for a withdrawal as the API does once it has read the body.
func (f *fixture) ask(tenant uuid.UUID, r withdrawalRequest) (w *withdrawal, fresh bool, err error) {
	f.t.Helper()
	if err := r.check(); err != nil {
		f.t.Fatal(err)
	}
	w, _, fresh, err = f.request(f.t.Context(), tenant, operatorKey, r)
	return w, fresh, err
}

// mustAsk is for requests that have nothing wrong with them.
func (f *fixture) mustAsk(tenant, partner uuid.UUID, amount money.BRL) uuid.UUID {
	f.t.Helper()
	w, fresh, err := f.ask(tenant, ask(partner, amount))
	if err != nil || !fresh {
		f.t.Fatal(fresh, err)
	}
	return w.ID
}

// stepTo is a step of a withdrawal into a state, with a reason where one is needed.
func stepTo(id uuid.UUID, to string) *transition {
	t := &transition{id: id, to: to}
	if to == statusRejected || to == statusFailed {
		t.Reason = new("it must not be")
	}
	return t
}

// step brings a withdrawal into a state.
func (f *fixture) step(tenant, id uuid.UUID, to string) *transition {
	f.t.Helper()
	t := stepTo(id, to)
	if err := f.change(f.t.Context(), tenant, operatorKey, []*transition{t}); err != nil {
		t.err = err
	}
	return t
}

// mustStep is for steps that may be taken.
func (f *fixture) mustStep(tenant, id uuid.UUID, states ...string) {
	f.t.Helper()
	for _, to := range states {
		if t := f.step(tenant, id, to); t.err != nil || t.repeated {
			f.t.Fatalf("%s: %v, repeated: %t", to, t.err, t.repeated)
		}
	}
}

// payOut has all that the partner has available be withdrawn and paid.
func (f *fixture) payOut(tenant, partner uuid.UUID) {
	f.t.Helper()
	f.mustStep(tenant, f.mustAsk(tenant, partner, f.books(tenant, partner).Available), statusApproved, statusPaid)
}

// only is the one event of its kind that is told.
func only[T event.Payload](f *fixture) event.Event[T] {
	f.t.Helper()
	var kind T
	rows, err := f.deps.Pool.Query(f.t.Context(), `select body, traceparent from outbox where name = $1`, kind.EventName())
	if err != nil {
		f.t.Fatal(err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (e event.Sealed, err error) {
		return e, row.Scan(&e.Body, &e.Traceparent)
	})
	if err != nil {
		f.t.Fatal(err)
	}
	told, err := event.Read[T](found)
	if err != nil {
		f.t.Fatal(err)
	}
	return told
}

// replica is another service on the same database, with connections and a present of
// its own.
func (f *fixture) replica() *fixture {
	f.t.Helper()
	pool, err := postgres.Open(f.t.Context(), f.deps.Pool.Config().ConnString(), 8)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(pool.Close)
	other := &fixture{t: f.t, deps: f.deps, now: f.now}
	other.deps.Pool, other.deps.Now = pool, func() time.Time { return other.now }
	return other.wire()
}

// counted has the service's statements be counted, begin and commit included. It must
// come before wire.
func (f *fixture) counted() *statements {
	f.t.Helper()
	config, err := pgxpool.ParseConfig(testkit.Database(f.t, Migrations...))
	if err != nil {
		f.t.Fatal(err)
	}
	var sent statements
	config.ConnConfig.Tracer = &sent
	if f.deps.Pool, err = pgxpool.NewWithConfig(f.t.Context(), config); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(f.deps.Pool.Close)
	return &sent
}

// statements counts what is sent to PostgreSQL, and how often its answer is waited for.
type statements struct{ sent, waits atomic.Int64 }

func (s *statements) forget() { s.sent.Store(0); s.waits.Store(0) }

// expect fails the test if other than that was sent since forget.
func (s *statements) expect(t *testing.T, sent, waits int64) {
	t.Helper()
	if s.sent.Load() != sent || s.waits.Load() != waits {
		t.Errorf("%d statements, waited for %d times; want %d and %d", s.sent.Load(), s.waits.Load(), sent, waits)
	}
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.sent.Add(1)
	s.waits.Add(1)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	s.sent.Add(int64(data.Batch.Len()))
	s.waits.Add(1)
	return ctx
}

func (*statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
