package webhooks

import (
	"maps"
	"net/http"
	"sync"
	"time"
)

const (
	// mostHalvings takes every bound of slots down to one.
	mostHalvings = 6
	// longestPause bounds how long a receiver can have its endpoint held back on a worker.
	longestPause = time.Minute
	// paceKept is how long an endpoint that is not sent anything stays slowed, or is taken
	// for quick.
	paceKept = 10 * time.Minute
	// quickly is how soon a receiver has answered, to the end of its body, whose deliveries
	// are claimed ahead.
	quickly = 10 * time.Millisecond
	// aheadOfQuick is how many deliveries are claimed for each slot of such an endpoint, to
	// be sent one after another: a claim takes longer than its receiver does. All of them
	// become unknown if the worker dies.
	aheadOfQuick = 4
	// slowly is how late an answer must be for what was claimed ahead to be put back. One
	// that is a little late is no reason to: claiming again takes longer.
	slowly = 10 * quickly
	// aheadWithin is how old a claim may be for another of what was claimed ahead to be sent:
	// its endpoint may have been changed or deleted since.
	aheadWithin = 4 * slowly
)

// paces slows endpoints whose receivers fail. Each attempt that fails halves how many may
// be in flight to the endpoint on this worker, down to one, and each that does not
// doubles it again: so a receiver that hangs soon holds one slot and no more. It is
// safe for concurrent use.
type paces struct {
	now func() time.Time

	mu   sync.Mutex
	slow map[lane]pace // of the endpoints that are slowed, and no others
	// quick are the endpoints whose newest attempt was answered quickly, and when that was.
	quick map[lane]time.Time
}

type pace struct {
	halvings int
	until    time.Time // nothing is sent before
	last     time.Time // when the newest outcome came
}

func newPaces(now func() time.Time) *paces {
	return &paces{now: now, slow: map[lane]pace{}, quick: map[lane]time.Time{}}
}

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

// slowed tells whether the endpoint has failed of late, and has not recovered since.
func (p *paces) slowed(l lane) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, slowed := p.slow[l]
	return slowed
}

// ahead is how many deliveries may be claimed for each slot of the endpoint.
func (p *paces) ahead(l lane) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, slowed := p.slow[l]
	if _, quick := p.quick[l]; quick && !slowed {
		return aheadOfQuick
	}
	return 1
}

// quick tells whether the receiver did as well as it must for others to be claimed ahead.
func (o outcome) quick() bool { return o.Delivered && o.Held < quickly }

// note learns from an outcome. A receiver that says that it has too much to do is slowed
// down to one at once, and is sent nothing for as long as it asks, a minute at most.
func (p *paces) note(l lane, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if o.quick() {
		p.quick[l] = now
	} else {
		delete(p.quick, l)
	}
	slowed, known := p.slow[l]
	if o.Delivered && !known {
		return
	}
	slowed.last = now
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
	now := p.now()
	maps.DeleteFunc(p.slow, func(_ lane, slowed pace) bool { return now.Sub(slowed.last) > paceKept })
	maps.DeleteFunc(p.quick, func(_ lane, last time.Time) bool { return now.Sub(last) > paceKept })
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
