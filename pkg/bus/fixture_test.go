package bus_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	soon     = time.Minute // for what takes milliseconds on an idle machine
	consumer = "test-record"
)

var tenant = uuid.MustParse("01920000-0000-7000-8000-00000000000a")

// effects is what the handlers of these tests write: a row each time that they
// handle an event, so that a second time shows.
var effects = postgres.Schema{Name: "effects", FS: fstest.MapFS{"00001_effects.sql": {Data: []byte(
	"-- +goose Up\ncreate table effects (ref text not null, traceparent text not null);\n")}}}

// world is one consuming service with its database, and the server of the stream.
type world struct {
	t    *testing.T
	nats *testkit.NATSServer
	bus  *bus.Bus
	pool *pgxpool.Pool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newOffline(t)
	w.nats = testkit.NATS(t)
	w.bus = w.connect()
	w.makeStream()
	return w
}

// newOffline is a world without a server.
func newOffline(t *testing.T) *world {
	t.Helper()
	return &world{t: t, pool: openPool(t, testkit.Database(t, bus.Schema, effects))}
}

func openPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// connect makes a connection such as every process has one of.
func (w *world) connect() *bus.Bus { return w.connectWithLog(zap.NewNop()) }

func (w *world) connectWithLog(log *zap.Logger) *bus.Bus {
	w.t.Helper()
	b, err := bus.Connect(bus.Config{URL: w.nats.URL(), Name: w.t.Name()}, log)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Close)
	return b
}

func (w *world) makeStream() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), soon)
	defer cancel()
	if err := w.bus.EnsureStream(ctx, bus.Sales); err != nil {
		w.t.Fatal(err)
	}
}

// start runs the consumer until the test ends or stop is called, and stop returns
// when it has ended.
func (w *world) start(c bus.Consumer) (stop func()) {
	w.t.Helper()
	return w.run(func(ctx context.Context) error { return w.bus.Run(ctx, w.pool, c) })
}

func (w *world) run(run func(context.Context) error) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); err != nil {
			w.t.Errorf("the consumer ended with %v", err)
		}
	}()
	stop = func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(soon):
			w.t.Error("the consumer does not end")
		}
	}
	w.t.Cleanup(stop)
	return stop
}

// record notes the ref of every event that it is given.
func record(ctx context.Context, tx *postgres.Tx, events []event.Event[event.SaleRecorded]) error {
	for _, e := range events {
		if _, err := tx.Exec(ctx, `insert into effects values ($1, $2)`, e.Data.ExternalRef, e.Traceparent); err != nil {
			return err
		}
	}
	return nil
}

// recordUnless is record for a handler that fails with failure(ref) where that is
// no nil.
func recordUnless(failure func(ref string) error) func(context.Context, *postgres.Tx, []event.Event[event.SaleRecorded]) error {
	return func(ctx context.Context, tx *postgres.Tx, events []event.Event[event.SaleRecorded]) error {
		if err := record(ctx, tx, events); err != nil {
			return err
		}
		for _, e := range events {
			if err := failure(e.Data.ExternalRef); err != nil {
				return err
			}
		}
		return nil
	}
}

// sale makes the event of a sale with this ref, now.
func sale(t testing.TB, ref string) event.Sealed { return saleAt(t, ref, time.Now()) }

func saleAt(t testing.TB, ref string, at time.Time) event.Sealed {
	t.Helper()
	e, err := event.Seal(tenant, ref, at, event.SaleRecorded{ExternalRef: ref}, "")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func sales(t testing.TB, n int) []event.Sealed {
	t.Helper()
	events := make([]event.Sealed, n)
	for i := range events {
		events[i] = sale(t, fmt.Sprintf("sale %d", i))
	}
	return events
}

// publish puts events on the stream, under message ids that end in suffix.
func (w *world) publish(suffix string, events ...event.Sealed) {
	w.t.Helper()
	outgoing := make([]bus.Outgoing, len(events))
	for i, e := range events {
		outgoing[i] = bus.Outgoing{Sealed: e, MessageID: e.ID.String() + suffix}
	}
	testkit.Eventually(w.t, soon, "the server is there", w.bus.Connected)
	if stored, err := w.bus.Publish(w.t.Context(), outgoing); err != nil || len(stored) != len(events) {
		w.t.Fatalf("%d of %d published: %v", len(stored), len(events), err)
	}
}

// publishBytes puts a message on the stream that no outbox would make.
func (w *world) publishBytes(body string) {
	w.t.Helper()
	if _, err := w.bus.JetStream().Publish(w.t.Context(), event.NameSaleRecorded, []byte(body)); err != nil {
		w.t.Fatal(err)
	}
}

// awaitHandled waits until each of the events has been handled, and fails if one
// was handled twice or another one at all.
func (w *world) awaitHandled(events ...event.Sealed) {
	w.t.Helper()
	testkit.Eventually(w.t, soon, fmt.Sprintf("%d events are handled", len(events)), func() bool { return w.count("effects") >= len(events) })
	want := map[string]bool{}
	for _, e := range events {
		read, err := event.Read[event.SaleRecorded](e)
		if err != nil {
			w.t.Fatal(err)
		}
		want[read.Data.ExternalRef] = true
	}
	for ref, times := range w.handled() {
		if !want[ref] || times != 1 {
			w.t.Errorf("%q was handled %d times", ref, times)
		}
		delete(want, ref)
	}
	for ref := range want {
		w.t.Errorf("%q was not handled", ref)
	}
}

// handled tells how often each ref was handled.
func (w *world) handled() map[string]int {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), `select ref from effects`)
	if err != nil {
		w.t.Fatal(err)
	}
	refs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	times := map[string]int{}
	for _, ref := range refs {
		times[ref]++
	}
	return times
}

func (w *world) count(table string) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), `select count(*) from `+table).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// awaitSettled waits until the server has given the consumer all it has and heard
// what became of each message.
func (w *world) awaitSettled() {
	w.t.Helper()
	testkit.Eventually(w.t, soon, "every message is settled", func() bool {
		info := w.info()
		return info != nil && info.NumPending == 0 && info.NumAckPending == 0 && info.Delivered.Stream > 0
	})
}

// info is what the server says of the consumer, or nil while it does not know it.
func (w *world) info() *jetstream.ConsumerInfo {
	w.t.Helper()
	c, err := w.bus.JetStream().Consumer(w.t.Context(), bus.Sales.Name, consumer)
	if err != nil {
		return nil
	}
	return c.CachedInfo()
}

func (w *world) parked() []bus.Parked {
	w.t.Helper()
	found, err := bus.ListParked(w.t.Context(), w.pool, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}
