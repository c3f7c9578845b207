package web

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
)

// lane is what a tenant may have a number of under way: calls, or batches.
type lane struct {
	tenant uuid.UUID
	batch  bool
}

// enter counts a call of the tenant as under way, until leave, or refuses it. Batches
// have a number of their own, so that they never take the place of other calls: as
// many as have the bodies of that many calls, and at least one.
func (l *Limiter) enter(at lane, header http.Header) error {
	if l == nil {
		return nil
	}
	most, what := l.limits.InFlight, "calls"
	if at.batch {
		most, what = max(1, l.limits.InFlight/(maxBatchBody/maxBody)), "batches"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.underWay[at] >= most {
		limited(header, "tenant", fmt.Sprintf(`q=%d;qu="concurrent-requests"`, most), 0, 0)
		return fault.Newf(fault.Limited, "rate_limited", "this tenant may have %d %s under way at once; repeat it when others are answered", most, what)
	}
	l.underWay[at]++
	return nil
}

// leave ends what enter began.
func (l *Limiter) leave(at lane) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.underWay[at]--; l.underWay[at] == 0 {
		delete(l.underWay, at)
	}
}
