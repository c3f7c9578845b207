package webhooks

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

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
