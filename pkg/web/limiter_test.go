package web

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
)

// still makes a limiter whose clock the test moves.
func still(perSecond, burst int) (l *Limiter, forward func(time.Duration)) {
	l = NewLimiter(perSecond, burst)
	now := l.swept
	l.now = func() time.Time { return now }
	return l, func(d time.Duration) { now = now.Add(d) }
}

// allowed counts how many requests the key has left, up to 10,000.
func allowed(l *Limiter, key string) (n int) {
	for n < 10_000 && l.allow(key, http.Header{}) == nil {
		n++
	}
	return n
}

func TestAKeyHasItsBurstAndThenItsRate(t *testing.T) {
	l, forward := still(10, 25)
	if got := allowed(l, "a"); got != 25 {
		t.Errorf("%d at once, want 25", got)
	}
	forward(100 * time.Millisecond)
	if got := allowed(l, "a"); got != 1 {
		t.Errorf("%d after a tenth of a second, want 1", got)
	}
	forward(time.Second)
	if got := allowed(l, "a"); got != 10 {
		t.Errorf("%d after a second, want 10", got)
	}
	if got := allowed(l, "b"); got != 25 {
		t.Errorf("another key: %d, want 25", got)
	}
	forward(time.Hour)
	if got := allowed(l, "a"); got != 25 {
		t.Errorf("%d after an hour, want 25", got)
	}
}

func TestARefusalSaysWhenToComeAgain(t *testing.T) {
	l, forward := still(1, 1)
	allowed(l, "a")
	header := http.Header{}
	err := l.allow("a", header)
	if fault.KindOf(err) != fault.Limited {
		t.Fatal(err)
	}
	wait, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || wait < 1 {
		t.Fatalf("Retry-After %q", header.Get("Retry-After"))
	}
	forward(time.Duration(wait) * time.Second)
	if err := l.allow("a", http.Header{}); err != nil {
		t.Errorf("refused after waiting as told: %v", err)
	}
}

func TestA429CarriesThePolicy(t *testing.T) {
	s := newShop(t)
	credential, _ := auth.Parse(s.key)
	allowed(s.limiter, credential.KeyID)
	a := s.call("GET", "/api/v1/things", "")
	a.refused("one too many", 429, "rate_limited")
	for header, want := range map[string]string{"Retry-After": "1", "RateLimit-Policy": `"key";q=1000;w=1`, "RateLimit": `"key";r=0;t=1`} {
		if got := a.header.Get(header); got != want {
			t.Errorf("%s %q, want %q", header, got, want)
		}
	}
	if other := s.issue(func(*auth.Key) {}); s.call("GET", "/api/v1/things", "", "Authorization", "Bearer "+other).status != 200 {
		t.Error("another key is refused as well")
	}
}

func TestIdleKeysAreForgottenAndGainNothingByIt(t *testing.T) {
	l, forward := still(10, 25)
	for i := range 1000 {
		l.allow(fmt.Sprint(i), http.Header{})
	}
	forward(time.Minute + time.Second)
	l.allow("new", http.Header{})
	if len(l.keys) != 1 {
		t.Errorf("%d keys are remembered, want 1", len(l.keys))
	}

	slow, forward := still(1, 1000) // its bucket takes a thousand seconds to fill
	allowed(slow, "a")
	forward(2 * time.Minute)
	allowed(slow, "b")
	if got := allowed(slow, "a"); got != 120 {
		t.Errorf("after two minutes: %d, want 120", got)
	}
}

func TestNoLimiterLimitsNothing(t *testing.T) {
	var none *Limiter
	if got := allowed(none, "a"); got != 10_000 {
		t.Errorf("%d", got)
	}
}
