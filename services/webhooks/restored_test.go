package webhooks

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/testkit"
)

func TestARestoredBackupSendsNothingAgain(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	endpoint := k.register(s, who, in.URL, "*").EndpointID
	k.exec("update endpoints set created_at = created_at - interval '1 day'")
	moment := time.Now()
	waiting, claimed, failed := joined(t, who.tenant, moment.Add(-3*time.Hour)), joined(t, who.tenant, moment.Add(-2*time.Hour)), joined(t, who.tenant, moment.Add(-4*time.Hour))
	k.fanOut(s, failed)
	k.endAll(endpoint, stateFailed)
	k.fanOut(s, waiting, claimed)
	k.exec("update pending set claim = gen_random_uuid(), claimed_at = now() where event_id = $1", uuid.UUID(claimed.ID))
	replay := k.replay(s, who, endpoint, moment.Add(-24*time.Hour), moment, "")

	for range 2 { // it may be repeated
		var out strings.Builder
		if err := restored(t.Context(), k.pool, moment, &out); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out.String(), "are sent to nobody\n") {
			t.Errorf("it tells %q", out.String())
		}
	}
	k.run(s.dispatcher.run, s.sweeper.run, s.replayer.run)
	again := joined(t, who.tenant, moment.Add(-time.Hour)) // heard of after the backup, and now once more
	fresh := joined(t, who.tenant, time.Now())
	k.fanOut(s, again, fresh)
	testkit.Eventually(t, soon, "what is new is sent", func() bool { return k.inState(stateDelivered) == 1 })
	if n := k.inState(stateUnknown); n != 2 || k.pending() != 0 {
		t.Errorf("%d are unknown and %d pending, want 2 and none", n, k.pending())
	}
	if now := k.ended(s, who, endpoint, replay.ReplayID); now.Status != replayStopped || now.Progress.Done != 0 {
		t.Errorf("the replay %+v", now)
	}
	in.mustHaveOnce(t, fresh)
	if got, want := k.follow(s, who, "limit=100"), idsOf([]event.Sealed{failed, waiting, claimed, again, fresh}); !slices.Equal(got, want) {
		t.Errorf("the feed tells %v, want %v", got, want)
	}
}

func TestTheMomentOfARestoreIsAskedForRightly(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	deps := service.Deps{Pool: k.pool, Now: time.Now}
	for _, moment := range []string{"now", "2026-07-14T10:00:00Z"} {
		if err := restoredCommand(t.Context(), deps, []string{moment}); err != nil {
			t.Errorf("restored %s: %v", moment, err)
		}
	}
	for _, args := range [][]string{{}, {"yesterday"}, {"2026-07-14"}, {time.Now().Add(time.Hour).Format(time.RFC3339)}, {"2026-07-14T10:00:00Z", "x"}} {
		if err := restoredCommand(t.Context(), deps, args); err == nil {
			t.Errorf("restored %v is taken", args)
		}
	}
}
