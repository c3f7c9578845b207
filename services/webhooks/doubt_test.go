package webhooks

import (
	"testing"

	"github.com/google/uuid"
)

// The claim began before the doubt, and so its lease ends before the doubt is forgotten.
func TestAClaimWhoseCommitLandsLateIsPutBack(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, who, "https://example.com/", "*")
	k.fanOut(s, joinedMany(t, who.tenant, 3)...)
	token := uuid.New()
	s.dispatcher.doubts.add(token, nil)
	if err := s.dispatcher.doubts.settle(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // before it lands, and after
		if err := s.sweeper.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waiting, lost := k.waiting(), k.inState(stateUnknown); waiting != 3 || lost != 0 {
			t.Fatalf("%d wait and %d are unknown, want 3 and none", waiting, lost)
		}
		k.exec("update pending set claim = $1, claimed_at = now() - interval '31 s'", token)
	}

	// No sweep looks for it for ever.
	s.dispatcher.doubts.lease = 0
	for range 2 {
		if err := s.sweeper.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.exec("update pending set claim = $1, claimed_at = now()", token)
	}
	if held, remembered := k.sending(), len(s.dispatcher.doubts.settled); held != 3 || remembered != 0 {
		t.Errorf("%d are claimed and %d doubts left, want 3 and none", held, remembered)
	}
}

func TestWhatCannotBePutBackAtOnceIsPutBackLater(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.register(s, who, "https://example.com/", "*")
	k.fanOut(s, joinedMany(t, who.tenant, 3)...)
	jobs, err := s.dispatcher.claim(take, s.dispatcher.lanes.take(), uuid.New())
	if err != nil || len(jobs) != 3 {
		t.Fatalf("claimed %d, %v", len(jobs), err)
	}
	away := k.open()
	away.Close()
	s.dispatcher.pool = away
	s.dispatcher.putBack(jobs[0].claim, jobs[:2])
	if n := k.sending(); n != 3 {
		t.Fatalf("%d are claimed", n)
	}
	if err := s.sweeper.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if waiting, held := k.waiting(), k.sending(); waiting != 2 || held != 1 {
		t.Errorf("%d wait and %d are claimed, want the 2 that were put back and the one that is being sent", waiting, held)
	}
}
