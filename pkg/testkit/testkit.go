// Package testkit gives tests real servers: PostgreSQL and NATS, never a mock.
//
// Each is a process of the test binary, starts when a test first asks for it, keeps
// its files in a temporary folder and, on Linux, ends with the test binary even if
// that is killed. A test binary that calls Database has to run its tests through Main:
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
//
// A server that cannot start fails the test; nothing is skipped.
package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Main runs the tests, stops what they shared and exits with their status.
func Main(m *testing.M) {
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Eventually fails the test, with the sentence what, unless cond returns true within
// that time. It calls cond at once, every 5 ms, and a last time at the end; only on
// the goroutine of the test, and so must be called there.
func Eventually(t testing.TB, within time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := time.Now().After(deadline)
		if cond() {
			return
		}
		if last {
			t.Fatalf("%s: not within %s", what, within)
			return
		}
		<-ticker.C
	}
}
