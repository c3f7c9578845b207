package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const soon = time.Minute // for what takes a few seconds at most on an idle machine

var tenant = uuid.MustParse("01920000-0000-7000-8000-00000000000a")

// effects is where a consumer notes each time that it handles an event.
var effects = postgres.Schema{Name: "effects", FS: fstest.MapFS{"00001_effects.sql": {Data: []byte(
	"-- +goose Up\ncreate table effects (event_id uuid not null);\n")}}}

// world is the service that owns a stream, and its server.
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
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := w.bus.EnsureStream(ctx, bus.Sales); err != nil {
		t.Fatal(err)
	}
	return w
}

// newOffline is a world without a server.
func newOffline(t *testing.T) *world {
	t.Helper()
	pool, err := postgres.Open(t.Context(), testkit.Database(t, outbox.Schema, bus.Schema, effects), 12)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &world{t: t, pool: pool}
}

// connect makes a connection such as every process has one of.
func (w *world) connect() *bus.Bus {
	w.t.Helper()
	b, err := bus.Connect(bus.Config{URL: w.nats.URL(), Name: w.t.Name()}, zap.NewNop())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Close)
	return b
}

// newRelay makes a relay that does not run: what is added through it never gets
// from memory to the stream.
func (w *world) newRelay() *outbox.Relay {
	return outbox.NewHastyRelay(w.pool, w.bus, bus.Sales, zaptest.NewLogger(w.t, zaptest.Level(zap.WarnLevel)))
}

// start makes a relay and runs it until the test ends.
func (w *world) start() *outbox.Relay {
	w.t.Helper()
	r := w.newRelay()
	w.run(r.Run)
	return r
}

func (w *world) run(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); err != nil {
			w.t.Errorf("it ended with %v", err)
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(soon):
			w.t.Error("it does not end")
		}
	})
}

// add stores events in one transaction of their own.
func (w *world) add(r *outbox.Relay, events ...event.Sealed) {
	w.t.Helper()
	if err := w.transact(func(tx *postgres.Tx) error { r.Add(tx, events...); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) transact(work func(tx *postgres.Tx) error) error {
	return postgres.Transact(w.t.Context(), w.pool, work)
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), statement, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ask(query string, args ...any) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), query, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) pending() int { w.t.Helper(); return w.ask(`select count(*) from outbox_pending`) }

func (w *world) repairs() int {
	w.t.Helper()
	return w.ask(`select coalesce(max(repairs), 0) from outbox_stream`)
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

// logOnly stores events as they are long after they were published.
func (w *world) logOnly(events ...event.Sealed) {
	w.t.Helper()
	r := w.newRelay()
	err := w.transact(func(tx *postgres.Tx) error {
		r.Add(tx, events...)
		for _, e := range events {
			if _, err := tx.Exec(w.t.Context(), `delete from outbox_pending where event_id = $1`, [16]byte(e.ID)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// awaitStream waits until the stream has messages under just these ids, in any
// order, beside what it tells of windows, and nothing is pending.
func (w *world) awaitStream(ids ...string) {
	w.t.Helper()
	testkit.Eventually(w.t, soon, fmt.Sprintf("%d messages are on the stream", len(ids)), func() bool {
		return w.length() >= len(ids) && w.pending() == 0 && len(w.events()) >= len(ids)
	})
	var got []string
	for _, m := range w.events() {
		got = append(got, m.Header.Get(jetstream.MsgIDHeader))
	}
	slices.Sort(got)
	slices.Sort(ids)
	if !slices.Equal(got, ids) {
		w.t.Fatalf("the stream has %d messages\n%.600s\nwant %d\n%.600s", len(got), fmt.Sprint(got), len(ids), fmt.Sprint(ids))
	}
}

// length is how many messages the stream holds; 0 while there is none.
func (w *world) length() int {
	stream, err := w.bus.JetStream().Stream(w.t.Context(), bus.Sales.Name)
	if err != nil {
		return 0
	}
	return int(stream.CachedInfo().State.Msgs)
}

func (w *world) messages() []*jetstream.RawStreamMsg {
	w.t.Helper()
	stream, err := w.bus.JetStream().Stream(w.t.Context(), bus.Sales.Name)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []*jetstream.RawStreamMsg
	state := stream.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := stream.GetMsg(w.t.Context(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// events are the messages that do not tell of windows.
func (w *world) events() []*jetstream.RawStreamMsg {
	w.t.Helper()
	return slices.DeleteFunc(w.messages(), func(m *jetstream.RawStreamMsg) bool { return m.Subject == bus.Sales.WindowName() })
}

// ids are the message ids of events in a repair; 0 is none.
func ids(repair int, events ...event.Sealed) []string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = outbox.MessageID(e.ID, repair)
	}
	return all
}

// awaitChecked waits until the relay has compared the stream with what it was, after
// this moment.
func (w *world) awaitChecked() {
	w.t.Helper()
	const checked = `select count(*) from outbox_stream where checked_at > $1`
	var since time.Time
	if err := w.pool.QueryRow(w.t.Context(), `select now()`).Scan(&since); err != nil {
		w.t.Fatal(err)
	}
	testkit.Eventually(w.t, soon, "the stream is looked at", func() bool { return w.ask(checked, since) == 1 })
}

func (w *world) restart() {
	w.t.Helper()
	w.nats.Stop()
	testkit.Eventually(w.t, soon, "the connection is lost", func() bool { return !w.bus.Connected() })
	w.nats.Start()
}
