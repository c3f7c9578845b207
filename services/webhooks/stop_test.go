package webhooks

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

func TestAStopWaitsForAttemptsUnderWay(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	arrived, release := make(chan struct{}, perEndpoint), make(chan struct{})
	answer := sync.OnceFunc(func() { close(release) })
	defer answer()
	in := newInbox(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	events := joinedMany(t, who.tenant, 3*perEndpoint)
	k.fanOut(s, events...)
	for range perEndpoint {
		<-arrived
	}
	cancel()
	select {
	case <-ended:
		t.Error("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	answer()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if delivered, ready := k.inState(stateDelivered), k.waiting(); delivered != perEndpoint || ready != len(events)-perEndpoint {
		t.Errorf("%d are delivered and %d ready, want %d and the rest", delivered, ready, perEndpoint)
	}
	if n := in.count(); n != perEndpoint {
		t.Errorf("%d posts arrived", n)
	}
}

func TestWhatIsClaimedDuringAStopIsPutBackUnsent(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.fanOut(s, joinedMany(t, who.tenant, 5)...)

	barrier, err := k.pool.Begin(t.Context()) // the claim has to wait for it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := barrier.Exec(t.Context(), "lock table endpoints in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.dispatcher.run(ctx) }()
	testkit.Eventually(t, soon, "the claim waits", func() bool {
		return k.count("select count(*) from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())") == 1
	})
	cancel()
	if err := barrier.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if ready := k.waiting(); ready != 5 || in.count() != 0 {
		t.Errorf("%d are ready and %d posts arrived, want 5 and none", ready, in.count())
	}
	if claims := k.sending(); claims != 0 {
		t.Errorf("%d are still claimed", claims)
	}
}

func TestAnOutcomeSurvivesTheDatabasesRestart(t *testing.T) {
	t.Parallel()
	server := testkit.Postgres(t)
	k := &stack{t: t, url: server.URL("postgres"), nats: nowhere}
	if err := postgres.Migrate(t.Context(), k.url, Migrations...); err != nil {
		t.Fatal(err)
	}
	k.pool = k.open()
	who := k.member(uuid.New())
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	answer := sync.OnceFunc(func() { close(release) })
	defer answer()
	in := newInbox(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.run(s.Run)
	e := joined(t, who.tenant, time.Now())
	k.fanOut(s, e)
	<-arrived
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	answer()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 2*soon, "it is delivered", func() bool {
		var n int
		err := k.pool.QueryRow(t.Context(), "select count(*) from deliveries where state = 'delivered'").Scan(&n)
		return err == nil && n == 1
	})
	in.mustHaveOnce(t, e)
}

// withoutRecords runs the dispatcher with a recorder of so much room for which the database
// is away. When it returns the first event has been delivered, and the recorder tries
// nothing but to record that: whatever comes of other events stays in the room.
func (k *stack) withoutRecords(s *Service, in *inbox, room int, first event.Sealed) (stop func()) {
	k.t.Helper()
	away := k.open()
	away.Close()
	core, lines := observer.New(zap.ErrorLevel)
	s.dispatcher.recorder = newRecorder(away, zap.New(core), room)
	stop = k.run(s.dispatcher.run)
	k.awaitDispatcher(s)
	k.fanOut(s, first)
	testkit.Eventually(k.t, soon, "the first outcome cannot be recorded", func() bool { return in.count() == 1 && lines.Len() > 0 })
	testkit.Eventually(k.t, soon, "its slot is free", func() bool { return slotsInUse(s) == 0 })
	return stop
}

func TestThereIsRoomForTheOutcomesOfAllThatIsClaimedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	config := lenient
	config.Concurrency = 8
	s := k.service(config)
	k.register(s, who, in.URL, "*")
	events := joinedMany(t, who.tenant, 1+16)
	k.withoutRecords(s, in, cap(s.dispatcher.recorder.attempts), events[0])
	s.dispatcher.paces.note(laneOf(t, k), outcome{Delivered: true})
	k.fanOut(s, events[1:]...)
	testkit.Eventually(t, soon, "all have arrived", func() bool { return in.count() == len(events) })
	testkit.Eventually(t, soon, "all slots are free", func() bool { return slotsInUse(s) == 0 })
}

func TestAStopEndsThoughSendersWaitForRoomWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	config := lenient
	config.Timeout = impatient
	s := k.service(config)
	k.register(s, who, in.URL, "*")
	events := joinedMany(t, who.tenant, 1+4)
	stop := k.withoutRecords(s, in, 0, events[0])
	k.fanOut(s, events[1:]...)
	testkit.Eventually(t, soon, "all have arrived", func() bool { return in.count() == len(events) })
	if n := slotsInUse(s); n == 0 {
		t.Error("no sender waits")
	}
	stop() // fails where it takes too long
}
