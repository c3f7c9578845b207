package webhooks

import (
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
)

// These are not parallel: other tests send webhooks too.

func TestDeliveriesAreCountedByWhatBecameOfThem(t *testing.T) {
	counted := func() map[string]float64 {
		counts := map[string]float64{}
		for _, state := range []string{stateDelivered, stateFailed, stateUnknown, stateSkipped} {
			counts[state] = testkit.Metric(t, "partilha_webhook_deliveries_total", "result", state)
		}
		return counts
	}
	k := newStack(t)
	who := k.member(uuid.New())
	var failing atomic.Bool
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) {
		if failing.Load() {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	attempts := testkit.Metric(t, "partilha_webhook_attempt_seconds")
	want := counted()
	rises := func(state string, by int) {
		t.Helper()
		want[state] += float64(by)
		testkit.Eventually(t, soon, "the deliveries are counted as "+state, func() bool { return maps.Equal(counted(), want) })
	}

	k.fanOut(s, joinedMany(t, who.tenant, 2)...)
	k.exec("update pending set claim = gen_random_uuid(), claimed_at = now() - interval '1 hour'")
	k.run(s.Run)
	rises(stateUnknown, 2)
	k.fanOut(s, joinedMany(t, who.tenant, 3)...)
	rises(stateDelivered, 3)
	failing.Store(true)
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	rises(stateFailed, 1)
	if n := testkit.Metric(t, "partilha_webhook_attempt_seconds") - attempts; n != 4 {
		t.Errorf("%v attempts are measured, want 4", n)
	}
	k.exec("update endpoints set disabled_reason = 'a test'")
	k.fanOut(s, joinedMany(t, who.tenant, 4)...)
	rises(stateSkipped, 4)
}

func TestTheAgeOfWhatWaitsLongestToBeSentIsMeasured(t *testing.T) {
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, who, "https://example.com/", "*")
	k.exec("update endpoints set created_at = now() - interval '1 hour'")
	measured := func() float64 {
		t.Helper()
		if err := s.sweeper.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return testkit.Metric(t, "partilha_webhook_oldest_ready_seconds")
	}
	if age := measured(); age != 0 {
		t.Errorf("while nothing waits the oldest waits for %v s", age)
	}
	k.fanOut(s, joined(t, who.tenant, time.Now()), joined(t, who.tenant, time.Now().Add(-10*time.Minute)))
	k.exec("update pending set claim = null, claimed_at = null")
	if age := measured(); age > 60 {
		t.Errorf("what was just made, of an event of ten minutes ago, is measured as %v s", age)
	}
	k.exec("update pending set queued_at = now() - interval '20 minutes'")
	if age := measured(); age < 1200 || age > 1260 {
		t.Errorf("the oldest has waited for twenty minutes and is measured as %v s", age)
	}
	l := laneOf(t, k)
	s.dispatcher.paces.note(l, outcome{Error: failedTimeout})
	if age := measured(); age != 0 {
		t.Errorf("while its receiver fails the oldest is measured as %v s", age)
	}
	s.dispatcher.paces.note(l, outcome{Delivered: true})
	if age := measured(); age < 1200 {
		t.Errorf("once its receiver does well the oldest is measured as %v s", age)
	}

	k.exec("update endpoints set disabled_reason = 'a test'")
	measured() // skips it
	k.exec("update endpoints set disabled_reason = null")
	for _, d := range k.deliveries(s, who, "") {
		k.ask(s, who, "POST", resendPath(d.DeliveryID), "").must(202, nil)
	}
	if age := measured(); k.waiting() != 2 || age > 60 {
		t.Errorf("%d wait that somebody has just had sent again, the oldest is measured as %v s", k.waiting(), age)
	}
}
