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

// usual are the limits of a service that is not told otherwise.
var usual = Limits{PerSecond: 1000, Burst: 2000, InFlight: 256, Listeners: 32, Connections: 1024, FailuresPerSecond: 10, FailureBurst: 100}

// still makes a limiter whose clock the test moves.
func still(limits Limits) (l *Limiter, forward func(time.Duration)) {
	l = NewLimiter(limits)
	now := time.Now()
	l.now = func() time.Time { return now }
	return l, func(d time.Duration) { now = now.Add(d) }
}

// of are limits of which only those on a key matter.
func of(perSecond, burst int) Limits {
	limits := usual
	limits.PerSecond, limits.Burst = perSecond, burst
	return limits
}

// allowed counts how many calls the key has left, up to 10,000.
func allowed(l *Limiter, key string) (n int) {
	for n < 10_000 && l.charge(key, 0, 1, http.Header{}) == nil {
		n++
	}
	return n
}

func TestAKeyHasItsBurstAndThenItsRate(t *testing.T) {
	l, forward := still(of(10, 25))
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
	l, forward := still(of(1, 1))
	allowed(l, "a")
	header := http.Header{}
	err := l.charge("a", 0, 1, header)
	if fault.KindOf(err) != fault.Limited {
		t.Fatal(err)
	}
	wait, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || wait < 1 {
		t.Fatalf("Retry-After %q", header.Get("Retry-After"))
	}
	forward(time.Duration(wait) * time.Second)
	if err := l.charge("a", 0, 1, http.Header{}); err != nil {
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
	l, forward := still(of(10, 25))
	for i := range 1000 {
		l.charge(fmt.Sprint(i), 0, 1, http.Header{})
	}
	forward(time.Minute + time.Second)
	l.charge("new", 0, 1, http.Header{})
	if len(l.keys.of) != 1 {
		t.Errorf("%d keys are remembered, want 1", len(l.keys.of))
	}

	slow, forward := still(of(1, 1000)) // its bucket takes a thousand seconds to fill
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

func TestACallCostsAllOfItsElementsOrNone(t *testing.T) {
	l, forward := still(of(1000, 2000))
	batch := func(n int) (http.Header, error) { // as an endpoint charges for it
		header := http.Header{}
		if err := l.charge("a", 0, 1, header); err != nil {
			return header, err
		}
		return header, l.charge("a", 1, n-1, header)
	}
	for range 2 {
		if _, err := batch(1000); err != nil {
			t.Fatal(err)
		}
	}
	if n := allowed(l, "a"); n != 0 {
		t.Fatalf("after two batches of 1,000 there are %d left", n)
	}
	forward(600 * time.Millisecond)
	header, err := batch(1000)
	if fault.KindOf(err) != fault.Limited || header.Get("Retry-After") != "1" || header.Get("RateLimit") != `"key";r=599;t=1` {
		t.Errorf("with 600 left: %v %v", err, header)
	}
	if n := allowed(l, "a"); n != 599 {
		t.Errorf("a refused batch leaves %d of 600, want all but the one that every call costs", n)
	}
	forward(time.Second)
	if _, err := batch(1000); err != nil {
		t.Errorf("refused after waiting as told: %v", err)
	}
	if n := allowed(l, "a"); n != 0 {
		t.Errorf("%d are left", n)
	}
	if n := allowed(l, "b"); n != 2000 {
		t.Errorf("another key has %d left", n)
	}
}

func TestABatchThatNoAllowanceHoldsTakesAWholeOneAndADebt(t *testing.T) {
	l, forward := still(of(10, 20))
	header := http.Header{}
	if err := l.charge("a", 0, 1, header); err != nil {
		t.Fatal(err)
	}
	if err := l.charge("a", 1, 99, header); err != nil {
		t.Fatalf("a batch of 100 with all of the 20: %v", err)
	}
	err := l.charge("a", 0, 1, header)
	if fault.KindOf(err) != fault.Limited || header.Get("Retry-After") != "9" || header.Get("RateLimit") != `"key";r=0;t=9` {
		t.Errorf("with a debt of 80: %v %v", err, header)
	}
	forward(9 * time.Second)
	if n := allowed(l, "a"); n != 10 {
		t.Errorf("a second after the debt is paid there are %d, want 10", n)
	}
	forward(time.Second)
	if err := l.charge("a", 0, 1, header); err != nil {
		t.Fatal(err)
	}
	err = l.charge("a", 1, 99, header)
	if fault.KindOf(err) != fault.Limited || header.Get("Retry-After") != "2" {
		t.Errorf("a batch of 100 with half of the 20: %v %v", err, header)
	}
}

func TestADebtIsNotForgotten(t *testing.T) {
	l, forward := still(of(1, 1))
	l.charge("a", 0, 1, http.Header{})
	forward(time.Second)
	if err := l.charge("a", 0, 1000, http.Header{}); err != nil {
		t.Fatal(err)
	}
	forward(2 * time.Minute)
	l.charge("b", 0, 1, http.Header{})
	if n := allowed(l, "a"); n != 0 {
		t.Errorf("two minutes after 1,000 calls there are %d left", n)
	}
}
