package webhooks

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
)

// What was not sent while an endpoint was disabled is not lost: it says why, waits for
// the endpoint to be enabled, and is sent once by a replay.
func TestWhatWasSkippedWhileDisabledIsReplayedOnceItsEndpointIsEnabled(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.run(s.Run)
	endpoint := k.register(s, who, in.URL, "*").EndpointID
	path := endpointsPath + "/" + endpoint
	begin := time.Now()
	k.ask(s, who, "PATCH", path, `{"status":"disabled"}`).must(200, nil)
	events := joinedMany(t, who.tenant, 10)
	k.fanOut(s, events...)
	for _, d := range k.deliveries(s, who, "") {
		if d.Status != stateSkipped || d.Reason == nil || *d.Reason != reasonDisabled || len(d.Attempts) != 0 {
			t.Errorf("while it is disabled a delivery is %+v", d)
		}
	}
	window := window(begin.Add(-time.Minute), time.Now().Add(time.Minute), "")
	k.ask(s, who, "POST", replayPath(endpoint), window).refused(422, "rule_violated")
	k.ask(s, who, "PATCH", path, `{"status":"enabled"}`).must(200, nil)
	var made wireReplay
	k.ask(s, who, "POST", replayPath(endpoint), window).must(202, &made)
	if now := k.ended(s, who, endpoint, made.ReplayID); now.Progress.Done != 10 {
		t.Errorf("the replay is %+v", now)
	}
	testkit.Eventually(t, soon, "all are delivered", func() bool { return k.inState(stateDelivered) == 10 })
	in.mustHaveOnce(t, events...)
	for _, d := range k.deliveries(s, who, "") {
		if d.Reason != nil || len(d.Attempts) != 1 {
			t.Errorf("once it is delivered it is %+v", d)
		}
	}
}

func TestAReplaySendsWhatAFilterKeptAwayOnlyWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		more string
		want int
	}{
		"whatever did not arrive": {"", 0},
		"what was skipped":        {`,"statuses":["skipped"]`, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newStack(t)
			who := k.member(uuid.New())
			in := newInbox(t, nil)
			s := k.service(lenient)
			k.run(s.Run)
			endpoint := k.register(s, who, in.URL, "*").EndpointID
			k.ask(s, who, "PATCH", endpointsPath+"/"+endpoint, `{"filter":{"partner_ids":["`+uuid.NewString()+`"]}}`).must(200, nil)
			k.fanOut(s, joinedMany(t, who.tenant, 5)...)
			made := k.replay(s, who, endpoint, time.Now().Add(-time.Minute), time.Now().Add(time.Minute), row.more)
			if now := k.ended(s, who, endpoint, made.ReplayID); int(now.Progress.Done) != row.want || int(now.Progress.Total) != row.want {
				t.Errorf("the replay is %+v, want %d", now, row.want)
			}
			testkit.Eventually(t, soon, "all that it queued is delivered", func() bool { return k.pending() == 0 })
			if n := in.count(); n != row.want {
				t.Errorf("%d posts arrived, want %d", n, row.want)
			}
		})
	}
}

// A filter and a disabled endpoint may both keep an event away: what the endpoint would
// not hear anyway is none of what it missed.
func TestWhatAFilterKeepsAwayIsNotSaidToHaveBeenMissed(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	path := endpointsPath + "/" + k.register(s, who, "https://example.com/", "*").EndpointID
	k.ask(s, who, "PATCH", path, `{"status":"disabled","filter":{"partner_ids":["`+uuid.NewString()+`"]}}`).must(200, nil)
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	if d := k.onlyDelivery(s, who); d.Status != stateSkipped || d.Reason == nil || *d.Reason != reasonFilter {
		t.Errorf("it is %+v", d)
	}
}

func TestAResentDeliveryFollowsTheRetriesOfItsEndpoint(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	var calls atomic.Int32
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) <= 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	s := k.service(lenient)
	s.dispatcher.retrier.backoff = haste
	k.run(s.Run)
	path := endpointsPath + "/" + k.register(s, who, in.URL, "*").EndpointID
	e := joined(t, who.tenant, time.Now())
	k.fanOut(s, e)
	testkit.Eventually(t, soon, "its only attempt has failed", func() bool { return k.inState(stateFailed) == 1 })
	k.ask(s, who, "PATCH", path, `{"max_attempts":3}`).must(200, nil)
	k.ask(s, who, "POST", resendPath(k.onlyDelivery(s, who).DeliveryID), "").must(202, nil)
	testkit.Eventually(t, soon, "it is delivered", func() bool { return k.inState(stateDelivered) == 1 })
	if d := k.onlyDelivery(s, who); len(d.Attempts) != 4 || in.count() != 4 {
		t.Errorf("after %d posts it is %+v", in.count(), d)
	}
	if !slices.Equal(in.posts()[3].body, e.Body) {
		t.Errorf("the last post was %s", in.posts()[3].body)
	}
}

// Its worker was slow, and tells how its attempt ended when somebody has already had the
// delivery sent again.
func TestAResentDeliveryIsSentWhateverALateWorkerTells(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	to := lane{who.tenant, uuid.MustParse(k.register(s, who, "https://example.com/", "*").EndpointID)}
	e := joined(t, who.tenant, time.Now())
	k.fanOut(s, e)
	claim := func() claimed {
		t.Helper()
		jobs, err := take(t.Context(), s.deps.Pool, []grant{{to, 1, 1, e.CreatedAt.Truncate(time.Millisecond)}}, uuid.New())
		if err != nil || len(jobs) != 1 {
			t.Fatalf("claimed %d, %v", len(jobs), err)
		}
		return jobs[0]
	}
	sweep := func() {
		t.Helper()
		k.exec("update pending set claimed_at = claimed_at - interval '1 h'")
		if err := s.sweeper.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(a attempt) {
		t.Helper()
		if err := s.dispatcher.recorder.write([]attempt{a}); err != nil {
			t.Fatal(err)
		}
	}

	resend := func() {
		t.Helper()
		if n := k.inState(stateUnknown); n != 1 {
			t.Fatalf("%d are unknown, want 1", n)
		}
		k.ask(s, who, "POST", resendPath(k.onlyDelivery(s, who).DeliveryID), "").must(202, nil)
	}

	first := claim()
	sweep()
	resend()
	second := claim()
	sweep()
	tell(attempt{claimed: first, outcome: outcome{Error: failedTimeout}})
	if n := k.inState(stateUnknown); n != 1 {
		t.Errorf("%d are unknown, want 1: nobody knows what came of the second attempt", n)
	}
	resend()
	tell(attempt{claimed: second, outcome: outcome{Delivered: true, StatusCode: 200}})
	if n := k.waiting(); n != 1 {
		t.Fatalf("%d wait to be sent, want 1", n)
	}
	tell(attempt{claimed: claim(), outcome: outcome{StatusCode: 500, Error: failedStatus}})
	if d := k.onlyDelivery(s, who); d.Status != stateFailed || len(d.Attempts) != 3 {
		t.Errorf("it is %+v", d)
	}
}

// What waits for hours to be attempted again is not ahead of what a replay queues.
func TestRetriesThatWaitHoldUpNoReplay(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	created := k.register(s, who, in.URL, "*")
	k.allow(created, 20)
	begin := time.Now()
	k.fanOut(s, joinedMany(t, who.tenant, replayAhead)...)
	k.exec("update pending set claim = null, claimed_at = null, attempts = 1, due_at = now() + interval '6 h'")
	missed := joined(t, who.tenant, time.Now())
	k.fanOut(s, missed)
	k.exec(`with gone as (delete from pending where attempts = 0 returning *)
		insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state)
		select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, 'failed' from gone`)
	s = k.service(lenient) // of which no slot is held
	k.run(s.Run)
	made := k.replay(s, who, created.EndpointID, begin.Add(-time.Minute), time.Now().Add(time.Minute), "")
	k.ended(s, who, created.EndpointID, made.ReplayID)
	testkit.Eventually(t, soon, "it is delivered", func() bool { return k.inState(stateDelivered) == 1 })
	in.mustHaveOnce(t, missed)
}

func TestAnEndpointThatIsEnabledBeginsItsFiveDaysAnew(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	path := endpointsPath + "/" + k.register(s, who, "https://example.com/", "*").EndpointID
	failing := func() int { return k.count("select count(*) from endpoints where failing_since is not null") }
	k.exec("update endpoints set failing_since = now() - interval '4 days'")
	for _, row := range []struct {
		change string
		want   int
	}{
		{`{"status":"enabled"}`, 1}, // it was already
		{`{"description":"Bookkeeping"}`, 1},
		{`{"status":"disabled"}`, 1},
		{`{"status":"enabled"}`, 0},
	} {
		k.ask(s, who, "PATCH", path, row.change).must(200, nil)
		if n := failing(); n != row.want {
			t.Errorf("after %s %d endpoints are known to be failing, want %d", row.change, n, row.want)
		}
	}
}
