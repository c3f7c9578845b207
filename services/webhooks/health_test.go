package webhooks

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
)

func TestAnEndpointIsDisabledAfterFiveDaysOfFailuresOnly(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		since    string // the first failure
		answer   int
		disabled bool
	}{
		"failures for five days":            {"5 days 1 min", 500, true},
		"failures for not quite five days":  {"4 days 23 h 58 min", 500, false},
		"a success after five days of them": {"9 days", 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newStack(t)
			who := k.member(uuid.New())
			in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(row.answer) })
			s := k.service(lenient)
			created := k.register(s, who, in.URL, "*")
			other := k.register(s, who, in.URL, "*")
			k.exec("update endpoints set failing_since = now() - $2::interval where endpoint_id = $1", created.EndpointID, row.since)
			k.run(s.dispatcher.run)
			k.awaitDispatcher(s)
			k.fanOut(s, joined(t, who.tenant, time.Now()))
			testkit.Eventually(t, soon, "both have an outcome", func() bool { return k.pending() == 0 })
			if err := s.sweeper.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}

			var now wire
			k.ask(s, who, "GET", endpointsPath+"/"+created.EndpointID, "").must(200, &now)
			if disabled := now.Status == statusDisabled; disabled != row.disabled {
				t.Errorf("it is %s", now.Status)
			}
			if row.disabled && (now.DisabledReason == nil || !strings.HasPrefix(*now.DisabledReason, reasonFailing+"20")) {
				t.Errorf("the reason is %v", now.DisabledReason)
			}
			failing := k.count("select count(*) from endpoints where failing_since is not null and endpoint_id = $1", created.EndpointID)
			if want := row.answer != 200 && !row.disabled; (failing == 1) != want {
				t.Errorf("it is written to be failing: %d", failing)
			}
			k.ask(s, who, "GET", endpointsPath+"/"+other.EndpointID, "").must(200, &now)
			if now.Status != statusEnabled {
				t.Errorf("an endpoint that failed once is %s", now.Status)
			}
		})
	}
}

func TestOneSuccessAmongFailuresBeginsTheFiveDaysAnew(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	var failing atomic.Bool
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) {
		if failing.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.exec("update endpoints set failing_since = now() - interval '9 days'")
	k.run(s.dispatcher.run)
	k.awaitDispatcher(s)
	before := time.Now().Add(-time.Second)
	for i, fails := range []bool{true, false, true} { // all within one sweep
		failing.Store(fails)
		k.fanOut(s, joined(t, who.tenant, time.Now()))
		testkit.Eventually(t, soon, "it has an outcome", func() bool { return in.count() == i+1 && k.pending() == 0 })
	}
	if err := s.sweeper.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := k.count("select count(*) from endpoints where disabled_reason is null and failing_since > $1", before); n != 1 {
		t.Error("what came before the success still counts")
	}
}

func TestALongQueueOfADisabledEndpointIsSkippedPieceByPiece(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, who, "https://example.com/", "*")
	k.backlog(laneOf(t, k), 2*skipAtOnce+10)
	k.exec("update endpoints set disabled_reason = 'a test'")
	for _, want := range []int{skipAtOnce, 2 * skipAtOnce, 2*skipAtOnce + 10} {
		if err := s.sweeper.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := k.inState(stateSkipped); n != want {
			t.Errorf("%d are skipped, want %d", n, want)
		}
	}
	if n := k.count("select count(*) from deliveries where reason is distinct from 'disabled'"); n != 0 {
		t.Errorf("%d have no reason", n)
	}
}

// A sweep that found the endpoint disabled may come to its deliveries long after.
func TestNothingIsSkippedOfAnEndpointThatHasBeenEnabledMeanwhile(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	path := endpointsPath + "/" + k.register(s, who, "https://example.com/", "*").EndpointID
	k.backlog(laneOf(t, k), 3)
	k.exec("update endpoints set disabled_reason = 'a test'")
	_, gone, err := s.sweeper.waiting(t.Context())
	if err != nil || !gone[laneOf(t, k)] {
		t.Fatalf("the sweep does not see that it is disabled: %v, %v", gone, err)
	}

	// It is being enabled while it is skipped, and then it is enabled.
	tx, err := k.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // the pool waits for it
	if _, err := tx.Exec(t.Context(), "update endpoints set disabled_reason = null"); err != nil {
		t.Fatal(err)
	}
	skipped := make(chan error, 1)
	go func() { skipped <- s.sweeper.skip(t.Context(), laneOf(t, k)) }()
	testkit.Eventually(t, soon, "it waits for the endpoint", func() bool { return k.blocked("closed") == 1 })
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-skipped; err != nil {
		t.Fatal(err)
	}
	k.ask(s, who, "PATCH", path, `{"status":"enabled"}`).must(200, nil)
	if err := s.sweeper.skip(t.Context(), laneOf(t, k)); err != nil {
		t.Fatal(err)
	}
	if waiting, lost := k.waiting(), k.inState(stateSkipped); waiting != 3 || lost != 0 {
		t.Errorf("%d wait and %d are skipped, want 3 and none", waiting, lost)
	}
}

func TestWhatCouldNotBeWrittenOfAnEndpointIsWrittenTheNextTime(t *testing.T) {
	t.Parallel()
	gone, failed, delivered := outcome{StatusCode: http.StatusGone, At: time.Now()}, outcome{StatusCode: http.StatusInternalServerError, At: time.Now()}, outcome{Delivered: true}
	for name, row := range map[string]struct {
		before, after     []outcome // the statement that fails
		disabled, failing bool
	}{
		"its receiver is gone":                        {before: []outcome{gone}, disabled: true},
		"and fails since":                             {before: []outcome{gone}, after: []outcome{failed}, disabled: true},
		"and is back since":                           {before: []outcome{gone}, after: []outcome{delivered}},
		"it succeeded after long":                     {before: []outcome{delivered}},
		"it succeeded after long and fails since":     {before: []outcome{delivered}, after: []outcome{failed}, failing: true},
		"it has failed for long, and nothing is new":  {before: []outcome{failed}, disabled: true},
		"it has failed for long, and succeeded since": {before: []outcome{failed}, after: []outcome{delivered}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newStack(t)
			who := k.member(uuid.New())
			s := k.service(lenient)
			k.register(s, who, "https://example.com/", "*")
			k.exec("update endpoints set failing_since = now() - interval '9 days'")
			h, job := s.dispatcher.health, claimed{lane: laneOf(t, k), allowed: 2}
			note := func(outcomes []outcome) {
				for _, o := range outcomes {
					h.note(job, o)
				}
			}
			note(row.before)
			k.exec("alter table endpoints rename to hidden")
			if err := h.save(t.Context(), time.Now()); err == nil {
				t.Fatal("it is written to a table that is not there")
			}
			k.exec("alter table hidden rename to endpoints")
			note(row.after)
			if err := h.save(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			if n := k.count("select count(*) from endpoints where disabled_reason is not null"); (n == 1) != row.disabled {
				t.Errorf("it is disabled: %d", n)
			}
			if n := k.count("select count(*) from endpoints where failing_since is not null"); (n == 1) != row.failing {
				t.Errorf("it is written to be failing: %d", n)
			}
		})
	}
}

// Two replicas that write to the same endpoints, each in an order of its own, would wait
// for one another.
func TestTheHealthOfEndpointsIsWrittenInOneOrder(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	for range 30 {
		l := lane{who.tenant, uuid.MustParse(k.register(s, who, "https://example.com/", "*").EndpointID)}
		s.dispatcher.health.note(claimed{lane: l}, outcome{StatusCode: http.StatusInternalServerError, At: time.Now()})
	}
	first, err := k.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Rollback(context.Background()) }) // the pool waits for it
	if _, err := first.Exec(t.Context(), "select from endpoints order by tenant_id, endpoint_id limit 1 for update"); err != nil {
		t.Fatal(err)
	}
	saved := make(chan error, 1)
	go func() { saved <- s.dispatcher.health.save(t.Context(), time.Now()) }()
	testkit.Eventually(t, soon, "it waits for the first endpoint", func() bool { return k.blocked("judged") == 1 })
	if n := k.count("select count(*) from (select from endpoints for update skip locked) free"); n != 29 {
		t.Errorf("while it waits for the first of 30 endpoints, %d are free, want all others", n)
	}
	if err := first.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	if n := k.count("select count(*) from endpoints where failing_since is not null"); n != 30 {
		t.Errorf("%d are written to be failing, want all", n)
	}
}
