package webhooks

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestALaneGetsNoMoreThanItsSlotsAndATenantNoMoreThanIts(t *testing.T) {
	t.Parallel()
	l := newLanesOf(512)
	tenant, other := uuid.New(), uuid.New()
	grants := wakeAndTake(l, someLanes(tenant, 20))
	sum := 0
	for _, g := range grants {
		if g.slots > perEndpoint {
			t.Errorf("a lane got %d slots", g.slots)
		}
		sum += g.slots
	}
	if sum != perTenant {
		t.Errorf("the tenant got %d slots, want %d", sum, perTenant)
	}
	if more := l.take(); len(more) != 0 {
		t.Errorf("a tenant that holds all of its slots got %v", more)
	}
	if grants := wakeAndTake(l, someLanes(other, 1)); len(grants) != 1 || grants[0].slots != perEndpoint {
		t.Errorf("another tenant got %v", grants)
	}
}

func TestHoweverManyHangANewcomerFindsASlot(t *testing.T) {
	t.Parallel()
	l := newLanesOf(512)
	tenant := uuid.New()
	for i, newcomer := range someLanes(tenant, 8) {
		grants := wakeAndTake(l, []lane{newcomer})
		if len(grants) != 1 || grants[0].lane != newcomer {
			t.Fatalf("after %d lanes that hang, the next one got %v", i, grants)
		}
		l.settle(grants, map[lane]int{newcomer: grants[0].slots})
	}
	for i := range 8 {
		newcomers := someLanes(uuid.New(), 4)
		if grants := wakeAndTake(l, newcomers); len(grants) == 0 {
			t.Fatalf("after %d more tenants that hang, the next one got nothing", i)
		}
	}
}

func TestWhoHasWaitedLongestIsServedFirst(t *testing.T) {
	t.Parallel()
	l := newLanesOf(2)
	list := someLanes(uuid.New(), 2)
	list = append(list, someLanes(uuid.New(), 1)...)
	var served []lane
	for _, next := range list {
		l.wake(map[lane]time.Time{next: time.Now()})
	}
	for range 6 {
		grants := l.take()
		claimed := map[lane]int{}
		for _, g := range grants {
			served = append(served, g.lane)
			claimed[g.lane] = g.slots
		}
		l.settle(grants, claimed)
		for _, g := range grants {
			l.done(g.lane, g.slots)
		}
	}
	turns := map[lane]int{}
	for _, s := range served {
		turns[s]++
	}
	for _, next := range list {
		if turns[next] < 2 {
			t.Errorf("in %d grants a lane had %d turns", len(served), turns[next])
		}
	}
}

func TestSlotsThatNothingWasClaimedForComeBack(t *testing.T) {
	t.Parallel()
	l := newLanesOf(512)
	only := someLanes(uuid.New(), 1)
	for range 100 {
		grants := wakeAndTake(l, only)
		if len(grants) != 1 || grants[0].slots != perEndpoint {
			t.Fatalf("got %v", grants)
		}
		l.settle(grants, map[lane]int{only[0]: 3})
		l.done(only[0], 3)
	}
	if len(l.take()) != 0 {
		t.Error("a lane that is drained is served again without being woken")
	}
	l.refuse(wakeAndTake(l, only))
	if grants := l.take(); len(grants) != 1 || grants[0].slots != perEndpoint {
		t.Errorf("after a claim that failed the lane got %v", grants)
	}
}

func TestALaneRemembersTheOldestEventThatItWasWokenFor(t *testing.T) {
	t.Parallel()
	l := newLanesOf(512)
	only := someLanes(uuid.New(), 1)[0]
	now := time.Now()
	for _, age := range []time.Duration{time.Minute, time.Hour, time.Second} {
		l.wake(map[lane]time.Time{only: now.Add(-age)})
	}
	grants := l.take()
	if want := now.Add(-time.Hour); len(grants) != 1 || !grants[0].since.Equal(want) {
		t.Errorf("got %v, want one grant since %s", grants, want)
	}
	l.wake(map[lane]time.Time{only: now})
	l.settle(grants, map[lane]int{only: grants[0].slots})
	l.done(only, grants[0].slots)
	if again := l.take(); len(again) != 1 || !again[0].since.Equal(now.Add(-time.Hour)) {
		t.Errorf("a lane that may have more from then got %v", again)
	}
}

// newLanesOf are so many slots with the usual bounds.
func newLanesOf(total int) *lanes {
	return newLanes(bounds{total, perTenant, perEndpoint}, newPaces(time.Now))
}

func someLanes(tenant uuid.UUID, n int) []lane {
	list := make([]lane, n)
	for i := range list {
		list[i] = lane{tenant, uuid.New()}
	}
	return list
}

func wakeAndTake(l *lanes, list []lane) []grant {
	waiting := map[lane]time.Time{}
	for _, next := range list {
		waiting[next] = time.Now()
	}
	l.wake(waiting)
	return l.take()
}
