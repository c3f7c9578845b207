package service

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// listener hears of goals and publishes nothing.
type listener struct{ deps Deps }

func newListener(_ context.Context, deps Deps) (Service, error) { return &listener{deps}, nil }

func (l *listener) Handler() http.Handler { return http.NotFoundHandler() }

func (l *listener) Run(ctx context.Context) error { return l.deps.Consume(l.Consumers())(ctx) }

func (l *listener) Consumers() []bus.Consumer {
	return []bus.Consumer{bus.OnAny("listener", []string{event.NameGoalReached}, func(context.Context, *postgres.Tx, []event.Sealed) error { return nil })}
}

func TestWhoeverPublishesNothingCatchesUpWithABackupOfAnyAge(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, bus.Schema, shopSchema)
	pool, server := open(t, url), testkit.NATS(t)
	old := time.Now().UTC().AddDate(0, 0, -30).Truncate(24 * time.Hour)
	if err := postgres.EnsurePartitions(t.Context(), pool, []postgres.Partition{{Table: "receipts", Days: 31}}); err != nil {
		t.Fatal(err) // as the backup has them
	}
	sealed, err := event.Seal(uuid.New(), "a goal of then", old.Add(time.Hour), event.GoalReached{}, "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Connect(bus.Config{URL: server.URL(), Name: t.Name()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.EnsureStream(t.Context(), bus.Goals); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Publish(t.Context(), []bus.Outgoing{{Sealed: sealed, MessageID: sealed.ID.String()}}); err != nil {
		t.Fatal(err)
	}

	status, stdout, stderr := command(t, "listener", []string{"DATABASE_URL=" + url, "NATS_URL=" + server.URL()}, "catch-up")
	if status != 0 || stdout != "every event is published, and handled or parked\n" {
		t.Errorf("status %d, %q %q", status, stdout, stderr)
	}
	var receipts, parked int
	if err := pool.QueryRow(t.Context(), `select (select count(*) from receipts), (select count(*) from parked_events)`).Scan(&receipts, &parked); err != nil {
		t.Fatal(err)
	}
	if receipts != 1 || parked != 0 {
		t.Errorf("%d events are handled and %d parked, want the one handled", receipts, parked)
	}
}
