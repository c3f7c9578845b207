// Package child runs servers as child processes that never outlive their owner.
//
// On Linux the kernel signals the child when the owner dies in whatever way,
// kill -9 included. Elsewhere a child ends only when its owner ends it.
package child

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Process is a child that has been started.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // written before done is closed
}

// Start runs cmd in a process group of its own, so that Ctrl-C in a terminal
// reaches the owner alone and the owner decides when the child ends. The child
// gets the signal whenOrphaned should the owner die first. Other attributes that
// cmd already has, such as a credential, are kept.
func Start(cmd *exec.Cmd, whenOrphaned syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	signalWhenOrphaned(cmd.SysProcAttr, whenOrphaned)

	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Run starts cmd like Start and waits for its end, whose error it returns.
func Run(cmd *exec.Cmd, whenOrphaned syscall.Signal) error {
	p, err := Start(cmd, whenOrphaned)
	if err != nil {
		return err
	}
	<-p.Done()
	return p.Err()
}

// run keeps its thread from start to end: the kernel takes the death of the
// thread that forked for the death of the owner.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// PID is the process id; after Done it may belong to another process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the child alone, not to its group.
// A child that has ended is no error.
func (p *Process) Signal(signal os.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(signal); err != nil && err != os.ErrProcessDone {
		return err
	}
	return nil
}

// Done is closed when the child has ended and has been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil until Done, and after it nil for exit status 0, else an
// *exec.ExitError.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}
