package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Kill ends every process of the server at once with kill -9, as a power cut would
// end them but for what the operating system still writes to the disk, and waits
// for their end. Restart, or Start on the same Dir, recovers what was committed.
// Killing a server that has ended is no error.
func (s *Server) Kill() error { return s.current().kill() }

func (r *run) kill() error {
	select {
	case <-r.done:
		return nil
	default:
	}
	children, err := r.killAll()
	<-r.done
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, r.awaitGone(ctx, children))
}

// killAll kills the postmaster and its children. PostgreSQL gives each child a
// process group of its own, so they are looked up; the postmaster is halted before,
// or it would start more meanwhile. Where the system has no /proc they notice by
// themselves that the postmaster is gone. It returns the children.
func (r *run) killAll() ([]int, error) {
	postmaster := r.process.PID()
	if err := r.process.Signal(syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("halt PostgreSQL: %w", err)
	}
	halted := time.Now().Add(time.Second)
	for stateOf(postmaster).running() && time.Now().Before(halted) {
		pause(context.Background())
	}
	children := childrenOf(postmaster)
	for _, pid := range children {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return nil, errors.Join(fmt.Errorf("kill a process of PostgreSQL: %w", err), r.process.Signal(syscall.SIGKILL))
		}
	}
	if err := r.process.Signal(syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("kill PostgreSQL: %w", err)
	}
	return children, nil
}

// awaitGone waits until no process of the server holds its lock and the children
// have ended: the system closes the files of a killed process a moment before.
func (r *run) awaitGone(ctx context.Context, children []int) error {
	file, err := os.OpenFile(r.cluster.lockFile(), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("wait for the end of PostgreSQL: %w", err)
	}
	defer file.Close()
	for ctx.Err() == nil {
		free := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
		if free && !slices.ContainsFunc(children, func(pid int) bool { return stateOf(pid).running() }) {
			return nil
		}
		pause(ctx)
	}
	return fmt.Errorf("wait for the end of PostgreSQL on %s: %w", r.cluster.dir, ctx.Err())
}

// processState is what /proc tells of a process; zero if it tells nothing.
type processState struct {
	letter byte
	parent int
}

func (s processState) running() bool {
	return s.letter != 0 && !strings.ContainsRune("TXZ", rune(s.letter))
}

func stateOf(pid int) processState {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return processState{}
	}
	// "123 (any name) S 1 ...": the name may contain anything, also a parenthesis.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return processState{}
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return processState{}
	}
	return processState{letter: fields[0][0], parent: parent}
}

func childrenOf(postmaster int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var children []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && stateOf(pid).parent == postmaster {
			children = append(children, pid)
		}
	}
	return children
}
