package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"
)

// load reports sales without a pause until it is stopped, and remembers every answer.
type load struct {
	shop *shop
	quit chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	receipts map[string]receipt // by external_ref, of those that were answered 201 or 200
	open     map[string]bool    // external_refs whose outcome nobody knows
	statuses map[int]int
	strange  []string // answers that are neither a 201 nor an orderly 503
}

const (
	loadCallers = 4
	loadEvery   = 20 * time.Millisecond // of each caller
)

// startLoad begins to report; the test must stop it.
func startLoad(s *shop, name string) *load {
	l := &load{shop: s, quit: make(chan struct{}), receipts: map[string]receipt{}, open: map[string]bool{}, statuses: map[int]int{}}
	for caller := range loadCallers {
		l.done.Go(func() {
			tick := time.NewTicker(loadEvery)
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

func (l *load) report(ref string) {
	got, err := l.shop.try("POST", "/api/v1/sales", l.shop.report(ref))
	l.mu.Lock()
	defer l.mu.Unlock()
	var r receipt
	switch {
	case err != nil:
		l.strange = append(l.strange, err.Error())
		l.open[ref] = true
		return
	case got.status == http.StatusCreated || got.status == http.StatusOK:
		if err := json.Unmarshal(got.body, &r); err != nil {
			l.strange = append(l.strange, got.String())
		}
		l.receipts[ref] = r
		delete(l.open, ref)
	case got.status == http.StatusServiceUnavailable && got.code() == "unavailable" && got.header.Get("Retry-After") != "":
		l.open[ref] = true
	default:
		l.strange = append(l.strange, got.String())
		l.open[ref] = true
	}
	l.statuses[got.status]++
}

// answered is how many calls were answered with a status.
func (l *load) answered(status int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.statuses[status]
}

// stop ends the load and returns the receipts. It fails where an answer was anything
// but a 201 or, if some may be refused, an orderly 503.
func (l *load) stop(t testing.TB, someRefused bool) map[string]receipt {
	t.Helper()
	close(l.quit)
	l.done.Wait()
	if len(l.strange) > 0 {
		t.Errorf("%d calls were answered strangely, the first: %s", len(l.strange), l.strange[0])
	}
	if !someRefused && len(l.open) > 0 {
		t.Errorf("%d of %d sales were not accepted: %v", len(l.open), len(l.open)+len(l.receipts), l.statuses)
	}
	return l.receipts
}

// repeatOpen reports again what has no outcome, as a caller is told to do, until each
// has one.
func (l *load) repeatOpen(t testing.TB) {
	t.Helper()
	for ref := range maps.Clone(l.open) {
		l.report(ref)
	}
	if len(l.open) > 0 {
		t.Errorf("%d sales have no outcome even after a repeat", len(l.open))
	}
}
