package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// atRate makes so many calls at a steady rate over a number of connections, and
// returns when all are made. Call i is due at the i-th tick, whether or not a
// connection is free by then; each connection makes one call at a time. It fails as a
// whole if one call does, or if ctx ends.
func atRate(ctx context.Context, rate, calls, connections int, call func(connection, i int, due time.Time) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type tick struct {
		i   int
		due time.Time
	}
	ticks := make(chan tick, calls)
	go func() {
		defer close(ticks)
		start := time.Now()
		for i := range calls {
			due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
			if ctx.Err() != nil {
				return
			}
			waitUntil(due)
			ticks <- tick{i, due}
		}
	}()
	var group sync.WaitGroup
	for connection := range connections {
		group.Go(func() {
			for t := range ticks {
				if err := call(connection, t.i, t.due); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("keep up the rate: %w", err)
	}
	return nil
}
