package goals

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestWhoDoesNotKeepUpIsDroppedAndHoldsUpNobody(t *testing.T) {
	ls := newListeners(nil)
	g := &goal{tenantID: uuid.New(), id: uuid.New()}
	slow, quick := ls.join(g, nil), ls.join(g, nil)
	slow.hears, quick.hears = true, true
	const many = 10 * queueLength
	for horizon := range int64(many) {
		ls.update(goalKey{g.tenantID, g.id}, func(a *audience) { a.tell(news{horizon: horizon}) })
		if n := <-quick.news; n.horizon != horizon {
			t.Fatalf("the quick one hears %d, want %d", n.horizon, horizon)
		}
	}
	held := 0
	for range slow.news { // it was closed: this ends
		held++
	}
	if held != queueLength || !strings.Contains(slow.dropped, "too slow") {
		t.Errorf("the slow one was left with %d news and %q", held, slow.dropped)
	}
	if n := ls.heard(g, slow); n != 0 {
		t.Errorf("who was dropped has heard up to %d", n)
	}
	ls.leave(g, slow)
	ls.leave(g, quick)
	if len(ls.audiences) != 0 {
		t.Error("somebody is left behind")
	}
}

func TestWhoHasNewsToTakeHasNotHeardAllYet(t *testing.T) {
	ls := newListeners(nil)
	g := &goal{tenantID: uuid.New(), id: uuid.New()}
	l := ls.join(g, nil)
	if n := ls.heard(g, l); n != 0 {
		t.Errorf("before the first look it has heard up to %d", n)
	}
	l.hears = true
	ls.update(goalKey{g.tenantID, g.id}, func(a *audience) {
		a.position = 7
		a.tell(news{horizon: 7})
	})
	if n := ls.heard(g, l); n != 0 {
		t.Errorf("with news in its queue it has heard up to %d", n)
	}
	<-l.news
	if n := ls.heard(g, l); n != 7 {
		t.Errorf("with all news taken it has heard up to %d, want 7", n)
	}
}

func TestAnAudienceEndsWithItsLastListenerAlsoWhereThatWasDropped(t *testing.T) {
	ls := newListeners(nil)
	g := &goal{tenantID: uuid.New(), id: uuid.New()}
	slow := ls.join(g, nil)
	slow.hears = true
	for horizon := range int64(queueLength + 1) {
		ls.update(goalKey{g.tenantID, g.id}, func(a *audience) { a.tell(news{horizon: horizon}) })
	}
	if slow.dropped == "" {
		t.Fatal("it was not dropped: this tells nothing")
	}
	ls.leave(g, slow)
	if len(ls.audiences) != 0 {
		t.Error("its goal is looked at for ever")
	}
}
