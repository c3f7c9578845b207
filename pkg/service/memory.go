package service

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// TuneMemory trades memory for fewer collections, unless GOGC or GOMEMLIMIT say
// otherwise: the heap may grow to nine times what is live, but as a whole only to four
// fifths of what the container may have, or, without a container, to a quarter of the
// machine, which then belongs to other programs too.
func TuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := memlimit.ApplyFallback(
		memlimit.ApplyRatio(memlimit.FromCgroup, 0.8),
		memlimit.ApplyRatio(memlimit.FromSystem, 0.25))
	if bytes, err := limit(); err == nil { // unknown: the collector goes by what is live alone
		debug.SetMemoryLimit(int64(bytes))
	}
}
