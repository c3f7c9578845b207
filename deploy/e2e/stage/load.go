package stage

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Load reports sales without a pause until it is stopped, and remembers every answer.
type Load struct {
	shop *Shop
	quit chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	receipts map[string]Receipt // by external_ref, of those that were answered 201 or 200
	open     map[string]bool    // external_refs whose outcome nobody knows
	statuses map[int]int
	strange  []string // answers that are neither a 201 nor an orderly 503
	breaks   bool     // connections may break
	calls    latencies
}

// LoadCallers is how many callers a load has; each has one sale under way.
const LoadCallers = 4

const loadEvery = 20 * time.Millisecond // of each caller

// StartLoad begins to report; the test must stop it.
func StartLoad(s *Shop, name string) *Load { return StartLoadEvery(s, name, loadEvery) }

// StartLoadEvery is StartLoad with each caller's time from one sale to the next.
func StartLoadEvery(s *Shop, name string, every time.Duration) *Load {
	l := &Load{shop: s, quit: make(chan struct{}), receipts: map[string]Receipt{}, open: map[string]bool{}, statuses: map[int]int{}}
	for caller := range LoadCallers {
		l.done.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for i := 0; ; i++ {
				l.report(fmt.Sprintf("%s-%d-%d", name, caller, i))
				select {
				case <-l.quit:
					return
				case <-tick.C:
				}
			}
		})
	}
	return l
}

// MayBreak says that from now on a connection may break without an answer, as when the
// process at its other end is killed. The outcome of such a sale is open.
func (l *Load) MayBreak() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaks = true
}

func (l *Load) report(ref string) {
	began := time.Now()
	got, err := l.shop.Try("POST", "/api/v1/sales", l.shop.Report(ref))
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls.add(took, got.Status)
	var r Receipt
	switch {
	case err != nil:
		if !l.breaks {
			l.strange = append(l.strange, err.Error())
		}
		l.open[ref] = true
		return
	case got.Status == http.StatusCreated || got.Status == http.StatusOK:
		if err := json.Unmarshal(got.Body, &r); err != nil {
			l.strange = append(l.strange, got.String())
		}
		l.receipts[ref] = r
		delete(l.open, ref)
	case got.Status == http.StatusServiceUnavailable && got.Code() == "unavailable" && got.Header.Get("Retry-After") != "":
		l.open[ref] = true
	default:
		l.strange = append(l.strange, got.String())
		l.open[ref] = true
	}
	l.statuses[got.Status]++
}

// Answered is how many calls were answered with a status.
func (l *Load) Answered(status int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.statuses[status]
}

// Stop ends the load and returns the receipts. It fails where an answer was anything
// but a 201 or, if some may be refused, an orderly 503.
func (l *Load) Stop(t testing.TB, someRefused bool) map[string]Receipt {
	t.Helper()
	close(l.quit)
	l.done.Wait()
	if len(l.strange) > 0 {
		t.Errorf("%d calls were answered strangely, the first: %s", len(l.strange), l.strange[0])
	}
	if !someRefused && len(l.open) > 0 {
		t.Errorf("%d of %d sales were not accepted: %v", len(l.open), len(l.open)+len(l.receipts), l.statuses)
	}
	return l.Receipts()
}

// Receipts are all that was acknowledged so far, also by a repeat.
func (l *Load) Receipts() map[string]Receipt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.receipts)
}

// RepeatOpen reports again what has no outcome, as a caller is told to do, until each
// has one.
func (l *Load) RepeatOpen(t testing.TB) {
	t.Helper()
	for ref := range maps.Clone(l.open) {
		l.report(ref)
	}
	if len(l.open) > 0 {
		t.Errorf("%d sales have no outcome even after a repeat", len(l.open))
	}
}
