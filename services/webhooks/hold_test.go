package webhooks

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// awaitDispatcher waits until the dispatcher takes deliveries.
func (k *stack) awaitDispatcher(s *Service) {
	k.t.Helper()
	testkit.Eventually(k.t, soon, "the dispatcher runs", func() bool {
		s.dispatcher.mu.Lock()
		defer s.dispatcher.mu.Unlock()
		return s.dispatcher.running
	})
}

// slotsInUse is how many slots are taken.
func slotsInUse(s *Service) int {
	s.dispatcher.lanes.mu.Lock()
	defer s.dispatcher.lanes.mu.Unlock()
	return s.dispatcher.lanes.used
}

func TestWhatFindsAFreeSlotIsClaimedAsItIsMadeAndTheRestWaits(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	release := make(chan struct{})
	in := newInbox(t, func(http.ResponseWriter, *http.Request) { <-release })
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.run(s.dispatcher.run)
	k.awaitDispatcher(s)
	events := joinedMany(t, who.tenant, 3*perEndpoint)
	err := postgres.Transact(t.Context(), s.deps.Pool, func(tx *postgres.Tx) error {
		if err := s.fanOut(t.Context(), tx, events); err != nil {
			return err
		}
		var claims int
		if err := tx.QueryRow(t.Context(), "select count(*) from pending where claim is not null").Scan(&claims); err != nil {
			return err
		}
		if claims != perEndpoint || in.count() != 0 {
			t.Errorf("before the commit %d are claimed and %d sent, want %d and none", claims, in.count(), perEndpoint)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	testkit.Eventually(t, soon, "all are delivered", func() bool { return k.inState(stateDelivered) == len(events) })
	in.mustHaveOnce(t, events...)
	testkit.Eventually(t, soon, "all slots are free", func() bool { return slotsInUse(s) == 0 })
}

func TestNothingIsSentOfATransactionThatFails(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.run(s.dispatcher.run)
	k.awaitDispatcher(s)
	lost := errors.New("the transaction fails")
	for range 3 * perTenant / perEndpoint { // more than there are slots
		err := postgres.Transact(t.Context(), s.deps.Pool, func(tx *postgres.Tx) error {
			if err := s.fanOut(t.Context(), tx, joinedMany(t, who.tenant, perEndpoint)); err != nil {
				return err
			}
			return lost
		})
		if !errors.Is(err, lost) {
			t.Fatal(err)
		}
	}
	if n := slotsInUse(s); n != 0 {
		t.Errorf("%d slots are still in use", n)
	}
	e := joined(t, who.tenant, time.Now())
	k.fanOut(s, e)
	testkit.Eventually(t, soon, "the next is delivered", func() bool { return k.inState(stateDelivered) == 1 })
	in.mustHaveOnce(t, e)
}

// A commit whose answer is lost may have made the deliveries with their claims. Nobody
// has sent them, so they must be sent, once, and must not become unknown.
func TestWhatWasClaimedByACommitOfWhichNoAnswerCameIsSentOnce(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.run(s.dispatcher.run, s.sweeper.run)
	k.awaitDispatcher(s)
	var all []event.Sealed
	for range 10 {
		events := joinedMany(t, who.tenant, 5)
		all = append(all, events...)
		err := postgres.Transact(t.Context(), s.deps.Pool, func(tx *postgres.Tx) error {
			if err := s.fanOut(t.Context(), tx, events); err != nil {
				return err
			}
			if _, err := tx.Exec(t.Context(), "commit"); err != nil {
				return err
			}
			k.exec("select pg_terminate_backend($1)", tx.Conn().PgConn().PID())
			return nil // the commit of the transaction finds no connection
		})
		if fault.KindOf(err) != fault.Unavailable {
			t.Fatalf("%v, want a fault that leaves the outcome open", err)
		}
	}
	testkit.Eventually(t, soon, "all are delivered", func() bool { return k.inState(stateDelivered) == len(all) })
	in.mustHaveOnce(t, all...)
	if n := k.inState(stateUnknown); n != 0 {
		t.Errorf("%d are unknown", n)
	}
}

func TestWhatIsCommittedDuringAStopIsPutBackUnsent(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.dispatcher.run(ctx) }()
	k.awaitDispatcher(s)
	err := postgres.Transact(t.Context(), s.deps.Pool, func(tx *postgres.Tx) error {
		if err := s.fanOut(t.Context(), tx, joinedMany(t, who.tenant, 5)); err != nil {
			return err
		}
		cancel()
		testkit.Eventually(t, soon, "nothing more is taken", func() bool {
			s.dispatcher.mu.Lock()
			defer s.dispatcher.mu.Unlock()
			return !s.dispatcher.running
		})
		select {
		case <-ended:
			t.Error("the dispatcher does not wait for the transaction")
		default:
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if waiting := k.waiting(); waiting != 5 || in.count() != 0 {
		t.Errorf("%d wait and %d posts arrived, want 5 and none", waiting, in.count())
	}
}

func TestADeliveryDoesNotOvertakeWhatWaitsForItsEndpoint(t *testing.T) {
	t.Parallel()
	l := newLanesOf(512)
	only := someLanes(uuid.New(), 1)[0]
	if !l.reserve(only) {
		t.Error("a free lane got no slot")
	}
	l.wake(map[lane]time.Time{only: time.Now()})
	if l.reserve(only) {
		t.Error("a lane that waits got a slot for what is newer")
	}
	l.take()
	if l.reserve(only) {
		t.Errorf("a lane got more than %d slots", perEndpoint)
	}
}
