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

// lane is what a tenant may have a number of under way: calls, or batches.
type lane struct {
	tenant uuid.UUID
	batch  bool
}

// places are those of one lane.
type places struct {
	free   *semaphore.Weighted // hands them out in the order of arrival
	wanted int                 // calls that have one or wait for one
}

// enter counts a call of the tenant as under way, until leave. Where all of its places
// are taken the call waits for one, and is refused if too many wait already or it takes
// too long. Batches have a number of their own, so that they never take the place of
// other calls: as many as have the bodies of that many calls, and a few at least.
func (l *Limiter) enter(ctx context.Context, at lane, header http.Header) error {
	if l == nil {
		return nil
	}
	most, what := l.limits.InFlight, "calls"
	if at.batch {
		most, what = max(leastBatches, l.limits.InFlight/(maxBatchBody/maxBody)), "batches"
	}
	if p := l.want(at, most); p != nil {
		if p.free.TryAcquire(1) {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, placeWithin)
		defer cancel()
		if p.free.Acquire(ctx, 1) == nil {
			return nil
		}
		l.forgo(at)
	}
	limited(header, "tenant", fmt.Sprintf(`q=%d;qu="concurrent-requests"`, most), 0, 0)
	return fault.Newf(fault.Limited, "rate_limited", "this tenant may have %d %s under way at once; repeat it when others are answered", most, what)
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
	l.mu.Lock()
	p := l.underWay[at]
	l.mu.Unlock()
	p.free.Release(1)
	l.forgo(at)
}
