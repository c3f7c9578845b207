package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed preload/slowfsync.c
var slowingSource []byte

// slowing is a library that makes each fsync and fdatasync of the process that
// loads it take one millisecond more.
type slowing struct{ dir string }

// compileSlowing builds the library where any user can read it.
func compileSlowing(ctx context.Context) (*slowing, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return nil, errors.New("-slow-fsync needs gcc, which is not installed (on Debian: apt-get install gcc libc6-dev)")
	}
	s := &slowing{}
	if s.dir, err = os.MkdirTemp("", "partilha-slow-fsync-"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	source := filepath.Join(s.dir, "slowfsync.c")
	if err := errors.Join(os.Chmod(s.dir, 0o755), os.WriteFile(source, slowingSource, 0o644)); err != nil {
		s.remove()
		return nil, fmt.Errorf("write the slowing library: %w", err)
	}
	output, err := exec.CommandContext(ctx, gcc, "-shared", "-fPIC", "-O2", "-o", s.library(), source, "-ldl").CombinedOutput()
	if err == nil {
		err = os.Chmod(s.library(), 0o755)
	}
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("compile the slowing library: %w\n%s", err, output)
	}
	return s, nil
}

func (s *slowing) library() string       { return filepath.Join(s.dir, "slowfsync.so") }
func (s *slowing) environment() []string { return []string{"LD_PRELOAD=" + s.library()} }
func (s *slowing) remove()               { _ = os.RemoveAll(s.dir) }

// check fails unless the server has loaded the library: the loader only warns of one
// that it cannot read.
func (s *slowing) check(ctx context.Context, conn *pgx.Conn) error {
	var pid int
	if err := conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
		return fmt.Errorf("check the slowing library: %w", err)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return fmt.Errorf("check the slowing library: %w", err)
	}
	if !strings.Contains(string(maps), s.library()) {
		return errors.New("PostgreSQL has not loaded the slowing library")
	}
	return nil
}
