package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// effort is the processor time that each part has used. On a machine that others use
// as well it says more than a rate does.
type effort struct{ service, postgres, generator time.Duration }

// perSale shares the effort out.
func (e effort) perSale(sales int64) effort {
	n := time.Duration(max(sales, 1))
	return effort{e.service / n, e.postgres / n, e.generator / n}
}

func (e effort) since(before effort) effort {
	return effort{e.service - before.service, e.postgres - before.postgres, e.generator - before.generator}
}

// effort reads what has been used until now. Where the system does not tell it in
// /proc, all but the generator's own are 0.
func (g *ground) effort(services ...int) effort {
	now := effort{postgres: g.postgresCPU(), generator: ownCPU()}
	for _, pid := range services {
		now.service += cpuOf(pid).own
	}
	return now
}

// ownCPU is what this process has used.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// postgresCPU is what the server's processes have used, also those that have ended.
func (g *ground) postgresCPU() time.Duration {
	file, err := os.ReadFile(filepath.Join(g.dir, "postgres", "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(file), "\n")
	postmaster, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	used := cpuOf(postmaster)
	sum := used.own + used.ended
	processes, _ := filepath.Glob("/proc/[0-9]*") // the only error is a bad pattern
	for _, process := range processes {
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil {
			if one := cpuOf(pid); one.parent == postmaster {
				sum += one.own
			}
		}
	}
	return sum
}

// processCPU is what the system says of one process.
type processCPU struct {
	parent     int
	own, ended time.Duration // of the process, and of its children that have ended
}

// cpuOf reads /proc/PID/stat; see proc_pid_stat(5). It counts in hundredths of a second.
func cpuOf(pid int) (p processCPU) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name in brackets may have blanks
	fields := strings.Fields(rest)
	const parent, userTime, systemTime, endedUser, endedSystem = 1, 11, 12, 13, 14
	if len(fields) <= endedSystem {
		return p
	}
	ticks := func(field int) time.Duration {
		n, _ := strconv.ParseInt(fields[field], 10, 64) // the kernel writes numbers
		return time.Duration(n) * 10 * time.Millisecond
	}
	p.parent, _ = strconv.Atoi(fields[parent])
	p.own, p.ended = ticks(userTime)+ticks(systemTime), ticks(endedUser)+ticks(endedSystem)
	return p
}
