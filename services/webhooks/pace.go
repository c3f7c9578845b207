package webhooks

import (
	"net/http"
	"sync"
	"time"
)

const (
	// mostHalvings takes every bound of slots down to one.
	mostHalvings = 6
	// longestPause bounds how long a receiver can have its endpoint held back on a worker.
	longestPause = time.Minute
	// paceKept is how long an endpoint that is not sent anything stays slowed.
	paceKept = 10 * time.Minute
)

// paces slows endpoints whose receivers fail. Each attempt that fails halves how many may
// be in flight to the endpoint on this worker, down to one, and each that does not
// doubles it again: so a receiver that hangs soon holds one slot and no more. It is
// safe for concurrent use.
type paces struct {
	now func() time.Time

	mu   sync.Mutex
	slow map[lane]pace // of the endpoints that are slowed, and no others
}

type pace struct {
	halvings int
	until    time.Time // nothing is sent before
	last     time.Time // when the newest outcome came
}

func newPaces(now func() time.Time) *paces { return &paces{now: now, slow: map[lane]pace{}} }

// most is how many of so many attempts may be in flight to the endpoint now.
func (p *paces) most(l lane, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	slowed, ok := p.slow[l]
	switch {
	case !ok:
		return most
	case p.now().Before(slowed.until):
		return 0
	default:
		return max(1, most>>slowed.halvings)
	}
}

// note learns from an outcome. A receiver that says that it has too much to do is slowed
// down to one at once, and is sent nothing for as long as it asks, a minute at most.
func (p *paces) note(l lane, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slowed := p.slow[l]
	slowed.last = p.now()
	switch {
	case o.Delivered:
		slowed.halvings--
	case overloaded(o.StatusCode):
		slowed.halvings = mostHalvings
		slowed.until = slowed.last.Add(min(o.RetryAfter, longestPause))
	default:
		slowed.halvings = min(slowed.halvings+1, mostHalvings)
	}
	if slowed.halvings <= 0 {
		delete(p.slow, l)
		return
	}
	p.slow[l] = slowed
}

// forget drops the endpoints that nothing has been heard of for long.
func (p *paces) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l, slowed := range p.slow {
		if p.now().Sub(slowed.last) > paceKept {
			delete(p.slow, l)
		}
	}
}

// overloaded tells whether a status asks the sender to slow down.
func overloaded(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}
