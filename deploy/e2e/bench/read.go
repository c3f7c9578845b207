package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/google/uuid"
)

const (
	readClients  = 16
	readPatience = 5 * time.Second
)

// question is a GET that is asked again and again, where the path may name another
// partner each time.
type question struct {
	path     string                            // with %s in the place of the partner, or without
	partner  func(random *rand.Rand) uuid.UUID // nil: the path names none
	answered func(body []byte) bool            // tells whether a body is the right one
}

// reading is what came of a question that was asked at a steady rate.
type reading struct {
	took    series // milliseconds from the moment at which each call was due
	givenUp int    // calls that were not sent
}

// ask asks at a steady rate for d and does not slow down for slow answers. An answer
// that is not a 200 with the right body is an error.
//
// A call that could not be sent within patience is given up, so that a service which
// cannot keep up is measured for a bounded time. It counts as answered then, which is
// sooner than it would have been.
func (s *shop) ask(ctx context.Context, q question, rate int, d, patience time.Duration) (r reading, err error) {
	wires := make([]*readWire, readClients)
	for number := range wires {
		if wires[number], err = dialReads(s, q, number); err != nil {
			return r, err
		}
		defer wires[number].conn.Close()
	}
	calls := int(float64(rate) * d.Seconds())
	r.took = make(series, calls)
	givenUp := make([]int, readClients)
	err = atRate(ctx, rate, calls, readClients, func(number, i int, due time.Time) error {
		if time.Since(due) > patience {
			givenUp[number]++
		} else if err := wires[number].ask(q); err != nil {
			return err
		}
		r.took[i] = milliseconds(time.Since(due))
		return nil
	})
	for _, n := range givenUp {
		r.givenUp += n
	}
	return r, err
}

// readings are the rounds of one question.
type readings struct{ p50, p99, slowest, givenUp series }

// askInRounds asks a question that the service has been made ready for.
func (l *lone) askInRounds(ctx context.Context, o options, q question, rate int) (all readings, err error) {
	if err := l.ground.settle(ctx); err != nil {
		return all, err
	}
	if _, err := l.shop.ask(ctx, q, rate, warmUp, readPatience); err != nil {
		return all, err
	}
	for range o.rounds {
		r, err := l.shop.ask(ctx, q, rate, time.Duration(o.openFor)*time.Second, readPatience)
		if err != nil {
			return all, err
		}
		all.p50, all.p99 = append(all.p50, r.took.quantile(0.5)), append(all.p99, r.took.quantile(0.99))
		all.slowest, all.givenUp = append(all.slowest, r.took.quantile(1)), append(all.givenUp, float64(r.givenUp)/float64(len(r.took)))
	}
	return all, nil
}

// String is the four columns of a table.
func (r readings) String() string {
	return r.p50.spread("%.1f") + "\t" + r.p99.spread("%.1f") + "\t" + r.slowest.spread("%.1f") + "\t" + r.givenUp.spread("%.2f")
}

// readWire is a wire that asks: of its one request only the partner changes.
type readWire struct {
	wire
	random  *rand.Rand
	partner []byte // the part of request that names the partner; nil: none does
}

func dialReads(s *shop, q question, number int) (*readWire, error) {
	conn, err := net.DialTimeout("tcp", s.address, 5*time.Second)
	if err != nil {
		return nil, fmt.Errorf("connect to the service: %w", err)
	}
	w := newReadWire(s, q, number)
	w.conn = conn
	return w, nil
}

func newReadWire(s *shop, q question, number int) *readWire {
	w := &readWire{random: rand.New(rand.NewPCG(0, uint64(number)))}
	w.buffer = make([]byte, 4096)
	path := q.path
	if q.partner != nil {
		path = fmt.Sprintf(q.path, uuid.Nil)
	}
	w.request = fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, s.address, s.key)
	if q.partner != nil {
		at := bytes.Index(w.request, []byte(uuid.Nil.String()))
		w.partner = w.request[at : at+36]
	}
	return w
}

// ask asks once and waits for the answer.
func (w *readWire) ask(q question) error {
	if q.partner != nil {
		copy(w.partner, q.partner(w.random).String())
	}
	if _, err := w.conn.Write(w.request); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	status, body, err := w.read()
	if err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	if status != 200 || !q.answered(body) {
		return fmt.Errorf("a question was answered %d: %.300s", status, body)
	}
	return nil
}
