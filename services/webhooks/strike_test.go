package webhooks

import (
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

// strikes is how often a worker is struck: a few times, or with E2E_FULL=1 in full.
func strikes(few, full int) int {
	if os.Getenv("E2E_FULL") == "1" {
		return full
	}
	return few
}

// load keeps two endpoints of one tenant busy, one that is sent everything once and one
// that has retries.
type load struct {
	*stack
	who     member
	s       *Service // of which nothing runs
	in      *inbox
	trigger trigger
	once    wire
	again   wire
	events  []event.Sealed
}

// newLoad has a receiver that takes its time, and now and then fails what is not sent
// once only.
func newLoad(t *testing.T) *load {
	t.Helper()
	k := newStack(t)
	l := &load{stack: k, who: k.member(uuid.New()), s: k.service(workerConfig)}
	l.in = newInbox(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(rand.N(10 * time.Millisecond)):
		}
		if r.URL.Path == "/again" && rand.IntN(10) == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		l.trigger.ServeHTTP(w, r)
	})
	l.once = k.register(l.s, l.who, l.in.URL+"/once", "*")
	l.again = k.register(l.s, l.who, l.in.URL+"/again", "*")
	k.allow(l.again, 20)
	return l
}

// refill makes sure that much waits to be sent.
func (l *load) refill() {
	l.t.Helper()
	if l.waiting() > 300 {
		return
	}
	more := joinedMany(l.t, l.who.tenant, 300)
	l.events = append(l.events, more...)
	l.fanOut(l.s, more...)
}

// strike lies in wait for a worker until its turn has come, and strikes it in the middle
// of the load.
func (l *load) strike(blow func(), before bool) {
	l.t.Helper()
	l.refill()
	struck := l.trigger.arm(blow, rand.IntN(100), before)
	for deadline := time.Now().Add(2 * soon); ; l.refill() {
		select {
		case <-struck:
			return
		case <-time.After(100 * time.Millisecond):
			if time.Now().After(deadline) {
				l.t.Fatal("the workers send nothing")
			}
		}
	}
}

// posted counts the POSTs of each event to the path, and fails the test where one had
// other bytes than the event.
func (l *load) posted(path string) map[string]int {
	l.t.Helper()
	bodies := make(map[string]string, len(l.events))
	for _, e := range l.events {
		bodies[string(e.Body)] = e.ID.String()
	}
	times := map[string]int{}
	for _, p := range l.in.posts() {
		if p.path != path {
			continue
		}
		id, ok := bodies[string(p.body)]
		if !ok {
			l.t.Errorf("a post had the bytes of no event: %s", p.body)
		}
		times[id]++
	}
	return times
}

// statuses are those of the endpoint's deliveries by event.
func (l *load) statuses(of wire) map[string]string {
	l.t.Helper()
	found := map[string]string{}
	for _, d := range l.deliveries(l.s, l.who, "&endpoint_id="+of.EndpointID) {
		found[d.EventID] = d.Status
	}
	return found
}

// mustHaveOnce fails the test where an event was posted twice to the endpoint that is sent
// everything once, or was not posted and is said to have arrived. It returns how many of
// its deliveries have come to what: on a slow machine some may fail, by the timeout.
func (l *load) mustHaveOnce() map[string]int {
	l.t.Helper()
	times, counts, statuses := l.posted("/once"), map[string]int{}, l.statuses(l.once)
	for id, status := range statuses {
		counts["once "+status]++
		switch n := times[id]; {
		case n > 1:
			l.t.Errorf("event %s was posted %d times", id, n)
		case n == 0 && status == stateDelivered:
			l.t.Errorf("event %s is %s and was never posted", id, status)
		}
	}
	if len(statuses) != len(l.events) || counts["once "+stateDelivered] == 0 {
		l.t.Errorf("of %d events: %v", len(l.events), counts)
	}
	return counts
}

// TestWorkersThatAreKilledUnderLoadSendNothingTwiceAndLoseNothingThatHasRetries kills
// real processes, three of which share the work.
func TestWorkersThatAreKilledUnderLoadSendNothingTwiceAndLoseNothingThatHasRetries(t *testing.T) {
	t.Parallel()
	l := newLoad(t)
	l.refill()
	var workers [3]*process
	for i := range workers {
		workers[i] = startWorker(t, l.url)
	}
	kills := strikes(12, 500)
	for range kills {
		i := rand.IntN(len(workers))
		l.strike(workers[i].kill, rand.IntN(2) == 0)
		workers[i] = startWorker(t, l.url)
	}
	testkit.Eventually(t, 4*soon, "every delivery has an end", func() bool { return l.pending() == 0 })

	counts := l.mustHaveOnce()
	times := l.posted("/again")
	for id, status := range l.statuses(l.again) {
		counts["again "+status]++
		if times[id] == 0 || status != stateDelivered {
			t.Errorf("event %s is %s after %d posts", id, status, times[id])
		}
	}
	t.Logf("after %d kills: %v of %d events", kills, counts, len(l.events))
	if counts["again "+stateDelivered] != len(l.events) {
		t.Errorf("of %d events: %v", len(l.events), counts)
	}
	if counts["once "+stateUnknown] == 0 {
		t.Error("no kill met a delivery on its way")
	}
}

// TestWorkersThatAreAskedToStopUnderLoadLeaveNothingUnknown sends SIGTERM to real
// processes, two of which share the work.
func TestWorkersThatAreAskedToStopUnderLoadLeaveNothingUnknown(t *testing.T) {
	t.Parallel()
	l := newLoad(t)
	l.refill()
	workers := [2]*process{startWorker(t, l.url), startWorker(t, l.url)}
	stops := strikes(6, 50)
	for range stops {
		i := rand.IntN(len(workers))
		l.strike(workers[i].terminate, rand.IntN(2) == 0)
		select {
		case <-workers[i].dead:
		case <-time.After(soon):
			t.Fatal("a worker does not stop")
		}
		if code := workers[i].cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("a worker ended with %d", code)
		}
		workers[i] = startWorker(t, l.url)
	}
	testkit.Eventually(t, 4*soon, "every delivery has an end", func() bool { return l.pending() == 0 })
	if n := l.inState(stateUnknown); n != 0 {
		t.Errorf("after %d stops %d deliveries are unknown", stops, n)
	}
	if n := l.count("select count(*) from attempts where duration_ms is null"); n != 0 {
		t.Errorf("of %d attempts nobody knows the outcome", n)
	}
	t.Logf("after %d stops: %v of %d events", stops, l.mustHaveOnce(), len(l.events))
}
