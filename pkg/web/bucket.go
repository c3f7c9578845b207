package web

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds the memory of one limit. Where more ask at once, one that is picked
// by chance is forgotten for each that is new.
const maxBuckets = 1 << 16

// buckets hold one token bucket for each of those who are limited. One that is idle for
// so long that it is full again is forgotten.
type buckets[K comparable] struct {
	perSecond, burst int
	forget           time.Duration

	mu    sync.Mutex
	of    map[K]*bucket
	swept time.Time
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

func newBuckets[K comparable](perSecond, burst int) *buckets[K] {
	full := time.Duration(burst) * time.Second / time.Duration(perSecond)
	return &buckets[K]{perSecond: perSecond, burst: burst, forget: max(time.Minute, full), of: map[K]*bucket{}}
}

// take takes n tokens if at least needed are there, which a bucket can hold, and else
// none. Where n is more than needed it may leave a debt, which is filled up first. It
// returns what was there.
func (b *buckets[K]) take(key K, now time.Time, needed, n int) (found float64, taken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.bucket(key, now)
	found = own.TokensAt(now)
	if found < float64(needed) {
		return found, false
	}
	for ; n > 0; n -= b.burst {
		own.ReserveN(now, min(n, b.burst))
	}
	return found, true
}

func (b *buckets[K]) bucket(key K, now time.Time) *bucket {
	if now.Sub(b.swept) > b.forget {
		for key, idle := range b.of {
			if now.Sub(idle.used) > b.forget && idle.TokensAt(now) >= float64(b.burst) {
				delete(b.of, key)
			}
		}
		b.swept = now
	}
	own, known := b.of[key]
	if !known {
		if len(b.of) >= maxBuckets {
			for other := range b.of {
				delete(b.of, other)
				break
			}
		}
		own = &bucket{Limiter: rate.NewLimiter(rate.Limit(b.perSecond), b.burst)}
		b.of[key] = own
	}
	own.used = now
	return own
}
