package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// refuseMemory fails if dir lies in memory, where an fsync costs nothing.
func refuseMemory(dir string) error {
	const tmpfs = 0x01021994
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("look at -dir: %w", err)
	}
	if int64(stat.Type) == tmpfs {
		return fmt.Errorf("%s lies in memory; name a folder on a disk with -dir", dir)
	}
	return nil
}

// describe prints what the figures were measured on.
func (g *ground) describe(ctx context.Context, o options) error {
	settings := make(map[string]string)
	for _, name := range []string{"server_version", "fsync", "synchronous_commit", "wal_sync_method", "full_page_writes"} {
		var value string
		if err := g.admin.QueryRow(ctx, "select current_setting($1)", name).Scan(&value); err != nil {
			return fmt.Errorf("read setting %s: %w", name, err)
		}
		settings[name] = value
	}
	if settings["fsync"] != "on" || settings["synchronous_commit"] != "on" {
		return fmt.Errorf("PostgreSQL is not durable: fsync %s, synchronous_commit %s", settings["fsync"], settings["synchronous_commit"])
	}
	disk, err := syncTime(g.dir)
	if err != nil {
		return err
	}
	slow := ""
	if o.slowFsync {
		slow = ", and 1 ms more for PostgreSQL (-slow-fsync)"
	}
	fmt.Printf("machine      %d cores %s, %s\n", runtime.NumCPU(), processor(), runtime.GOOS)
	fmt.Printf("versions     %s, PostgreSQL %s, NATS embedded\n", runtime.Version(), settings["server_version"])
	fmt.Printf("durability   fsync %s, synchronous_commit %s, wal_sync_method %s, full_page_writes %s\n",
		settings["fsync"], settings["synchronous_commit"], settings["wal_sync_method"], settings["full_page_writes"])
	fmt.Printf("disk         one fsync of 8 KiB takes %.2f ms%s\n", milliseconds(disk), slow)
	fmt.Printf("processes    load generator, services and PostgreSQL each on their own, all on these cores; RATE_LIMIT=off\n")
	return nil
}

// syncTime is the median time of an 8 KiB write with its fsync.
func syncTime(dir string) (time.Duration, error) {
	file, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, fmt.Errorf("measure fsync: %w", err)
	}
	defer file.Close()
	block := bytes.Repeat([]byte{1}, 8192)
	var took series
	for range 101 {
		start := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return 0, fmt.Errorf("measure fsync: %w", err)
		}
		if err := file.Sync(); err != nil {
			return 0, fmt.Errorf("measure fsync: %w", err)
		}
		took = append(took, float64(time.Since(start)))
	}
	return time.Duration(took.median()), nil
}

// processor names the CPU where the system tells it.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, " \t:"))
		}
	}
	return runtime.GOARCH
}

// residentMiB is how much memory a process occupies; 0 where the system does not tell.
func residentMiB(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), " kB"))
			return kib / 1024
		}
	}
	return 0
}
