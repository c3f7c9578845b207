package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"partilha.dev/pkg/internal/child"
)

// Disk is a small disk that one test owns: memory, mounted in a namespace that keeps it
// from everybody else. Its methods fail the test where they cannot do what they say.
type Disk struct {
	t      testing.TB
	keeper *child.Process // its namespace is the disk's, and lives as long as it does
	folder string
}

// newDisk mounts a disk of so many mebibytes on an empty folder. It ends with the test.
func newDisk(t testing.TB, folder string, mebibytes int) *Disk {
	t.Helper()
	ready, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	mount := fmt.Sprintf(`mount -t tmpfs -o size=%dm none "$0" && echo mounted && exec sleep infinity`, mebibytes)
	cmd := exec.Command("unshare", append(asRoot("--map-root-user"), "--mount", "sh", "-c", mount, folder)...)
	cmd.Stdout, cmd.Stderr = told, os.Stderr
	keeper, err := child.Start(cmd, syscall.SIGKILL)
	told.Close()
	if err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = keeper.Signal(syscall.SIGKILL); <-keeper.Done() })
	if n, err := ready.Read(make([]byte, 1)); n == 0 {
		t.Fatalf("mount a small disk: %v", err)
	}
	return &Disk{t: t, keeper: keeper, folder: folder}
}

// asRoot are the options by which somebody who is not root becomes it in a namespace.
func asRoot(how string) []string {
	if os.Geteuid() == 0 {
		return nil
	}
	return []string{"--user", how}
}

// command is a program that sees the disk.
func (d *Disk) command(program string, args ...string) *exec.Cmd {
	enter := append(asRoot("--preserve-credentials"), "--mount", "--target", strconv.Itoa(d.keeper.PID()), program)
	return exec.Command("nsenter", append(enter, args...)...)
}

func (d *Disk) filler() string {
	return filepath.Join("/proc", strconv.Itoa(d.keeper.PID()), "root", d.folder, "filler")
}

// Fill takes all the room that is left.
func (d *Disk) Fill() {
	d.t.Helper()
	file, err := os.Create(d.filler())
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = file.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("fill the disk: %v", err)
	}
}

// MakeRoom gives back what Fill has taken.
func (d *Disk) MakeRoom() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}
