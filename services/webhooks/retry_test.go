package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

// allow has the endpoint's deliveries attempted up to so many times.
func (k *stack) allow(endpoint wire, attempts int) {
	k.t.Helper()
	k.exec("update endpoints set max_attempts = $2 where endpoint_id = $1", endpoint.EndpointID, attempts)
}

// haste makes every retry due at once.
var haste = []time.Duration{time.Millisecond}

// nobodyPaces lets the service send as fast as if every receiver did well.
func nobodyPaces(s *Service) {
	s.dispatcher.lanes.paces, s.dispatcher.again.paces = newPaces(time.Now), newPaces(time.Now)
}

func TestHowLongADeliveryWaitsForItsNextAttempt(t *testing.T) {
	t.Parallel()
	r := retrier{backoff}
	status := func(code int, after time.Duration) outcome {
		return outcome{StatusCode: code, Error: failedStatus, RetryAfter: after}
	}
	failed := status(500, 0)
	for name, row := range map[string]struct {
		made, allowed int
		outcome       outcome
		least         time.Duration // 0: it is not attempted again
	}{
		"after the first":                       {1, 20, failed, 5 * time.Second},
		"after the second":                      {2, 20, failed, 30 * time.Second},
		"after the third":                       {3, 20, failed, 2 * time.Minute},
		"after the fourth":                      {4, 20, failed, 10 * time.Minute},
		"after the fifth":                       {5, 20, failed, time.Hour},
		"after the sixth":                       {6, 20, failed, 6 * time.Hour},
		"after the nineteenth":                  {19, 20, failed, 6 * time.Hour},
		"after the last":                        {20, 20, failed, 0},
		"after the only one":                    {1, 1, failed, 0},
		"after none was answered":               {1, 2, outcome{Error: failedTimeout}, 5 * time.Second},
		"after a redirect":                      {1, 2, outcome{StatusCode: 302, Error: failedRedirect}, 5 * time.Second},
		"after success":                         {1, 20, outcome{StatusCode: 200, Delivered: true}, 0},
		"after 410":                             {1, 20, status(410, 0), 0},
		"for longer, where that is asked for":   {1, 20, status(503, time.Hour), time.Hour},
		"not for less, where that is asked for": {3, 20, status(429, time.Second), 2 * time.Minute},
		"not for ever, where that is asked for": {1, 20, status(503, 1000*time.Hour), 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[time.Duration]bool{}
			for range 100 {
				got := r.again(claimed{attempts: row.made - 1, allowed: row.allowed}, row.outcome)
				if got < row.least || got > row.least+row.least/jitterPart {
					t.Fatalf("it waits %s, want %s and up to a fifth more", got, row.least)
				}
				seen[got] = true
			}
			if row.least > 0 && len(seen) < 50 {
				t.Errorf("of 100 waits only %d differ", len(seen))
			}
		})
	}
}

func TestAFailureIsSentAgainUntilItArrives(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	var calls atomic.Int32
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) <= 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	s := k.service(lenient)
	s.dispatcher.retrier.backoff = haste
	k.allow(k.register(s, who, in.URL, "*"), 5)
	k.run(s.Run)
	e := joined(t, who.tenant, time.Now())
	k.fanOut(s, e)
	testkit.Eventually(t, soon, "it is delivered", func() bool { return k.inState(stateDelivered) == 1 })

	posts := in.posts()
	if len(posts) != 3 {
		t.Fatalf("%d posts, want 3", len(posts))
	}
	for _, p := range posts {
		if string(p.body) != string(e.Body) || p.header.Get("X-Service-Signature") != posts[0].header.Get("X-Service-Signature") {
			t.Errorf("an attempt had other bytes: %s", p.body)
		}
	}
	list := k.deliveries(s, who, "")
	if len(list) != 1 || len(list[0].Attempts) != 3 {
		t.Fatalf("deliveries %+v", list)
	}
	for i, want := range []int{500, 500, 200} {
		if got := list[0].Attempts[i].StatusCode; got == nil || *got != want {
			t.Errorf("attempt %d was answered %v, want %d", i+1, got, want)
		}
	}
	if n := k.pending(); n != 0 {
		t.Errorf("%d are still pending", n)
	}
}

func TestADeliveryIsAttemptedAsOftenAsItsEndpointAllowsAndThenFailed(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	s := k.service(lenient)
	s.dispatcher.retrier.backoff = haste
	once := k.register(s, who, in.URL+"/once", "*")
	k.allow(k.register(s, who, in.URL+"/thrice", "*"), 3)
	k.run(s.Run)
	k.fanOut(s, joinedMany(t, who.tenant, 5)...)
	testkit.Eventually(t, soon, "all have failed", func() bool { return k.inState(stateFailed) == 10 })
	times := map[string]int{}
	for _, p := range in.posts() {
		times[p.path]++
	}
	if times["/once"] != 5 || times["/thrice"] != 15 {
		t.Errorf("posts %v, want 5 and 15", times)
	}
	for _, d := range k.deliveries(s, who, "") {
		want := 3
		if d.EndpointID == once.EndpointID {
			want = 1
		}
		if len(d.Attempts) != want {
			t.Errorf("%d attempts, want %d", len(d.Attempts), want)
		}
	}
}

func TestWhatIsToBeSentAgainIsPendingAndDueAsTheReceiverAsks(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	for i, after := range []string{"3600", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		s := k.service(lenient)
		k.allow(k.register(s, who, in.URL, event.NameSaleRecorded), 2)
		stop := k.run(s.Run)
		k.fanOut(s, sold(t, who.tenant, time.Now()))
		testkit.Eventually(t, soon, "it waits for its next attempt", func() bool {
			return k.count("select count(*) from pending where attempts = 1 and claim is null and due_at between now() + interval '59 min' and now() + interval '73 min'") == i+1
		})
		stop()
		k.exec("update endpoints set events = '{partner.created}'")
	}
	for _, d := range k.deliveries(k.service(lenient), who, "") {
		if d.Status != statusPending || len(d.Attempts) != 1 || d.Attempts[0].StatusCode == nil || *d.Attempts[0].StatusCode != 503 {
			t.Errorf("delivery %+v", d)
		}
	}
}

func TestAReceiverThatIsGoneDisablesAnEndpointThatHasRetries(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	s := k.service(lenient)
	once := k.register(s, who, in.URL, "*")
	retried := k.register(s, who, in.URL, "*")
	k.allow(retried, 20)
	k.run(s.Run)
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	read := func(e wire) (now wire) {
		k.ask(s, who, "GET", endpointsPath+"/"+e.EndpointID, "").must(200, &now)
		return now
	}
	testkit.Eventually(t, soon, "the endpoint is disabled", func() bool { return read(retried).Status == statusDisabled })
	if why := read(retried).DisabledReason; why == nil || *why != reasonGone {
		t.Errorf("it is disabled because %v", why)
	}
	if now := read(once); now.Status != statusEnabled || now.DisabledReason != nil {
		t.Errorf("the endpoint that has none is %s", now.Status)
	}
	testkit.Eventually(t, soon, "both have failed", func() bool { return k.inState(stateFailed) == 2 })

	k.fanOut(s, joinedMany(t, who.tenant, 3)...)
	testkit.Eventually(t, soon, "all have an outcome", func() bool { return k.pending() == 0 })
	if n := in.count(); n != 5 {
		t.Errorf("%d posts arrived, want one at each and three at the one that is enabled", n)
	}
	skipped := 0
	for _, d := range k.deliveries(s, who, "&endpoint_id="+retried.EndpointID) {
		if d.Status == stateSkipped && d.Reason != nil && *d.Reason == reasonDisabled && len(d.Attempts) == 0 {
			skipped++
		}
	}
	if skipped != 3 {
		t.Errorf("%d are skipped since it is disabled, want 3", skipped)
	}
}

func TestWhatWaitsForARetryIsSkippedOnceItsEndpointIsDisabled(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	s := k.service(lenient)
	k.allow(k.register(s, who, in.URL, "*"), 20)
	k.run(s.Run)
	k.fanOut(s, joinedMany(t, who.tenant, 3)...)
	testkit.Eventually(t, soon, "all wait", func() bool { return k.count("select count(*) from pending where attempts = 1") == 3 })
	k.exec("update endpoints set disabled_reason = 'a test'")
	testkit.Eventually(t, soon, "all are skipped", func() bool { return k.inState(stateSkipped) == 3 })
	for _, d := range k.deliveries(s, who, "") {
		if d.Reason == nil || *d.Reason != reasonDisabled || len(d.Attempts) != 1 {
			t.Errorf("delivery %+v", d)
		}
	}
}

func TestFewerAttemptsHoldForWhatWaitsForOne(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	s := k.service(lenient)
	created := k.register(s, who, in.URL, "*")
	k.allow(created, 20)
	k.run(s.Run)
	k.fanOut(s, joinedMany(t, who.tenant, 3)...)
	testkit.Eventually(t, soon, "all wait", func() bool { return k.count("select count(*) from pending where attempts = 1") == 3 })
	k.allow(created, 1)
	k.exec("update pending set due_at = now()")
	testkit.Eventually(t, soon, "all have failed", func() bool { return k.inState(stateFailed) == 3 })
	if n := in.count(); n != 3 {
		t.Errorf("%d posts arrived, want 3", n)
	}
}

func TestADeadWorkersDeliveryIsSentAgainWhereTheEndpointAllowedItThen(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		attempts, allowed, now int // made before, allowed at the claim, and allowed since
		again                  bool
	}{
		"the first of two":                   {0, 2, 2, true},
		"the last of two":                    {1, 2, 2, false},
		"the only one":                       {0, 1, 1, false},
		"the only one, then two are allowed": {0, 1, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newStack(t)
			who := k.member(uuid.New())
			in := newInbox(t, nil)
			s := k.service(lenient)
			k.allow(k.register(s, who, in.URL, "*"), row.now)
			e := joined(t, who.tenant, time.Now())
			k.fanOut(s, e)
			k.exec(`update pending set claim = gen_random_uuid(), claimed_at = now() - interval '31 s', attempts = $1::smallint, allowed = $2,
				due_at = case when $1::smallint > 0 then now() end`, row.attempts, row.allowed)
			k.run(s.Run)
			want, posts := stateUnknown, 0
			if row.again {
				want, posts = stateDelivered, 1
			}
			testkit.Eventually(t, soon, "it is "+want, func() bool { return k.inState(want) == 1 })
			if n := in.count(); n != posts {
				t.Errorf("%d posts arrived, want %d", n, posts)
			}
			if d := k.deliveries(s, who, "")[0]; len(d.Attempts) != 1+posts || d.Attempts[0].DurationMS != nil {
				t.Errorf("attempts %+v", d.Attempts)
			}
		})
	}
}

func TestWhatTurnsOutToHaveArrivedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.allow(k.register(s, who, "https://example.com/", "*"), 3)
	k.fanOut(s, joinedMany(t, who.tenant, 2)...)
	jobs, err := take(t.Context(), s.deps.Pool, s.dispatcher.lanes.take(), uuid.New())
	if err != nil || len(jobs) != 2 {
		t.Fatalf("claimed %d, %v", len(jobs), err)
	}
	k.exec("update pending set claimed_at = claimed_at - interval '1 h'")
	if err := s.sweeper.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := k.count("select count(*) from pending where attempts = 1 and claim is null"); n != 2 {
		t.Fatalf("%d wait to be sent again, want 2", n)
	}
	late := []attempt{
		{claimed: jobs[0], outcome: outcome{Delivered: true, StatusCode: 200}},
		{claimed: jobs[1], outcome: outcome{Error: failedTimeout}, again: time.Second},
	}
	if err := s.dispatcher.recorder.write(late); err != nil {
		t.Fatal(err)
	}
	if delivered, waiting := k.inState(stateDelivered), k.waiting(); delivered != 1 || waiting != 1 {
		t.Errorf("%d are delivered and %d wait, want 1 and 1", delivered, waiting)
	}
	if n := k.count("select count(*) from attempts where duration_ms is not null"); n != 2 {
		t.Errorf("of %d attempts the outcome is noted, want 2", n)
	}
}

// Everything that is sent again hangs, and there is far more of it than there are slots.
func TestABacklogOfRetriesDelaysNoFirstAttempt(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	var mu sync.Mutex
	seen := map[string]bool{}
	var hanging atomic.Int32
	release := make(chan struct{})
	defer close(release)
	in := newInbox(t, nil)
	in.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signature := r.Header.Get("X-Service-Signature")
		mu.Lock()
		again := seen[signature]
		seen[signature] = true
		mu.Unlock()
		if again {
			hanging.Add(1)
			<-release
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	config := lenient
	config.Timeout, config.Lease = time.Minute, time.Hour
	s := k.service(config)
	s.dispatcher.retrier.backoff = haste
	nobodyPaces(s)
	for i := range 5 {
		k.allow(k.register(s, who, fmt.Sprint(in.URL, "/", i), "*"), 20)
	}
	k.run(s.Run)
	firsts := func(events, of int) {
		k.fanOut(s, joinedMany(t, who.tenant, events)...)
		testkit.Eventually(t, soon, "every first attempt is made", func() bool {
			return k.count("select count(*) from attempts") == of
		})
	}
	firsts(200, 1000)
	testkit.Eventually(t, soon, "retries hang", func() bool { return hanging.Load() >= againPerEndpoint })
	firsts(100, 1500)
	if n := hanging.Load(); n > againPerTenant {
		t.Errorf("%d retries are in flight, want %d at most", n, againPerTenant)
	}
}

func TestAStopPutsBackWhatWasToBeSentAgain(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.allow(k.register(s, who, in.URL, "*"), 2)
	k.fanOut(s, joinedMany(t, who.tenant, 3)...)
	k.exec("update pending set attempts = 1, due_at = now()")
	s.dispatcher.again.wake(map[lane]time.Time{laneOf(t, k): {}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.dispatcher.dispatch(ctx, s.dispatcher.again, takeAgain)
	if waiting := k.waiting(); waiting != 3 || in.count() != 0 {
		t.Errorf("%d wait and %d posts arrived, want 3 and none", waiting, in.count())
	}
	if n := s.dispatcher.again.used; n != 0 {
		t.Errorf("%d slots are still in use", n)
	}
}

// laneOf is the lane of the only endpoint.
func laneOf(t *testing.T, k *stack) (l lane) {
	t.Helper()
	if err := k.pool.QueryRow(t.Context(), "select tenant_id, endpoint_id from endpoints").Scan(&l.tenant, &l.endpoint); err != nil {
		t.Fatal(err)
	}
	return l
}
