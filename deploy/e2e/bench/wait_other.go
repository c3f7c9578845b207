//go:build !linux

package main

import "time"

// waitUntil sleeps until then, to within a millisecond or so.
func waitUntil(then time.Time) { time.Sleep(time.Until(then)) }
