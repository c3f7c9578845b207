package goals_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
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
	"partilha.dev/pkg/web"
	"partilha.dev/services/goals"
)

// patience is how long events may take on a busy machine.
const patience = time.Minute

// world is a database, a NATS with the sales stream, and any number of goals services.
type world struct {
	t       *testing.T
	url     string
	nats    string
	pool    *pgxpool.Pool // the test's own
	bus     *bus.Bus      // stands for the sales service
	ahead   atomic.Int64  // how far the services' clock is ahead, in nanoseconds
	steps   int           // facts, or totals, in one step of filling a goal; 0: as many as usual
	limiter *web.Limiter
	config  goals.Config
	handler http.Handler // of the service that was made last
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, testkit.Database(t, goals.Migrations...))
}

// newWorldIn is newWorld with a migrated database that the test brings.
func newWorldIn(t *testing.T, url string) *world {
	t.Helper()
	w := &world{t: t, url: url, nats: testkit.NATS(t).URL()}
	w.pool, w.bus = w.connect()
	if err := w.bus.EnsureStream(t.Context(), bus.Sales); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) connect() (*pgxpool.Pool, *bus.Bus) {
	w.t.Helper()
	pool, err := postgres.Open(w.t.Context(), w.url, 12)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	b, err := bus.Connect(bus.Config{URL: w.nats, Name: w.t.Name()}, zap.NewNop())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Close)
	return pool, b
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// serve wires a service that answers but does not run.
func (w *world) serve() *goals.Service {
	w.t.Helper()
	pool, b := w.connect()
	s, err := goals.New(w.t.Context(), w.config, service.Deps{Pool: pool, Bus: b, Log: zap.NewNop(), Now: w.now, Limiter: w.limiter})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.steps > 0 {
		s.FillInStepsOf(w.steps)
	}
	w.handler = s.Handler()
	return s
}

// run wires a service and runs it until the test ends.
func (w *world) run() {
	w.t.Helper()
	s := w.serve()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Errorf("run: %v", err)
		}
	})
}

// tenant is one tenant with one key.
type tenant struct {
	id  uuid.UUID
	key string
}

// tenant makes a tenant that services know which are made later.
func (w *world) tenant(scopes ...auth.Scope) tenant {
	w.t.Helper()
	if scopes == nil {
		scopes = auth.AllScopes
	}
	text, keyID, hash, err := auth.NewSecret()
	if err != nil {
		w.t.Fatal(err)
	}
	made := tenant{id: uuid.New(), key: text}
	w.exec(`insert into known_keys (key_id, key_hash, tenant_id, suspended, scopes, version) values ($1, $2, $3, false, $4, 1)`,
		keyID, hash[:], made.id, auth.Scopes(scopes).Strings())
	return made
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), statement, args...); err != nil {
		w.t.Fatal(err)
	}
}

// rows is what a query with one text column returns.
func (w *world) rows(query string, args ...any) []string {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), query, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return texts
}

// dump is everything that counting leaves behind.
func (w *world) dump() string {
	w.t.Helper()
	var all []string
	for _, table := range []string{"facts", "goals", "stretches", "totals", "reached", "leftovers", "outbox"} {
		all = append(all, table)
		all = append(all, w.rows("select row::text from "+table+" row where row::text not like '%,window.goals,%' order by row::text")...)
	}
	return strings.Join(all, "\n")
}

// sale is a sale of 10.00 by a partner at a moment, with a commission of 1.00.
func sale(t tenant, partner uuid.UUID, soldAt time.Time) event.Event[event.SaleRecorded] {
	return event.Event[event.SaleRecorded]{TenantID: t.id, Data: event.SaleRecorded{
		SaleID: uuid.Must(uuid.NewV7()), PartnerID: partner, CampaignID: uuid.New(), PlanID: uuid.New(),
		ExternalRef: "order", Amount: 1000, SoldAt: soldAt,
		CommissionID: uuid.New(), CommissionPct: 100_000, CommissionAmount: 100,
	}}
}

func worth(amount money.BRL, e event.Event[event.SaleRecorded]) event.Event[event.SaleRecorded] {
	e.Data.Amount = amount
	return e
}

// refund gives back so much of a sale of which so much had been given back before, and
// the same share of its commission.
func refund(e event.Event[event.SaleRecorded], amount, before money.BRL) event.Event[event.SaleRefunded] {
	of := e.Data
	share := func(refunded money.BRL) money.BRL { return of.CommissionAmount * refunded / of.Amount }
	return event.Event[event.SaleRefunded]{TenantID: e.TenantID, Data: event.SaleRefunded{
		RefundID: uuid.Must(uuid.NewV7()), SaleID: of.SaleID, PartnerID: of.PartnerID, CampaignID: of.CampaignID, CommissionID: of.CommissionID,
		Amount: amount, CommissionReversed: share(before+amount) - share(before), RefundedTotal: before + amount,
		SaleAmount: of.Amount, CommissionAmount: of.CommissionAmount, SoldAt: of.SoldAt, RefundedAt: time.Now(),
	}}
}

// conversion is a lead that earned a partner so much; nothing at all if that is 0.
func conversion(t tenant, partner uuid.UUID, at time.Time, commission money.BRL) event.Event[event.ConversionRecorded] {
	e := event.Event[event.ConversionRecorded]{TenantID: t.id, Data: event.ConversionRecorded{
		ConversionID: uuid.Must(uuid.NewV7()), PartnerID: partner, CampaignID: uuid.New(), Type: "lead", ExternalRef: "lead", OccurredAt: at,
	}}
	if commission > 0 {
		e.Data.PlanID, e.Data.CommissionID, e.Data.CommissionAmount = new(uuid.New()), new(uuid.New()), &commission
	}
	return e
}

// sealed fixes the bytes of an event as the sales service does.
func sealed[T event.Payload](t *testing.T, e event.Event[T], cause uuid.UUID) event.Sealed {
	t.Helper()
	s, err := event.Seal(e.TenantID, cause.String(), time.Now(), e.Data, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sealed fixes the bytes of sales, refunds and conversions.
func (w *world) sealed(happened ...any) []event.Sealed {
	w.t.Helper()
	events := make([]event.Sealed, len(happened))
	for i, e := range happened {
		switch e := e.(type) {
		case event.Event[event.SaleRecorded]:
			events[i] = sealed(w.t, e, e.Data.SaleID)
		case event.Event[event.SaleRefunded]:
			events[i] = sealed(w.t, e, e.Data.RefundID)
		case event.Event[event.ConversionRecorded]:
			events[i] = sealed(w.t, e, e.Data.ConversionID)
		default:
			w.t.Fatalf("a %T cannot be sealed", e)
		}
	}
	return events
}

// seal makes sales, refunds and conversions ready to be published.
func (w *world) seal(happened ...any) []bus.Outgoing {
	w.t.Helper()
	var outgoing []bus.Outgoing
	for _, s := range w.sealed(happened...) {
		outgoing = append(outgoing, bus.Outgoing{Sealed: s, MessageID: s.ID.String()})
	}
	return outgoing
}

// publish sends events; it may be called on any goroutine.
func (w *world) publish(events []bus.Outgoing) {
	if _, err := w.bus.Publish(context.Background(), events); err != nil {
		w.t.Error(err)
	}
}

// sell publishes sales, refunds and conversions and waits until they are counted.
func (w *world) sell(happened ...any) {
	w.t.Helper()
	w.publish(w.seal(happened...))
	w.drained()
}

// drained waits until every event that has been published is handled.
func (w *world) drained() {
	w.t.Helper()
	stream, err := w.bus.JetStream().Stream(w.t.Context(), bus.Sales.Name)
	if err != nil {
		w.t.Fatal(err)
	}
	last := stream.CachedInfo().State.LastSeq
	testkit.Eventually(w.t, patience, "everything that happened is handled", func() bool {
		consumer, err := stream.Consumer(w.t.Context(), "goals-count")
		return err == nil && consumer.CachedInfo().AckFloor.Stream >= last
	})
}

// answer is one HTTP answer.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (w *world) call(t tenant, method, path, body string) answer {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+t.key)
	return w.do(r)
}

func (w *world) do(r *http.Request) answer {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	a := answer{status: recorder.Code, header: recorder.Header(), raw: recorder.Body.String()}
	if a.raw == "" {
		return a
	}
	if err := json.Unmarshal([]byte(a.raw), &a.body); err != nil {
		w.t.Fatalf("%s %s answers %q: %v", r.Method, r.URL, a.raw, err)
	}
	return a
}

// goal sets a goal with these members and returns its id.
func (w *world) goal(t tenant, members string) string {
	w.t.Helper()
	made := w.call(t, "POST", "/api/v1/goals", goalBody(members))
	if made.status != http.StatusCreated {
		w.t.Fatalf("create goal: %d %s", made.status, made.raw)
	}
	return made.body["goal_id"].(string)
}

// goalBody is a goal of 3 sales, with these further members.
func goalBody(members string) string {
	if members != "" {
		members = "," + members
	}
	body := `"name":"Three"`
	if !strings.Contains(members, `"metric"`) {
		body += `,"metric":"sales_count"`
	}
	if !strings.Contains(members, `"target"`) {
		body += `,"target":3`
	}
	return "{" + body + members + "}"
}

// board is a goal's leaderboard: a line of partner, progress, percent, reached and rank each.
func (w *world) board(t tenant, goalID, query string) string {
	w.t.Helper()
	a := w.call(t, "GET", "/api/v1/goals/"+goalID+"/progress"+query, "")
	if a.status != http.StatusOK {
		w.t.Fatalf("progress: %d %s", a.status, a.raw)
	}
	var lines []string
	for _, row := range a.body["data"].([]any) {
		m := row.(map[string]any)
		lines = append(lines, fmt.Sprintf("%s %v %v%% %v #%v", m["partner_id"], m["progress"], m["percent"], m["reached"], m["rank"]))
	}
	return strings.Join(lines, "\n")
}

// assertTotals fails where the totals are not what the facts say, which PostgreSQL
// works out here by itself: with its own calendar, and without any of the code under test.
func (w *world) assertTotals() {
	w.t.Helper()
	const truth = `
		select g.goal_id, f.partner_id,
			case g.period when 'total' then g.origin
				else date_trunc(g.period, f.occurred_at at time zone g.timezone) at time zone g.timezone end as period_start,
			sum(case g.metric when 'sales_count' then f.sales when 'sales_amount' then f.amount_centavos
				when 'commission_amount' then f.commission_centavos else f.conversions end)::bigint as progress
		from goals g join facts f using (tenant_id)
		where f.occurred_at >= g.starts_at and (g.ends_at is null or f.occurred_at < g.ends_at)
			and (g.campaign_id is null or g.campaign_id = f.campaign_id)
			and (g.partner_ids is null or f.partner_id = any(g.partner_ids))
			and (g.rested_from is null or f.recorded <= g.rested_from)
		group by 1, 2, 3
		having sum(case g.metric when 'sales_count' then f.sales when 'sales_amount' then f.amount_centavos
				when 'commission_amount' then f.commission_centavos else f.conversions end) <> 0`
	const kept = `select goal_id, partner_id, period_start, progress from totals where progress <> 0`
	if wrong := w.rows(`select row::text from ((` + truth + `) except (` + kept + `)) row`); len(wrong) > 0 {
		w.t.Errorf("%d totals are missing or wrong; the facts say: %v", len(wrong), wrong[:min(len(wrong), 5)])
	}
	if wrong := w.rows(`select row::text from ((` + kept + `) except (` + truth + `)) row`); len(wrong) > 0 {
		w.t.Errorf("%d totals are not what the facts say: %v", len(wrong), wrong[:min(len(wrong), 5)])
	}
}

// assertReached fails where somebody is at a target without having reached the goal, or
// the opposite, or was told of more than once. It is for goals of which nothing is
// refunded and no window is cut.
func (w *world) assertReached() {
	w.t.Helper()
	const inconsistent = `
		select row::text from totals t join goals g using (tenant_id, goal_id)
		left join reached r using (tenant_id, goal_id, partner_id, period_start),
		lateral (select t.partner_id, t.period_start, t.progress, g.target) row
		where coalesce(t.period_end, g.ends_at, 'infinity') > g.created_at and (t.progress >= g.target) <> (r.goal_id is not null)`
	if wrong := w.rows(inconsistent); len(wrong) > 0 {
		w.t.Errorf("totals at their target and reached goals do not agree: %v", wrong)
	}
	told, reached := len(w.reached()), len(w.rows("select '' from reached"))
	if told != reached {
		w.t.Errorf("%d times somebody has reached a goal, and %d are told of", reached, told)
	}
}

// reached are the goal.reached events, each as its data.
func (w *world) reached() []event.GoalReached {
	w.t.Helper()
	var told []event.GoalReached
	for _, body := range w.rows(`select convert_from(body, 'UTF8') from outbox where name = 'goal.reached' order by created_at, event_id`) {
		e, err := event.Read[event.GoalReached](event.Sealed{Name: event.NameGoalReached, Body: []byte(body)})
		if err != nil {
			w.t.Fatal(err)
		}
		told = append(told, e.Data)
	}
	return told
}

func at(text string) time.Time {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return moment
}

// ids makes n ids in ascending order.
func ids(n int) []uuid.UUID {
	made := make([]uuid.UUID, n)
	for i := range made {
		made[i] = uuid.Must(uuid.NewV7())
	}
	return made
}

// moments is what a query with one column of times returns.
func (w *world) moments(query string) []time.Time {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), query)
	if err != nil {
		w.t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}
