package webhooks

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/testkit"
)

func TestADeliveryOfADeadWorkerBecomesUnknownAndIsNotSent(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.fanOut(s, joinedMany(t, who.tenant, 2)...)
	k.exec("update pending set claim = gen_random_uuid(), claimed_at = now() - interval '31 s'")
	k.exec("update pending set claimed_at = now() where delivery_id = (select max(delivery_id::text)::uuid from pending)")
	k.run(s.Run)
	fresh := joined(t, who.tenant, time.Now())
	k.fanOut(s, fresh)
	testkit.Eventually(t, soon, "it is unknown", func() bool { return k.inState(stateUnknown) == 1 })
	testkit.Eventually(t, soon, "the next is delivered", func() bool { return k.inState(stateDelivered) == 1 })
	in.mustHaveOnce(t, fresh)
	if n := k.sending(); n != 1 {
		t.Errorf("%d are being sent, want the one whose lease has not run out", n)
	}
	for _, d := range k.deliveries(s, who, "") {
		if d.Status != "unknown" {
			continue
		}
		if len(d.Attempts) != 1 || d.Attempts[0].At == "" || d.Attempts[0].DurationMS != nil || d.Attempts[0].StatusCode != nil || d.Attempts[0].Error != nil {
			t.Errorf("attempts %+v", d.Attempts)
		}
		var detail wire
		k.ask(s, who, "GET", "/api/v1/webhook-deliveries/"+d.DeliveryID, "").must(200, &detail)
		if detail.Request == nil || detail.Request.URL != in.URL || detail.Request.Headers["X-Service-Signature"] == "" {
			t.Errorf("request %+v", detail.Request)
		}
	}
}

func TestEventsOfOneMillisecondAreClaimedTogether(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, who, "https://example.com/", "*")
	now := time.Now().Truncate(time.Millisecond).Add(time.Millisecond)
	k.fanOut(s, joined(t, who.tenant, now.Add(800*time.Microsecond)))
	grants := s.dispatcher.lanes.take() // since the first
	k.fanOut(s, joined(t, who.tenant, now.Add(100*time.Microsecond)))
	jobs, err := take(t.Context(), s.deps.Pool, grants, uuid.New())
	if err != nil || len(jobs) != 2 || k.sending() != 2 {
		t.Errorf("%d were handed out and %d claimed, want both; %v", len(jobs), k.sending(), err)
	}
}

func TestAnOutcomeCountsOnlyUnderItsOwnClaim(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, who, "https://example.com/", "*")
	k.fanOut(s, joinedMany(t, who.tenant, 2)...)
	grants := s.dispatcher.lanes.take()
	jobs, err := take(t.Context(), s.deps.Pool, grants, uuid.New())
	if err != nil || len(jobs) != 2 {
		t.Fatalf("claimed %d, %v", len(jobs), err)
	}
	foreign, own := attempt{claimed: jobs[0], outcome: outcome{Delivered: true}}, attempt{claimed: jobs[1], outcome: outcome{Delivered: true}}
	foreign.claim = uuid.New()
	if err := s.dispatcher.recorder.write([]attempt{foreign, own}); err != nil {
		t.Fatal(err)
	}
	if sending, delivered, noted := k.sending(), k.inState(stateDelivered), k.count("select count(*) from attempts"); sending != 1 || delivered != 1 || noted != 1 {
		t.Errorf("%d are being sent, %d delivered, %d attempts noted; want 1 of each", sending, delivered, noted)
	}

	// The lease runs out, and then the worker turns out to be alive.
	foreign.claim = jobs[0].claim
	k.exec("update pending set claimed_at = claimed_at - interval '1 h'")
	if err := s.sweeper.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := k.inState(stateUnknown); n != 1 {
		t.Fatalf("%d are unknown", n)
	}
	if n := k.count("select count(*) from attempts where url is null"); n != 1 {
		t.Error("it is noted where the worker sent it, which only the worker knows")
	}
	if err := s.dispatcher.recorder.write([]attempt{foreign}); err != nil {
		t.Fatal(err)
	}
	if delivered, noted := k.inState(stateDelivered), k.count("select count(*) from attempts where duration_ms is not null and url = 'https://example.com/'"); delivered != 2 || noted != 2 {
		t.Errorf("%d delivered, %d attempts noted; want 2 of each", delivered, noted)
	}
}

// A process may be stopped between the claim and the attempt for longer than others wait.
func TestNothingIsSentUnderAClaimThatHalfOfTheLeaseIsGoneOf(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	k.fanOut(s, joinedMany(t, who.tenant, 3)...)
	s.dispatcher.lease = 200 * time.Millisecond
	slow := func(ctx context.Context, pool *pgxpool.Pool, grants []grant, token uuid.UUID) ([]claimed, error) {
		began := time.Now()
		jobs, err := take(ctx, pool, grants, token)
		testkit.Eventually(t, soon, "half of the lease is gone", func() bool { return time.Since(began) > s.dispatcher.lease/2 })
		return jobs, err
	}
	s.dispatcher.dispatch(t.Context(), s.dispatcher.lanes, slow)
	s.dispatcher.sending.Wait()
	if waiting, posts := k.waiting(), in.count(); waiting != 3 || posts != 0 {
		t.Errorf("%d wait and %d posts arrived, want 3 and none", waiting, posts)
	}
	if n := slotsInUse(s); n != 0 {
		t.Errorf("%d slots are still in use", n)
	}
}

func TestWhatIsClaimedAsItIsMadeIsSentOnlyInTheFirstHalfOfTheLease(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.register(s, who, in.URL, "*")
	s.dispatcher.lease = 0 // whatever is claimed is too old
	k.run(s.dispatcher.run)
	k.awaitDispatcher(s)
	k.fanOut(s, joinedMany(t, who.tenant, 3)...)
	testkit.Eventually(t, soon, "all are put back", func() bool { return k.waiting() == 3 && slotsInUse(s) == 0 })
	if n := in.count(); n != 0 {
		t.Errorf("%d posts arrived", n)
	}
}
