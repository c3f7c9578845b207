package webhooks

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
)

func TestOnlyOfAnEndpointThatAnswersQuicklyIsMoreClaimedThanItHasSlots(t *testing.T) {
	t.Parallel()
	soonEnough := outcome{Delivered: true, StatusCode: 200, Held: quickly - 1}
	late := outcome{Delivered: true, StatusCode: 200, Duration: 1, Held: quickly} // its body was
	hung := outcome{Error: failedTimeout}
	for name, row := range map[string]struct {
		outcomes []outcome
		want     int
	}{
		"nothing is known":      {nil, 1},
		"quick":                 {[]outcome{soonEnough}, aheadOfQuick},
		"quick, and then late":  {[]outcome{soonEnough, late}, 1},
		"quick, and then hung":  {[]outcome{soonEnough, hung}, 1},
		"hung, and then quick":  {[]outcome{hung, soonEnough}, aheadOfQuick},
		"slowed, and one quick": {[]outcome{hung, hung, soonEnough}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, l := newPaces(time.Now), someLanes(uuid.New(), 2)
			for _, o := range row.outcomes {
				p.note(l[0], o)
			}
			if got := p.ahead(l[0]); got != row.want {
				t.Errorf("%d are claimed for each slot, want %d", got, row.want)
			}
			if got := p.ahead(l[1]); got != 1 {
				t.Errorf("of another endpoint %d are", got)
			}
		})
	}
}

// What is claimed ahead of a receiver that turns out to hang is not kept until it has
// been tried one after another.
func TestWhatIsClaimedAheadIsPutBackOnceItsReceiverHangs(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	release := make(chan struct{})
	in := newInbox(t, func(http.ResponseWriter, *http.Request) { <-release })
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	l := laneOf(t, k)
	s.dispatcher.paces.note(l, outcome{Delivered: true})
	events := joinedMany(t, who.tenant, aheadOfQuick*perEndpoint)
	k.run(s.dispatcher.run)
	k.awaitDispatcher(s)
	k.fanOut(s, events...)
	if n := k.sending(); n != len(events) {
		t.Errorf("%d are claimed, want all %d: %d for each slot", n, len(events), aheadOfQuick)
	}
	testkit.Eventually(t, soon, "it has all the slots that it may have", func() bool { return in.count() == perEndpoint })
	time.AfterFunc(slowly, func() { close(release) })
	testkit.Eventually(t, soon, "all are delivered", func() bool { return k.inState(stateDelivered) == len(events) })
	in.mustHaveOnce(t, events...)
	testkit.Eventually(t, soon, "all slots are free", func() bool { return slotsInUse(s) == 0 })
}

// Whoever deletes an endpoint hears no more of it than what was on its way, also where its
// receiver begins to answer at once and takes its time to end.
func TestNothingThatWasClaimedAheadIsSentLongAfterItsEndpointWasDeleted(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	release := make(chan struct{})
	var arrived atomic.Int32
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		arrived.Add(1)
		<-release
	})
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	l := laneOf(t, k)
	s.dispatcher.paces.note(l, outcome{Delivered: true})
	k.run(s.dispatcher.run)
	k.awaitDispatcher(s)
	k.fanOut(s, joinedMany(t, who.tenant, aheadOfQuick*perEndpoint)...)
	testkit.Eventually(t, soon, "as many as may be are in flight", func() bool { return arrived.Load() == perEndpoint })
	if n := k.sending(); n != aheadOfQuick*perEndpoint {
		t.Fatalf("%d are claimed, want %d for each slot", n, aheadOfQuick)
	}
	if err := s.remove(t.Context(), l.tenant, l.endpoint); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(slowly, func() { close(release) })
	testkit.Eventually(t, soon, "all slots are free", func() bool { return slotsInUse(s) == 0 })
	if n := arrived.Load(); n != perEndpoint {
		t.Errorf("%d posts arrived, want the %d that were in flight", n, perEndpoint)
	}
	testkit.Eventually(t, soon, "no claim is left", func() bool { return k.sending() == 0 })
}

func TestOfAClaimThatIsNotYoungEachSlotSendsOneDelivery(t *testing.T) {
	t.Parallel()
	l := someLanes(uuid.New(), 1)[0]
	for name, row := range map[string]struct {
		age   time.Duration
		first bool
		want  bool
	}{
		"the first of a young claim": {0, true, true},
		"the next of a young claim":  {0, false, true},
		"the first of an old claim":  {aheadWithin, true, true},
		"the next of an old claim":   {aheadWithin, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := time.Now().Add(-row.age)
			b := burstsOf([]claimed{{lane: l, asked: asked}}, nil, map[lane]int{l: 1})[0]
			if _, ok := b.next(row.first); ok != row.want {
				t.Errorf("it is sent: %t, want %t", ok, row.want)
			}
			if putBack := len(b.leave()) == 1; putBack == row.want {
				t.Errorf("it is put back: %t, want %t", putBack, !row.want)
			}
		})
	}
}

func TestAStopPutsBackWhatIsClaimedAhead(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	release := make(chan struct{})
	var arrived atomic.Int32
	in := newInbox(t, func(http.ResponseWriter, *http.Request) {
		arrived.Add(1)
		<-release
	})
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	s.dispatcher.paces.note(laneOf(t, k), outcome{Delivered: true})
	stop := k.run(s.dispatcher.run)
	k.awaitDispatcher(s)
	events := joinedMany(t, who.tenant, aheadOfQuick*perEndpoint)
	k.fanOut(s, events...)
	testkit.Eventually(t, soon, "as many as may be are in flight", func() bool { return arrived.Load() == perEndpoint })
	time.AfterFunc(quickly, func() { close(release) })
	stop()
	if delivered, waiting := k.inState(stateDelivered), k.waiting(); delivered != perEndpoint || waiting != len(events)-perEndpoint || in.count() != perEndpoint {
		t.Errorf("%d are delivered, %d wait, and %d posts arrived; want %d, the rest, and %d", delivered, waiting, in.count(), perEndpoint, perEndpoint)
	}
}
