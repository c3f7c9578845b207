package service

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
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

func TestADatabaseThatLacksAMigrationIsNotCaughtUp(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t, shopSchema) // as a backup from before the bus had tables here
	status, stdout, stderr := command(t, "listener", []string{"DATABASE_URL=" + url, "NATS_URL=nats://127.0.0.1:1"}, "catch-up")
	if status != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "(bus): run the migrate command first") {
		t.Errorf("status %d, %q %q", status, stdout, stderr)
	}
}

// caughtUp runs awaitQuiet beside a backlog that is a function of the time since it began,
// and returns how long that took; a day is as much as never.
func caughtUp(t *testing.T, of func(since time.Duration) (backlog, error)) (left backlog, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		began := time.Now()
		left, _ = awaitQuiet(ctx, func(context.Context) (backlog, error) { return of(time.Since(began)) })
		took = time.Since(began)
	})
	return left, took
}

func TestCatchingUpEndsWhenNothingChangesAnyMore(t *testing.T) {
	const never = 24 * time.Hour
	for name, row := range map[string]struct {
		of      func(since time.Duration) (backlog, error)
		left    backlog
		atLeast time.Duration
		atMost  time.Duration
	}{
		"nothing is to be done": {
			func(time.Duration) (backlog, error) { return backlog{}, nil }, backlog{}, catchUpQuiet, catchUpQuiet + time.Second},
		"an event waits for one that is parked": {
			func(time.Duration) (backlog, error) { return backlog{handle: 1}, nil }, backlog{handle: 1}, catchUpStuck, catchUpStuck + time.Second},
		"events become fewer, each after the longest delay": {
			func(since time.Duration) (backlog, error) {
				return backlog{handle: max(0, 10-int64(since/(30*time.Second)))}, nil
			}, backlog{}, 5 * time.Minute, 5*time.Minute + 2*catchUpQuiet},
		"nothing is published, since NATS refuses": {
			func(time.Duration) (backlog, error) { return backlog{publish: 1}, nil }, backlog{publish: 1}, never, never},
		"nobody knows how much there is": {
			func(time.Duration) (backlog, error) { return backlog{handle: 1}, errors.New("NATS is away") }, backlog{handle: 1}, never, never},
	} {
		t.Run(name, func(t *testing.T) {
			left, took := caughtUp(t, row.of)
			if left != row.left || took < row.atLeast || took > row.atMost {
				t.Errorf("it ends after %s with %+v", took, left)
			}
		})
	}
}

func TestWhatCannotBeHandledIsSaidInTheEnd(t *testing.T) {
	if got := (backlog{}).outcome(); got != "every event is published, and handled or parked" {
		t.Error(got)
	}
	if got := (backlog{handle: 3}).outcome(); !strings.Contains(got, "but for 3 ") || !strings.Contains(got, "parked list") {
		t.Error(got)
	}
}
