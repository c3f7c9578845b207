package web

import (
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"partilha.dev/pkg/fault"
)

// Limits are what one replica bears. Every number is at least 1.
type Limits struct {
	PerSecond, Burst                int            // calls of one key, where each element of a batch counts as one
	InFlight                        int            // calls of one tenant under way at once; up to Burst more wait for a moment
	Listeners                       int            // calls of one tenant that listen, beside those
	Connections                     int            // to the database, which all calls share: reads hold half of them at most, one tenant's a quarter
	FailuresPerSecond, FailureBurst int            // calls from one address that show no valid key
	TrustedProxies                  []netip.Prefix // who may say in X-Forwarded-For for whom it asks
}

// Limiter bounds how much one caller asks, so that one caller's mistake is not
// everybody's outage. A nil Limiter limits nothing.
type Limiter struct {
	limits   Limits
	now      func() time.Time
	keys     *buckets[string]
	failures *buckets[netip.Prefix]

	reading *semaphore.Weighted // all tenants' reads

	mu       sync.Mutex
	underWay map[lane]*places
}

// NewLimiter makes a limiter that has seen nobody yet.
func NewLimiter(limits Limits) *Limiter {
	return &Limiter{
		limits: limits, now: time.Now, underWay: map[lane]*places{},
		reading:  semaphore.NewWeighted(int64(max(1, limits.Connections/2))),
		keys:     newBuckets[string](limits.PerSecond, limits.Burst),
		failures: newBuckets[netip.Prefix](limits.FailuresPerSecond, limits.FailureBurst),
	}
}

// charge takes n more from the key's allowance for a call that was charged with paid
// before, or nothing if it does not hold so many. A call that costs more than the
// allowance ever holds needs all of it, and what is missing is taken from what comes
// in next.
func (l *Limiter) charge(keyID string, paid, n int, header http.Header) error {
	if l == nil {
		return nil
	}
	whole := min(paid+n, l.limits.Burst)
	left, taken := l.keys.take(keyID, l.now(), whole-paid, n)
	if taken {
		return nil
	}
	limited(header, "key", fmt.Sprintf("q=%d;w=1", l.limits.PerSecond), left, (float64(whole)-left)/float64(l.limits.PerSecond))
	return fault.Newf(fault.Limited, "rate_limited",
		"this key may make %d calls a second, where each element of a batch counts as one; wait as Retry-After says", l.limits.PerSecond)
}

// limited says on a 429 which limit was met, what is left of it and in how many
// seconds to come again. The headers follow the IETF draft for RateLimit fields.
func limited(header http.Header, name, policy string, left, wait float64) {
	seconds := strconv.Itoa(max(1, int(math.Ceil(wait))))
	header.Set("Retry-After", seconds)
	header.Set("RateLimit-Policy", fmt.Sprintf("%q;%s", name, policy))
	header.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%s", name, max(0, int(left)), seconds))
}
