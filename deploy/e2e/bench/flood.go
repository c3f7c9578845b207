package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// crowd is a great many connections, of which each has recorded one sale: the service
// does not wait long for the first request of a connection.
type crowd struct{ wires []*wire }

// gather opens the connections, some at a time. Their external_refs are none of a
// load's.
func gather(s *shop, connections int) (*crowd, error) {
	const atOnce = 64
	c := &crowd{wires: make([]*wire, connections)}
	failures := make([]error, atOnce)
	var group sync.WaitGroup
	for first := range atOnce {
		group.Go(func() {
			for number := first; number < connections && failures[first] == nil; number += atOnce {
				if c.wires[number], failures[first] = dialShop(s, crowdNumber+number); failures[first] == nil {
					_, failures[first] = c.wires[number].post()
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		c.close()
		return nil, fmt.Errorf("gather %d connections: %w", connections, err)
	}
	return c, nil
}

// crowdNumber is that of a crowd's first connection, above those of every load.
const crowdNumber = 1000

// gathered is how many sales were recorded by gathering.
func (c *crowd) gathered() int64 { return int64(len(c.wires)) }

func (c *crowd) close() {
	for _, w := range c.wires {
		if w != nil {
			w.conn.Close()
		}
	}
}

// flooded is what came of a flood.
type flooded struct {
	acceptedIn, refusedIn series        // milliseconds from sending a call to its answer
	refused               []string      // the external_refs of the refused calls
	took                  time.Duration // until the last answer
}

// flood reports new sales at a steady rate for d, over every connection that is free
// when one is due, and sends nothing after d: what could not be sent by then never is.
// A 201 is accepted, a 429 or 503 is refused, and any other answer an error.
func (c *crowd) flood(ctx context.Context, rate int, d time.Duration) (all flooded, err error) {
	each := make([]flooded, len(c.wires))
	start := time.Now()
	err = atRate(ctx, rate, int(float64(rate)*d.Seconds()), len(c.wires), func(number, _ int, _ time.Time) error {
		sent := time.Now()
		if sent.Sub(start) > d {
			return nil
		}
		status, ref, err := c.wires[number].attempt()
		if err != nil {
			return err
		}
		took, f := milliseconds(time.Since(sent)), &each[number]
		switch status {
		case 201:
			f.acceptedIn = append(f.acceptedIn, took)
		case 429, 503:
			f.refusedIn, f.refused = append(f.refusedIn, took), append(f.refused, ref)
		default:
			return fmt.Errorf("a sale was answered %d", status)
		}
		return nil
	})
	if err != nil {
		return all, err
	}
	for _, f := range each {
		all.acceptedIn, all.refusedIn = append(all.acceptedIn, f.acceptedIn...), append(all.refusedIn, f.refusedIn...)
		all.refused = append(all.refused, f.refused...)
	}
	if all.took = time.Since(start); len(all.acceptedIn) == 0 {
		return all, errors.New("nothing was accepted")
	}
	return all, nil
}

// attempt reports a new sale and returns the status of the answer, and the reference
// of the sale.
func (w *wire) attempt() (status int, ref string, err error) {
	w.count()
	if _, err := w.conn.Write(w.request); err != nil {
		return 0, "", fmt.Errorf("report a sale: %w", err)
	}
	if status, _, err = w.read(); err != nil {
		return 0, "", fmt.Errorf("read the answer to a sale: %w", err)
	}
	return status, w.ref(), nil
}
