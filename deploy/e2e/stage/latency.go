package stage

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// latencies are how long calls took, by what went on meanwhile.
type latencies struct {
	phases []*phase
}

// phase is a stretch of time in which one thing went on.
type phase struct {
	name    string
	took    []time.Duration
	refused int // answered 503
	broken  int // not answered
}

func (l *latencies) begin(name string) { l.phases = append(l.phases, &phase{name: name}) }

func (l *latencies) add(took time.Duration, status int) {
	if len(l.phases) == 0 {
		l.begin("")
	}
	p := l.phases[len(l.phases)-1]
	p.took = append(p.took, took)
	switch status {
	case http.StatusServiceUnavailable:
		p.refused++
	case 0:
		p.broken++
	}
}

// Phase names what goes on from now on.
func (l *Load) Phase(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls.begin(name)
}

// Print shows how long the calls of each phase took. Nothing depends on it.
func (l *Load) Print(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-32s %7s %9s %9s %9s %8s %7s\n", "sales", "calls", "p50", "p99", "longest", "refused", "broken")
	for _, p := range l.calls.phases {
		fmt.Fprintf(&table, "%-32s %7d %9s %9s %9s %8d %7d\n", p.name, len(p.took), p.quantile(0.5), p.quantile(0.99), p.quantile(1), p.refused, p.broken)
	}
	t.Log(table.String())
}

// quantile is the time within which that part of the calls was answered.
func (p *phase) quantile(part float64) time.Duration {
	if len(p.took) == 0 {
		return 0
	}
	took := slices.Sorted(slices.Values(p.took))
	return took[min(int(part*float64(len(took))), len(took)-1)].Round(100 * time.Microsecond)
}
