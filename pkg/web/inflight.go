package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"partilha.dev/pkg/fault"
)

// leastBatches are as many as a tenant may always have under way.
const leastBatches = 2

// placeWithin is how long a call waits for others of its tenant to be answered.
const placeWithin = time.Second

// kind is what a call counts among. A tenant may have a number of each under way, and
// none takes the place of another.
type kind string

const (
	single   kind = "calls"
	batch    kind = "batches"
	reader   kind = "reads"
	listener kind = "calls that listen"
)

// lane is what a tenant may have a number of under way.
type lane struct {
	tenant uuid.UUID
	kind   kind
}

// places are those of one lane.
type places struct {
	free   *semaphore.Weighted // hands them out in the order of arrival
	wanted int                 // calls that have one or wait for one
}

// enter counts a call of the tenant as under way, until leave. Where all of its places
// are taken the call waits for one, and is refused if too many wait already or it takes
// too long. Batches, of which there may be as many as have the bodies of that many calls
// and a few at least, and calls that listen have a number of their own.
//
// Reads are few at once, since each may hold a connection to the database for long: one
// tenant's a quarter of the connections, and those of all tenants half. So however much is
// read, sales, keys and events find connections. Where others' reads take the half, a read
// waits for as long as its call may take.
func (l *Limiter) enter(ctx context.Context, at lane, header http.Header) error {
	if l == nil {
		return nil
	}
	most := l.most(at.kind)
	if p := l.want(at, most); p != nil {
		if p.take(ctx) {
			return l.share(ctx, at)
		}
		l.forgo(at)
	}
	limited(header, "tenant", fmt.Sprintf(`q=%d;qu="concurrent-requests"`, most), 0, 0)
	return fault.Newf(fault.Limited, "rate_limited", "this tenant may have %d %s under way at once; repeat it when others are answered", most, at.kind)
}

// take has one of the places, if it is free in time.
func (p *places) take(ctx context.Context) bool {
	if p.free.TryAcquire(1) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, placeWithin)
	defer cancel()
	return p.free.Acquire(ctx, 1) == nil
}

// share has a read wait for its part of the connections; other calls have it at once.
func (l *Limiter) share(ctx context.Context, at lane) error {
	if at.kind != reader {
		return nil
	}
	if err := l.reading.Acquire(ctx, 1); err != nil {
		l.vacate(at)
		return fault.Unreachable(err)
	}
	return nil
}

// most is how many of a kind a tenant may have under way.
func (l *Limiter) most(of kind) int {
	switch of {
	case batch:
		return max(leastBatches, l.limits.InFlight/(maxBatchBody/maxBody))
	case reader:
		return max(1, min(l.limits.InFlight, l.limits.Connections/4))
	case listener:
		return l.limits.Listeners
	default:
		return l.limits.InFlight
	}
}

// want finds the places of the lane for one more call; nil where too many wait.
func (l *Limiter) want(at lane, most int) *places {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.underWay[at]
	if p == nil {
		p = &places{free: semaphore.NewWeighted(int64(most))}
		l.underWay[at] = p
	}
	if p.wanted >= most+l.limits.Burst {
		return nil
	}
	p.wanted++
	return p
}

// forgo ends what want began.
func (l *Limiter) forgo(at lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.underWay[at]
	if p.wanted--; p.wanted == 0 {
		delete(l.underWay, at)
	}
}

// leave ends what enter began.
func (l *Limiter) leave(at lane) {
	if l == nil {
		return
	}
	if at.kind == reader {
		l.reading.Release(1)
	}
	l.vacate(at)
}

// vacate gives the tenant's place back.
func (l *Limiter) vacate(at lane) {
	l.mu.Lock()
	p := l.underWay[at]
	l.mu.Unlock()
	p.free.Release(1)
	l.forgo(at)
}
