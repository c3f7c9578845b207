package sales

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/pgserver"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/testkit"
)

// runAs in the environment makes this test binary the program of the service.
const runAs = "SALES_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(runAs) != "" {
		service.Main(service.Program{Name: "sales", Schemas: Migrations, Commands: Commands()})
		os.Exit(0)
	}
	testkit.Main(m)
}

// nowhere is an address at which no NATS answers.
const nowhere = "nats://127.0.0.1:1"

const operatorToken = "operator-token-of-a-test"

// fixture is a running service with a database of its own, one tenant, and a
// catalogue in which a sale can be made.
type fixture struct {
	t       *testing.T
	url     string
	service *Service
	deps    service.Deps

	database, nats string
	now            func() time.Time // nil: the computer's clock

	tenant, key          string
	partner, code        string
	campaign, plan, link string // link is the address of the link of the two
}

// start runs a service on a new database. Without a URL of NATS it is on its own.
func start(t *testing.T, natsURL string) *fixture {
	t.Helper()
	return startOn(t, testkit.Database(t, Migrations...), natsURL)
}

func startOn(t *testing.T, database, natsURL string) *fixture {
	t.Helper()
	f := &fixture{t: t, database: database, nats: natsURL}
	f.run()
	f.enrol("ana.souza")
	return f
}

// startOnOwnServer runs a service on a PostgreSQL that the test may kill.
func startOnOwnServer(t *testing.T) (*fixture, *pgserver.Server) {
	t.Helper()
	server := testkit.Postgres(t)
	return startOnServer(t, server), server
}

// startWithStandby runs a service on a primary whose commits wait for its standby.
func startWithStandby(t *testing.T) (f *fixture, standby *pgserver.Server) {
	t.Helper()
	primary, standby := testkit.PostgresPair(t)
	return startOnServer(t, primary), standby
}

func startOnServer(t *testing.T, server *pgserver.Server) *fixture {
	t.Helper()
	if err := server.CreateDatabase(t.Context(), "sales"); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), server.URL("sales"), Migrations...); err != nil {
		t.Fatal(err)
	}
	return startOn(t, server.URL("sales"), nowhere)
}

// replica is the same tenant at another instance of the service on the same database.
func (f *fixture) replica() *fixture {
	f.t.Helper()
	other := *f
	other.run()
	return &other
}

// stranger is another tenant, with a catalogue of its own, at the same instance.
func (f *fixture) stranger() *fixture {
	f.t.Helper()
	other := *f
	other.enrol("bia.lima")
	return &other
}

// in is the fixture for a subtest, which must fail by itself.
func (f *fixture) in(t *testing.T) *fixture {
	inner := *f
	inner.t = t
	return &inner
}

// with is the same tenant calling with another key.
func (f *fixture) with(key string) *fixture {
	other := *f
	other.key = key
	return &other
}

// at is the same tenant calling at another instance.
func (f *fixture) at(instance *fixture) *fixture {
	other := *f
	other.url = instance.url
	return &other
}

// connect makes what a service is given: a pool, a bus, a clock.
func (f *fixture) connect() service.Deps {
	t := f.t
	t.Helper()
	pool, err := postgres.Open(t.Context(), f.database, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b, err := bus.Connect(bus.Config{URL: f.nats, Name: t.Name()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	deps := service.Deps{Pool: pool, Bus: b, Log: zap.NewNop(), Now: f.now}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	return deps
}

// run wires a service, runs it and answers at a new address.
func (f *fixture) run() {
	t := f.t
	t.Helper()
	var err error
	f.deps = f.connect()
	f.service, err = New(t.Context(), Config{AdminToken: operatorToken}, f.deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.service.Run(ctx) }()
	server := httptest.NewServer(f.service.Handler())
	t.Cleanup(func() {
		server.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	f.url = server.URL
}

// enrol makes a tenant with a key and a catalogue, and calls as that tenant from now on.
func (f *fixture) enrol(code string) {
	f.t.Helper()
	f.code = code
	f.tenant = f.admin("POST", "/admin/v1/tenants", `{"name":"Loja"}`).want(201).text("tenant_id")
	f.key = f.admin("POST", "/admin/v1/tenants/"+f.tenant+"/api-keys", `{"name":"test"}`).want(201).text("api_key")
	f.fill()
}

// fill makes a partner, a campaign with a plan of 5 % and of 4.75 for a conversion, and
// the link between them.
func (f *fixture) fill() {
	f.partner = f.post("/api/v1/partners", `{"name":"Ana","referral_code":"`+f.code+`"}`).want(201).text("partner_id")
	f.campaign = f.post("/api/v1/campaigns", `{"name":"Verão"}`).want(201).text("campaign_id")
	f.plan = f.post("/api/v1/campaigns/"+f.campaign+"/plans", `{"name":"5 %","commission_pct":5,"conversion_amount_brl":4.75}`).want(201).text("plan_id")
	f.link = "/api/v1/campaigns/" + f.campaign + "/partners/" + f.partner
	f.call("PUT", f.link, "").want(204)
}

// sale is the body of a valid report of a sale, with members changed or, where the
// value is empty, left out. Values are raw JSON.
func (f *fixture) sale(ref string, changes ...string) string {
	return object(map[string]string{
		"referral_code": quoted(f.code), "campaign_id": quoted(f.campaign), "plan_id": quoted(f.plan),
		"amount_brl": "100.50", "external_ref": quoted(ref),
	}, changes)
}

// conversion is the body of a valid report of a conversion, with changes as to a sale.
func (f *fixture) conversion(ref string, changes ...string) string {
	return object(map[string]string{
		"referral_code": quoted(f.code), "campaign_id": quoted(f.campaign), "plan_id": quoted(f.plan), "external_ref": quoted(ref),
	}, changes)
}

// refundOf is the body of a valid refund, with members changed as those of a sale are.
func refundOf(ref, amount string, changes ...string) string {
	return object(map[string]string{"external_ref": quoted(ref), "amount_brl": amount}, changes)
}

// object is a JSON object of these members, with changes given as name, value.
func object(members map[string]string, changes []string) string {
	for i := 0; i < len(changes); i += 2 {
		members[changes[i]] = changes[i+1]
	}
	var body bytes.Buffer
	body.WriteByte('{')
	for name, value := range members {
		if value == "" {
			continue
		}
		if body.Len() > 1 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, "%q:%s", name, value)
	}
	return body.String() + "}"
}

// sell records a sale and returns its id and the address of its refunds.
func (f *fixture) sell(ref string, changes ...string) (saleID, refunds string) {
	f.t.Helper()
	saleID = f.post("/api/v1/sales", f.sale(ref, changes...)).want(201).text("sale_id")
	return saleID, "/api/v1/sales/" + saleID + "/refunds"
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// meanwhile does work again and again on some goroutines, counting on each of them,
// until stop is called or the test ends. Then it waits for them.
func (f *fixture) meanwhile(goroutines int, work func(goroutine, n int)) (stop func()) {
	var finished atomic.Bool
	var all sync.WaitGroup
	for goroutine := range goroutines {
		all.Go(func() {
			for n := 0; !finished.Load(); n++ {
				work(goroutine, n)
			}
		})
	}
	stop = func() {
		finished.Store(true)
		all.Wait()
	}
	f.t.Cleanup(stop)
	return stop
}

// rows is how many rows a table has.
func (f *fixture) rows(table string) (n int) {
	f.t.Helper()
	if err := f.deps.Pool.QueryRow(f.t.Context(), "select count(*) from "+table).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// content is everything that the service has recorded, table by table; when a key was
// last used, and what waits to be published, are not part of it.
func (f *fixture) content() map[string]string {
	f.t.Helper()
	content := map[string]string{}
	for _, table := range []string{"tenants", "api_keys", "partners", "campaigns", "plans", "links", "sales", "refunds", "conversions", "outbox"} {
		var rows string
		query := "select coalesce(string_agg(line, E'\\n' order by line), '') from (select (to_jsonb(r) - 'last_used_at')::text as line from " + table + " r) rows"
		if err := f.deps.Pool.QueryRow(f.t.Context(), query).Scan(&rows); err != nil {
			f.t.Fatal(err)
		}
		content[table] = rows
	}
	return content
}

// recordsNothing fails the test if work changes anything that is recorded.
func (f *fixture) recordsNothing(work func()) {
	f.t.Helper()
	before := f.content()
	work()
	for table, rows := range f.content() {
		if rows != before[table] {
			f.t.Errorf("%s changed from\n%s\nto\n%s", table, before[table], rows)
		}
	}
}
