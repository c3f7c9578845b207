package webhooks

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/postgres"
)

// A receiver that takes in less than happens has a backlog that only grows.
func TestWhatWasNotSentInTimeSaysSoAndNoLongerHoldsBackRetention(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	now := time.Now()
	s.deps.Now = func() time.Time { return now }
	again := k.register(s, who, "https://example.com/", "*").EndpointID
	k.register(s, who, "https://example.com/", "*")
	k.exec("update endpoints set created_at = created_at - interval '90 days'")
	limit := s.oldestKept().AddDate(0, 0, lookDays)
	old, other := joined(t, who.tenant, limit.Add(-time.Millisecond)), joined(t, who.tenant, limit)
	k.fanOut(s, old, other)
	k.exec("update pending set attempts = 1, due_at = now() + interval '1 hour' where endpoint_id = $1", again)
	sweep := func(want int) {
		t.Helper()
		if err := s.sweeper.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := k.inState(stateSkipped); n != want || k.pending() != 4-want {
			t.Errorf("%d are skipped and %d pending, want %d in all skipped", n, k.pending(), want)
		}
	}
	sweep(0) // they were queued just now, as what somebody has sent again
	k.exec("update pending set queued_at = now() - $1 * interval '1 day', claim = gen_random_uuid(), claimed_at = now()", lookDays)
	sweep(0) // they are just being sent
	k.exec("update pending set claim = null, claimed_at = null")
	dropped := func(days int) bool {
		t.Helper()
		names, err := postgres.DropPartitions(t.Context(), k.pool, Migrations[len(Migrations)-1].Partitions, now.AddDate(0, 0, days))
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(names, "events_p"+old.CreatedAt.UTC().Format("20060102"))
	}
	if dropped(lookDays) {
		t.Error("a day is dropped of which something is still to be sent")
	}
	sweep(2)
	list := k.deliveries(s, who, "&status=skipped")
	if len(list) != 2 {
		t.Errorf("%d are listed", len(list))
	}
	for _, d := range list {
		if d.EventID != old.ID.String() || d.Reason == nil || *d.Reason != reasonOutdated {
			t.Errorf("it is %+v", d)
		}
	}
	if dropped(lookDays - 1) {
		t.Error("its day is dropped before anybody has had the time to look")
	}
	if !dropped(lookDays) {
		t.Error("its day is still kept")
	}
}
