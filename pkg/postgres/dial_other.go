//go:build !linux

package postgres

import (
	"syscall"
	"time"
)

// limitSilence leaves to the keep-alive what only Linux can limit.
func limitSilence(syscall.RawConn, time.Duration) error { return nil }
