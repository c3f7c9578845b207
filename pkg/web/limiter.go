package web

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"partilha.dev/pkg/fault"
)

// Limiter bounds how often one key asks, so that one tenant's mistake is not
// everybody's outage. A nil Limiter limits nothing.
type Limiter struct {
	perSecond, burst int
	forget           time.Duration // a key that is idle for so long has its whole burst again
	now              func() time.Time

	mu    sync.Mutex
	keys  map[string]*bucket
	swept time.Time
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

// NewLimiter allows each key perSecond requests a second, and burst at once.
func NewLimiter(perSecond, burst int) *Limiter {
	full := time.Duration(burst) * time.Second / time.Duration(perSecond)
	return &Limiter{
		perSecond: perSecond, burst: burst, forget: max(time.Minute, full), now: time.Now,
		keys: map[string]*bucket{}, swept: time.Now(),
	}
}

// allow takes one request from the key's allowance, or refuses it and says when to
// come again. The headers follow the IETF draft for RateLimit fields.
func (l *Limiter) allow(keyID string, header http.Header) error {
	if l == nil {
		return nil
	}
	now := l.now()
	b := l.bucket(keyID, now)
	if b.AllowN(now, 1) {
		return nil
	}
	wait := math.Ceil((1 - b.TokensAt(now)) / float64(l.perSecond))
	seconds := strconv.Itoa(max(1, int(wait)))
	header.Set("Retry-After", seconds)
	header.Set("RateLimit-Policy", fmt.Sprintf(`"key";q=%d;w=1`, l.perSecond))
	header.Set("RateLimit", fmt.Sprintf(`"key";r=0;t=%s`, seconds))
	return fault.Newf(fault.Limited, "rate_limited", "this key may ask %d times a second; wait as Retry-After says", l.perSecond)
}

func (l *Limiter) bucket(keyID string, now time.Time) *bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.swept) > l.forget {
		for id, b := range l.keys {
			if now.Sub(b.used) > l.forget {
				delete(l.keys, id)
			}
		}
		l.swept = now
	}
	b, ok := l.keys[keyID]
	if !ok {
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(l.perSecond), l.burst)}
		l.keys[keyID] = b
	}
	b.used = now
	return b
}
