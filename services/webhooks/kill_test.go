package webhooks

import (
	"bufio"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

// process is a worker that can be killed, from any goroutine and more than once.
type process struct {
	cmd  *exec.Cmd
	dead chan struct{}
}

// startWorker returns when the worker takes deliveries.
func startWorker(t *testing.T, url string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(program), dead: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerVariable+"="+url)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.dead)
		_ = p.cmd.Wait() // it is killed
	}()
	t.Cleanup(p.kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != workerReady {
		t.Fatalf("the worker says %q: %v", line, err)
	}
	return p
}

// kill ends the worker with kill -9 and returns when it is dead.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be dead already
	<-p.dead
}

// terminate asks the worker to stop, as an operator does.
func (p *process) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) } // it may be dead already

// trigger strikes a worker at the request after so many others, before or after that is
// answered.
type trigger struct {
	mu     sync.Mutex
	strike func()
	others int
	before bool
	struck chan struct{}
}

func (g *trigger) arm(strike func(), others int, before bool) (struck <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.strike, g.others, g.before, g.struck = strike, others, before, make(chan struct{})
	return g.struck
}

func (g *trigger) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	strike, before, struck := g.strike, g.before, g.struck
	g.others--
	fire := strike != nil && g.others < 0
	if fire {
		g.strike = nil
	}
	g.mu.Unlock()
	if !fire {
		return
	}
	if !before {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // its worker may be gone
	}
	strike()
	close(struck)
}

// TestNothingIsPostedTwiceHoweverOftenItsWorkerIsKilled kills a real process twenty
// times while it has sent what it has not recorded.
func TestNothingIsPostedTwiceHoweverOftenItsWorkerIsKilled(t *testing.T) {
	t.Parallel()
	const kills, perKill = 20, 150
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(workerConfig)
	var guillotine trigger
	in := newInbox(t, guillotine.ServeHTTP)
	k.register(s, who, in.URL, "*")
	events := joinedMany(t, who.tenant, kills*perKill)
	k.fanOut(s, events...)

	certain := 0 // deliveries that cannot have been recorded
	for range kills {
		before := rand.IntN(2) == 0
		if before {
			certain++
		}
		worker := startWorker(t, k.url)
		select {
		case <-guillotine.arm(worker.kill, rand.IntN(30), before):
		case <-time.After(soon):
			t.Fatal("the worker sends nothing")
		}
	}
	startWorker(t, k.url)
	testkit.Eventually(t, 2*soon, "every delivery has an end", func() bool { return k.pending() == 0 })

	times := in.timesPosted(t)
	states := map[string]int{}
	for _, d := range k.deliveries(s, who, "") {
		states[d.Status]++
		switch n := times[d.EventID]; {
		case n > 1:
			t.Errorf("event %s was posted %d times", d.EventID, n)
		case n == 0 && d.Status != "unknown":
			t.Errorf("event %s is %s and was never posted", d.EventID, d.Status)
		}
		if len(d.Attempts) != 1 {
			t.Errorf("event %s has %d attempts", d.EventID, len(d.Attempts))
		}
	}
	if states["delivered"]+states["unknown"] != len(events) || states["unknown"] < certain || states["delivered"] == 0 {
		t.Errorf("after %d kills, %d of them before an answer: %v of %d", kills, certain, states, len(events))
	}
	t.Logf("after %d kills: %v", kills, states)
	mustBeOf(t, times, events)
}

func mustBeOf(t *testing.T, times map[string]int, events []event.Sealed) {
	t.Helper()
	known := map[string]bool{}
	for _, e := range events {
		known[e.ID.String()] = true
	}
	for id := range times {
		if !known[id] {
			t.Errorf("event %s was never told", id)
		}
	}
}
