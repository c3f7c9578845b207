package stage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is one service as an operator runs it: a binary, an environment, and an
// address that it tells when it is ready. Its methods fail the test where they cannot
// do what they say; call them on the goroutine of the test.
type Process struct {
	t       testing.TB
	service string
	Env     []string

	mu   sync.Mutex
	life *life // the latest
}

// life is one run of a process.
type life struct {
	cmd   *exec.Cmd
	addr  string
	ready chan struct{} // closed when addr is known
	ended chan struct{} // closed when it has been waited for
	err   error         // written before ended is closed
	log   tail
}

// NewProcess prepares a process that is not running. It is killed when the test ends,
// and what it logged last is shown if the test has failed.
func NewProcess(t testing.TB, service string, env ...string) *Process {
	t.Helper()
	base := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "ADDR=127.0.0.1:0", "RATE_LIMIT=off", "DATABASE_POOL=8"}
	p := &Process{t: t, service: service, Env: append(base, env...)}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() && p.life != nil {
			t.Logf("the last lines of %s:\n%s", service, p.life.log.text())
		}
	})
	return p
}

// Start runs serve and returns when the process answers.
func (p *Process) Start() {
	p.t.Helper()
	next, err := p.launch()
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.life = next
	p.mu.Unlock()
	select {
	case <-next.ready:
	case <-next.ended:
		p.t.Fatalf("%s serve ended: %v", p.service, next.err)
	case <-time.After(Patience):
		p.t.Fatalf("%s is not ready within %s", p.service, Patience)
	}
}

// launch starts serve on a thread that lives as long as the process: the kernel
// takes the death of that thread for the death of the owner.
func (p *Process) launch() (*life, error) {
	cmd := exec.Command(Program(p.t, p.service), "serve")
	cmd.Env = p.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithOwner(cmd.SysProcAttr)
	l := &life{cmd: cmd, ready: make(chan struct{}), ended: make(chan struct{})}
	lines, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		l.read(lines)
		l.err = cmd.Wait()
		close(l.ended)
	}()
	return l, <-started
}

// read keeps the log and waits for the line that tells the address.
func (l *life) read(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		l.log.add(line)
		var told struct{ Msg, Addr string }
		if l.addr == "" && json.Unmarshal(line, &told) == nil && told.Msg == "ready" {
			l.addr = told.Addr
			close(l.ready)
		}
		if err != nil {
			return
		}
	}
}

// Base is the URL at which the process answers, or last did; while it starts, one at
// which nobody does. It may be called on any goroutine.
func (p *Process) Base() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.life.ready:
		return "http://" + p.life.addr
	default:
		return "http://starting.invalid"
	}
}

// Runs tells whether the process answers, as far as anybody knows. It may be called on
// any goroutine.
func (p *Process) Runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.life.ended:
		return false
	default:
	}
	select {
	case <-p.life.ready:
		return true
	default:
		return false
	}
}

// Signal sends a signal and returns without waiting for what it does.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.life.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("signal %s: %v", p.service, err)
	}
}

// Stop asks the process to end and waits until it has, with status 0.
func (p *Process) Stop() {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		p.t.Errorf("%s ended after SIGTERM with %v", p.service, err)
	}
}

// Kill ends the process with kill -9; one that does not run is no error.
func (p *Process) Kill() {
	p.t.Helper()
	if p.life == nil {
		return
	}
	p.Signal(syscall.SIGKILL)
	_ = p.Wait() // the signal is the error
}

// Wait waits for the end of the process and returns its exit error.
func (p *Process) Wait() error {
	p.t.Helper()
	select {
	case <-p.life.ended:
		return p.life.err
	case <-time.After(Patience):
		p.t.Fatalf("%s has not ended within %s", p.service, Patience)
		return nil
	}
}

// Finished is what a command that has ended leaves behind.
type Finished struct {
	Status         int
	Stdout, Stderr string
}

// Run runs one command of the binary to its end.
func (p *Process) Run(args ...string) Finished {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(Program(p.t, p.service), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.Env, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("run %s %s: %v", p.service, strings.Join(args, " "), err)
	}
	return Finished{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// MustRun is Run for a command that must succeed; it returns what it printed, trimmed.
func (p *Process) MustRun(args ...string) string {
	p.t.Helper()
	done := p.Run(args...)
	if done.Status != 0 {
		p.t.Fatalf("%s %s: status %d: %s", p.service, strings.Join(args, " "), done.Status, done.Stderr)
	}
	return strings.TrimSpace(done.Stdout)
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const tailLines = 40

func (t *tail) add(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bytes.Contains(line, []byte(`"msg":"request"`)) || bytes.Contains(line, []byte(`"msg":"webhook delivered"`)) {
		return // what went well would push out what did not
	}
	t.lines = append(t.lines, string(line))
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "")
}
