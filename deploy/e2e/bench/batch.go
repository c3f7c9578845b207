package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

const (
	batchLength      = 1000 // sales in one call
	batchConnections = 4
	batchYardstick   = 64 // clients of the yardstick, where it is fastest
)

// measureBatch compares sales that are reported by the thousand with the yardstick.
func measureBatch(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
POST /api/v1/sales/batch, %d sales in each of %d calls at a time, sales per second: median (least–greatest) of %d rounds of %d s

`, batchLength, batchConnections, o.rounds, o.seconds)
	var base, batches rounds
	for range o.rounds {
		m, err := yardstick(ctx, g, batchYardstick, o.seconds)
		if err != nil {
			return fmt.Errorf("yardstick: %w", err)
		}
		base = append(base, m)
		if m, err = postBatches(ctx, g, o); err != nil {
			return fmt.Errorf("batches: %w", err)
		}
		batches = append(batches, m)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "yardstick\tbatches\tbatches/yardstick\tPostgreSQL, µs a sale\tservice: own, µs a sale")
	fmt.Fprintf(table, "%s\t%s\t%s\t%.0f\t%.0f\n", base.perSecond().spread("%.0f"), batches.perSecond().spread("%.0f"),
		batches.perSecond().over(base.perSecond()).spread("%.2f"), batches.microseconds(ofPostgres), batches.microseconds(ofService))
	return table.Flush()
}

// postBatches loads the sales service with batches on fresh tables and counts what it
// has kept.
func postBatches(ctx context.Context, g *ground, o options) (m measured, err error) {
	if err := g.fresh(ctx, salesDatabase); err != nil {
		return m, err
	}
	m, total, err := onChild(ctx, g, salesService(g, o, ""), func(c *child, s *shop) (m measured, total int64, err error) {
		wires := make([]*batchWire, batchConnections)
		for number := range wires {
			w, err := dialBatches(s, number)
			if err != nil {
				return m, 0, err
			}
			defer w.conn.Close()
			wires[number] = w
		}
		warm, err := closedBatches(ctx, wires, warmUp)
		if err != nil {
			return m, 0, err
		}
		before := g.effort(c.cmd.Process.Pid)
		counted, err := closedBatches(ctx, wires, time.Duration(o.seconds)*time.Second)
		m = measured{counted.perSecond(), g.effort(c.cmd.Process.Pid).since(before).perSale(counted.sales)}
		return m, warm.sales + counted.sales, err
	})
	if err != nil {
		return m, err
	}
	return m, expectSales(ctx, g, total)
}

// closedBatches reports batches for d, each connection its next as soon as it has the
// answer to the one before.
func closedBatches(ctx context.Context, wires []*batchWire, d time.Duration) (burst, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	var sales atomic.Int64
	var group sync.WaitGroup
	for _, w := range wires {
		group.Go(func() {
			for ctx.Err() == nil && time.Since(start) < d {
				if err := w.post(); err != nil {
					cancel(err)
					return
				}
				sales.Add(batchLength)
			}
		})
	}
	group.Wait()
	result := burst{sales: sales.Load(), took: time.Since(start)}
	if err := context.Cause(ctx); err != nil {
		return result, fmt.Errorf("keep up the load: %w", err)
	}
	return result, nil
}

// batchWire is a wire that reports batches: of its one request only the digits of the
// external_refs change.
type batchWire struct {
	wire
	counters []*wire // the digits of each element
}

func dialBatches(s *shop, number int) (*batchWire, error) {
	conn, err := net.DialTimeout("tcp", s.address, 5*time.Second)
	if err != nil {
		return nil, fmt.Errorf("connect to the service: %w", err)
	}
	w := newBatchWire(s, number)
	w.conn = conn
	return w, nil
}

func newBatchWire(s *shop, number int) *batchWire {
	var body bytes.Buffer
	body.WriteString(`{"sales":[`)
	refs := make([]string, batchLength)
	for i := range refs {
		if i > 0 {
			body.WriteByte(',')
		}
		refs[i] = fmt.Sprintf("batch-%02d-%04d-%s", number, i, refDigits)
		body.WriteString(saleBody(s, refs[i]))
	}
	body.WriteString(`]}`)
	w := &batchWire{wire: wire{request: requestOf(s, "/api/v1/sales/batch", body.Bytes()), buffer: make([]byte, 1<<18)}}
	for _, ref := range refs {
		w.counters = append(w.counters, &wire{digits: digitsOf(w.request, ref)})
	}
	return w
}

var recordedElement = []byte(`"status":201`)

// post reports a batch of new sales, every one of which must be recorded.
func (w *batchWire) post() error {
	for _, c := range w.counters {
		c.count()
	}
	if _, err := w.conn.Write(w.request); err != nil {
		return fmt.Errorf("report a batch: %w", err)
	}
	status, body, err := w.read()
	if err != nil {
		return fmt.Errorf("read the answer to a batch: %w", err)
	}
	if recorded := bytes.Count(body, recordedElement); status != 200 || recorded != batchLength {
		return fmt.Errorf("a batch was answered %d, with %d of %d sales recorded: %.300s", status, recorded, batchLength, body)
	}
	return nil
}
