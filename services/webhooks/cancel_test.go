package webhooks

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
)

func TestACancelledReplayQueuesNothingMore(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, stranger := k.member(uuid.New()), k.member(uuid.New())
	reader := k.member(who.tenant, auth.WebhooksRead)
	s := k.service(lenient)
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	k.fanOut(s, joinedMany(t, who.tenant, 2*replayAhead)...)
	k.endAll(endpoint, stateFailed)
	made := k.replay(s, who, endpoint, time.Now().Add(-time.Minute), time.Now().Add(time.Minute), "")
	path := replayPath(endpoint) + "s/" + made.ReplayID
	if _, err := s.replayer.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.ask(s, stranger, "DELETE", path, "").refused(404, "not_found")
	k.ask(s, reader, "DELETE", path, "").refused(403, "insufficient_scope")
	k.ask(s, who, "DELETE", replayPath(endpoint)+"s/"+uuid.NewString(), "").refused(404, "not_found")
	k.ask(s, who, "DELETE", path, "").must(204, nil)
	first := k.ended(s, who, endpoint, made.ReplayID)
	k.exec("delete from pending") // there is room for more
	if _, err := s.replayer.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.ask(s, who, "DELETE", path, "").must(204, nil)
	now := k.ended(s, who, endpoint, made.ReplayID)
	if now.Status != replayStopped || now.Progress.Done != replayAhead || now.EndedAt == nil || *now.EndedAt != *first.EndedAt {
		t.Errorf("it was %+v once it was cancelled and is %+v", first, now)
	}
	if n := k.pending(); n != 0 {
		t.Errorf("%d were queued after it was cancelled", n)
	}
}

func TestAReplayThatIsDoneStaysDoneWhoeverCancelsIt(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	made := k.replay(s, who, endpoint, time.Now().Add(-time.Minute), time.Now(), "")
	if _, err := s.replayer.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.ask(s, who, "DELETE", replayPath(endpoint)+"s/"+made.ReplayID, "").must(204, nil)
	if now := k.ended(s, who, endpoint, made.ReplayID); now.Status != replayDone {
		t.Errorf("it is %+v", now)
	}
}
