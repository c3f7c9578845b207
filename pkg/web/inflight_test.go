package web

import (
	"context"
	"net/http"
	"runtime"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
)

func TestATenantsStormLeavesOthersTheirPlace(t *testing.T) {
	limits := usual
	limits.InFlight, limits.Burst = 3, 10
	s := newLimitedShop(t, limits)
	tenant := uuid.New()
	keys := []string{s.issue(func(k *auth.Key) { k.TenantID = tenant }), s.issue(func(k *auth.Key) { k.TenantID = tenant })}
	entered, proceed := make(chan bool), make(chan bool)
	s.outcome = func(*Call) (Answer, error) {
		entered <- true
		<-proceed
		return Answer{Status: http.StatusOK}, nil
	}
	answers := make(chan answer, limits.InFlight)
	get := func(key string) answer {
		return s.call("GET", "/api/v1/outcomes/x", "", "Authorization", "Bearer "+key)
	}
	for i := range limits.InFlight {
		go func() { answers <- get(keys[i%2]) }()
		<-entered
	}
	a := get(keys[0])
	a.refused("one more", 429, "rate_limited")
	for header, want := range map[string]string{
		"Retry-After": "1", "RateLimit-Policy": `"tenant";q=3;qu="concurrent-requests"`, "RateLimit": `"tenant";r=0;t=1`,
	} {
		if got := a.header.Get(header); got != want {
			t.Errorf("%s %q, want %q", header, got, want)
		}
	}
	if a := s.call("GET", "/api/v1/things", ""); a.status != 200 {
		t.Errorf("another tenant is answered %d %s", a.status, a.body)
	}
	if a := s.call("POST", "/admin/v1/things", `{"name":"x"}`, "Authorization", "Bearer "+operatorToken); a.status != 201 {
		t.Errorf("the operator is answered %d %s", a.status, a.body)
	}
	if a := s.call("POST", "/api/v1/things/batch", `{"things":[{"name":"x"}]}`, "Authorization", "Bearer "+keys[0]); a.status != 200 {
		t.Errorf("a batch, of which there may be two, is answered %d %s", a.status, a.body)
	}
	close(proceed)
	for range limits.InFlight {
		if a := <-answers; a.status != 200 {
			t.Errorf("one of those that were let in is answered %d %s", a.status, a.body)
		}
	}
	if a := s.call("GET", "/api/v1/things", "", "Authorization", "Bearer "+keys[0]); a.status != 200 {
		t.Errorf("after the storm: %d %s", a.status, a.body)
	}
	if len(s.limiter.underWay) != 0 {
		t.Errorf("still under way: %v", s.limiter.underWay)
	}
}

func TestACallThatFindsNoPlaceWaitsForOneInTurn(t *testing.T) {
	limits := usual
	limits.InFlight, limits.Burst = 1, 2
	l := NewLimiter(limits)
	at := lane{uuid.New(), single}
	if err := l.enter(t.Context(), at, http.Header{}); err != nil {
		t.Fatal(err)
	}
	order := make(chan int)
	for i := range limits.Burst {
		go func() {
			if err := l.enter(t.Context(), at, http.Header{}); err != nil {
				t.Error(err)
			}
			order <- i
		}()
		for wanted := 0; wanted != i+2; runtime.Gosched() {
			l.mu.Lock()
			wanted = l.underWay[at].wanted
			l.mu.Unlock()
		}
	}
	if err := l.enter(t.Context(), at, http.Header{}); fault.KindOf(err) != fault.Limited {
		t.Errorf("where as many wait as may, one more got %v", err)
	}
	for range limits.Burst {
		l.leave(at)
		<-order
	}
	l.leave(at)
	if len(l.underWay) != 0 {
		t.Errorf("still under way: %v", l.underWay)
	}
}

func TestEachKindOfCallHasANumberOfItsOwn(t *testing.T) {
	tenant := uuid.New()
	for inFlight, batches := range map[int]int{1: 2, 64: 2, 128: 2, 192: 3, 256: 4} {
		limits := usual
		limits.InFlight, limits.Listeners = inFlight, 7
		l := NewLimiter(limits)
		for _, at := range []struct {
			lane
			most int
		}{{lane{tenant, batch}, batches}, {lane{tenant, single}, inFlight}, {lane{tenant, listener}, 7}} {
			n := 0
			noTime, cancel := context.WithCancel(t.Context())
			cancel()
			for l.enter(noTime, at.lane, http.Header{}) == nil {
				n++
			}
			if n != at.most {
				t.Errorf("of %d: %d of %v at once, want %d", inFlight, n, at.lane, at.most)
			}
		}
	}
}

func TestWhateverBecomesOfACallItIsNoLongerUnderWay(t *testing.T) {
	s := newShop(t)
	s.outcome = func(*Call) (Answer, error) { panic("a defect") }
	s.call("GET", "/api/v1/outcomes/x", "").refused("a panic", 500, "internal_error")
	s.outcome = func(*Call) (Answer, error) { return Answer{}, fault.Unreachable(nil) }
	s.call("GET", "/api/v1/outcomes/x", "").refused("an outage", 503, "unavailable")
	s.call("POST", "/api/v1/things", "{").refused("no JSON", 400, "invalid_body")
	s.call("POST", "/api/v1/things", "{}", "Content-Type", "text/xml").refused("XML", 415, "unsupported_media_type")
	s.call("POST", "/api/v1/things/batch", "{}").refused("no batch", 400, "invalid_body")
	credential, _ := auth.Parse(s.key)
	allowed(s.limiter, credential.KeyID)
	s.call("GET", "/api/v1/things", "").refused("too often", 429, "rate_limited")
	if len(s.limiter.underWay) != 0 {
		t.Errorf("still under way: %v", s.limiter.underWay)
	}
}
