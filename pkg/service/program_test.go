package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
	"partilha.dev/pkg/trace"
)

// patience is for what must happen, where the time that it takes is not the promise.
const patience = time.Minute

// runAs in the environment makes this test binary the program of that name.
const runAs = "SERVICE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(runAs) {
	case "shop":
		Main(shopProgram())
	case "publisher":
		Main(Program{Name: "publisher", Schemas: []postgres.Schema{shopSchema}, New: newShop})
	case "listener":
		Main(Program{Name: "listener", Schemas: []postgres.Schema{bus.Schema, shopSchema}, New: newListener})
	default:
		testkit.Main(m)
	}
}

var shopSchema = postgres.Schema{Name: "shop", FS: fstest.MapFS{"00001_init.sql": {Data: []byte(`-- +goose Up
create table shop (id int);
create table visits (at timestamptz not null) partition by range (at);
`)}}, Partitions: []postgres.Partition{{Table: "visits", Days: 2}}}

// shopProgram is a small service with consumers and a command of its own.
func shopProgram() Program {
	return Program{
		Name: "shop", Schemas: []postgres.Schema{bus.Schema, shopSchema}, New: newShop,
		Commands: []Command{
			{Usage: "shelf add NAME [--high]", About: "add a shelf", Run: func(_ context.Context, _ Deps, args []string) error {
				_, err := io.WriteString(os.Stdout, "added "+strings.Join(args, ",")+"\n")
				return err
			}},
			{Usage: "fail", About: "fail", Run: func(context.Context, Deps, []string) error { return errors.New("the shelf is broken") }},
			{Usage: "count SHELF", About: "count", Help: "count counts.\n", Failure: 2, Run: func(_ context.Context, _ Deps, args []string) error {
				if len(args) == 0 {
					return errors.New("name a shelf")
				}
				return Status(1)
			}},
		},
	}
}

// shop answers /wait when it is told to, and works in the background until it is stopped.
type shop struct {
	deps    Deps
	entered chan struct{} // closed when /wait has been asked
	release chan struct{} // lets /wait answer
	stopped chan struct{} // closed when the background is told to stop
	ended   func(Deps)    // called before the background ends
	fail    chan error    // makes the background fail
}

func newShop(_ context.Context, deps Deps) (Service, error) {
	return &shop{
		deps: deps, entered: make(chan struct{}), release: make(chan struct{}), stopped: make(chan struct{}),
		ended: func(Deps) {}, fail: make(chan error),
	}, nil
}

func (s *shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/wait", func(w http.ResponseWriter, _ *http.Request) {
		close(s.entered)
		<-s.release
		io.WriteString(w, "waited")
	})
	mux.HandleFunc("/traced", func(_ http.ResponseWriter, r *http.Request) {
		_, span := trace.Start(r.Context(), "traced")
		span.End()
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") })
	return mux
}

func (s *shop) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		close(s.stopped)
		s.ended(s.deps)
		return nil
	case err := <-s.fail:
		return err
	}
}

func (s *shop) Consumers() []bus.Consumer {
	return []bus.Consumer{bus.OnAny("shop-hear", []string{"goal.reached"}, func(context.Context, *postgres.Tx, []event.Sealed) error {
		if os.Getenv("SHOP_MENDED") == "" {
			return fault.New(fault.Invalid, "invalid_event", "the cause is not mended")
		}
		return nil
	})}
}

// process is the shop as an operator runs it.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	addr  string // of serve, once it is ready
	ended chan struct{}

	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// launch starts the program with these variables and nothing else in its environment.
func launch(t *testing.T, program string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], args...), ended: make(chan struct{})}
	p.cmd.Env = append([]string{runAs + "=" + program, "PATH=" + os.Getenv("PATH"), "ADDR=127.0.0.1:0", "NATS_URL=nats://127.0.0.1:1"}, env...)
	p.cmd.Stdout = &p.stdout
	lines, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		defer p.cmd.Wait()
		defer close(ready)
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			p.mu.Lock()
			p.stderr.Write(append(scanner.Bytes(), '\n'))
			p.mu.Unlock()
			var line struct{ Msg, Addr string }
			if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Msg == "ready" {
				ready <- line.Addr
			}
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
	})
	if len(args) > 0 && args[0] == "serve" {
		select {
		case p.addr = <-ready: // empty if it has ended
		case <-time.After(patience):
			t.Fatalf("not ready: %s", p.errors())
		}
	}
	return p
}

func (p *process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// wait waits for the end and returns the status and what was printed.
func (p *process) wait() (status int, stdout, stderr string) {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.errors()
	case <-time.After(patience):
		p.t.Fatalf("it does not end: %s", p.errors())
		return
	}
}

// command runs a command to its end.
func command(t *testing.T, program string, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return launch(t, program, env, args...).wait()
}
