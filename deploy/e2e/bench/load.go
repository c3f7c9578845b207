package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// load is a number of connections over which a shop reports its sales.
type load struct {
	wires []*wire
	// recorded are the sales that each connection was answered for.
	recorded [][]uuid.UUID
	answered atomic.Int64
}

// connect opens the connections.
func connect(s *shop, clients int) (*load, error) {
	l := &load{recorded: make([][]uuid.UUID, clients)}
	for number := range clients {
		w, err := dialShop(s, number)
		if err != nil {
			l.close()
			return nil, err
		}
		l.wires = append(l.wires, w)
	}
	return l, nil
}

func (l *load) close() {
	for _, w := range l.wires {
		w.conn.Close()
	}
}

// total is how many sales were answered so far.
func (l *load) total() int64 { return l.answered.Load() }

// burst is what came of a load.
type burst struct {
	sales int64
	took  time.Duration // from the first request to the last answer
}

func (b burst) perSecond() float64 { return float64(b.sales) / b.took.Seconds() }

// closed reports sales for d, each connection its next as soon as it has the answer
// to the one before. It fails as a whole if one sale does, or if ctx ends.
func (l *load) closed(ctx context.Context, d time.Duration) (burst, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	before, start := l.total(), time.Now()
	deadline := start.Add(d)
	var group sync.WaitGroup
	for i, w := range l.wires {
		group.Go(func() {
			for ctx.Err() == nil && time.Now().Before(deadline) {
				sale, err := w.post()
				if err != nil {
					cancel(err)
					return
				}
				l.recorded[i] = append(l.recorded[i], sale)
				l.answered.Add(1)
			}
		})
	}
	group.Wait()
	result := burst{sales: l.total() - before, took: time.Since(start)}
	if err := context.Cause(ctx); err != nil {
		return result, fmt.Errorf("keep up the load: %w", err)
	}
	return result, nil
}

// promise is one sale of an open loop.
type promise struct {
	sale     uuid.UUID
	due      time.Time // when it was to be sent, whether or not it could be
	answered time.Time
}

// open reports sales at a steady rate for d and does not slow down for slow answers:
// what is late because all connections were waiting counts as late.
func (l *load) open(ctx context.Context, rate int, d time.Duration) ([]promise, error) {
	promises := make([]promise, int(float64(rate)*d.Seconds()))
	err := atRate(ctx, rate, len(promises), len(l.wires), func(number, i int, due time.Time) error {
		sale, err := l.wires[number].post()
		if err != nil {
			return err
		}
		promises[i] = promise{sale, due, time.Now()}
		l.recorded[number] = append(l.recorded[number], sale)
		l.answered.Add(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return promises, nil
}
