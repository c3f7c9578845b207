package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lock takes the cluster for this process. The server inherits the open file, so
// that the lock is held until its last process has ended, whatever becomes of the
// one that started it.
//
// A server that is shutting down is waited for, while ctx lasts; any other makes
// an error that names its process.
func (c *cluster) lock(ctx context.Context) (*os.File, error) {
	file, err := os.OpenFile(c.lockFile(), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the PostgreSQL folder: %w", err)
	}
	// The server of an owner that has just been killed takes a moment to notice.
	patience := time.Now().Add(time.Second)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		pid, status := c.postmaster()
		if status == "stopping" {
			// It removes its mark a moment before its last process has ended.
			patience = time.Now().Add(10 * time.Second)
		}
		switch {
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			err = fmt.Errorf("lock the PostgreSQL folder: %w", err)
		case ctx.Err() != nil:
			err = fmt.Errorf("the server that ran on %s is still shutting down: %w", c.dir, ctx.Err())
		case time.Now().After(patience):
			err = c.occupied(pid)
		default:
			pause(ctx)
			continue
		}
		file.Close()
		return nil, err
	}
}

// pause is how long to wait between two looks at something that changes soon.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Millisecond):
	}
}

func (c *cluster) occupied(pid int) error {
	if pid == 0 {
		return fmt.Errorf("another server already runs on %s", c.dir)
	}
	return fmt.Errorf("another server already runs on %s (process %d)", c.dir, pid)
}

// clearStale removes the mark of a server that was killed, where the process of
// that number is another program by now: PostgreSQL would take it for itself and
// refuse to start. The caller holds the lock; a server that was started without
// it, by hand, is an error.
func (c *cluster) clearStale() error {
	pid, _ := c.postmaster()
	if pid == 0 {
		return nil
	}
	process := filepath.Join("/proc", strconv.Itoa(pid))
	folder, err := os.Readlink(filepath.Join(process, "cwd"))
	if err != nil {
		return nil // no such process, or none that we may look into: PostgreSQL decides
	}
	if folder == c.data() {
		if name, err := os.ReadFile(filepath.Join(process, "comm")); err == nil && strings.HasPrefix(string(name), "postgres") {
			return c.occupied(pid)
		}
	}
	if err := os.Remove(c.pidFile()); err != nil {
		return fmt.Errorf("remove the mark of a killed server: %w", err)
	}
	return nil
}

func (c *cluster) pidFile() string { return filepath.Join(c.data(), "postmaster.pid") }

// postmaster reads the number and the status ("starting", "ready", "stopping") of
// the process that last marked the data as its own; 0 if none did or it ended well.
func (c *cluster) postmaster() (pid int, status string) {
	mark, err := os.ReadFile(c.pidFile())
	if err != nil {
		return 0, ""
	}
	const pidLine, statusLine = 0, 7
	lines := strings.Split(string(mark), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[pidLine]))
	if err != nil {
		return 0, ""
	}
	if len(lines) > statusLine {
		status = strings.TrimSpace(lines[statusLine])
	}
	return max(pid, -pid), status // a single-user server writes it negative
}
