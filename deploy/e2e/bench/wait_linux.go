package main

import (
	"syscall"
	"time"
)

// waitUntil sleeps until then, to within a tenth of a millisecond or so. The
// runtime's own timers may be late by a whole one, which would count as latency.
func waitUntil(then time.Time) {
	for left := time.Until(then); left > 0; left = time.Until(then) {
		duration := syscall.NsecToTimespec(int64(left))
		_ = syscall.Nanosleep(&duration, nil) // interrupted, it goes round again
	}
}
