package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

// measured is what one measurement has shown.
type measured struct {
	perSecond float64
	effort    effort // for one sale
}

// rounds are the same measurement, made again and again.
type rounds []measured

func (r rounds) perSecond() (s series) {
	for _, m := range r {
		s = append(s, m.perSecond)
	}
	return s
}

// microseconds is the median of a part's processor time for one sale.
func (r rounds) microseconds(part func(effort) time.Duration) float64 {
	var s series
	for _, m := range r {
		s = append(s, float64(part(m.effort))/float64(time.Microsecond))
	}
	return s.median()
}

func ofService(e effort) time.Duration   { return e.service }
func ofPostgres(e effort) time.Duration  { return e.postgres }
func ofGenerator(e effort) time.Duration { return e.generator }

// measurePost compares the yardstick, the sales service, and its handler without a
// database, at each concurrency, which is also the number of connections.
func measurePost(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
POST /api/v1/sales, each with a new external_ref, per second: median (least–greatest) of %d rounds of %d s
  yardstick  pgbench, one prepared statement: insert a sale once, and its outbox row
  service    the sales service alone: keys, catalogue, outbox, relay and NATS on; no other service runs
  bare       its handler without a database: HTTP, JSON, key, decision, event

`, o.rounds, o.seconds)
	rates := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(rates, "clients\tyardstick\tservice\tbare\tservice/yardstick\tservice/bare")
	efforts := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(efforts, "clients\tyardstick: PostgreSQL\tservice: PostgreSQL\tservice: own\tbare: own\tload generator")
	for _, clients := range o.clients {
		base, service, bare, err := takeTurns(ctx, g, o, clients)
		if err != nil {
			return fmt.Errorf("at %d clients: %w", clients, err)
		}
		fmt.Fprintf(rates, "%d\t%s\t%s\t%s\t%s\t%s\n", clients,
			base.perSecond().spread("%.0f"), service.perSecond().spread("%.0f"), bare.perSecond().spread("%.0f"),
			service.perSecond().over(base.perSecond()).spread("%.2f"), service.perSecond().over(bare.perSecond()).spread("%.2f"))
		fmt.Fprintf(efforts, "%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\n", clients, base.microseconds(ofPostgres),
			service.microseconds(ofPostgres), service.microseconds(ofService), bare.microseconds(ofService), service.microseconds(ofGenerator))
	}
	err := rates.Flush()
	fmt.Print("\nProcessor time for one sale in µs, medians of the same rounds (NATS is part of the service's own)\n\n")
	if err := errors.Join(err, efforts.Flush()); err != nil {
		return err
	}
	if o.cpuProfile == "" {
		return nil
	}
	m, err := postService(ctx, g, o, 64, o.cpuProfile)
	if err != nil {
		return fmt.Errorf("under the profiler: %w", err)
	}
	fmt.Printf("\nCPU profile of the sales service at 64 clients (%.0f sales a second under the profiler): %s\n", m.perSecond, o.cpuProfile)
	return nil
}

// takeTurns measures yardstick, service and bare handler, one after another, in each
// round.
func takeTurns(ctx context.Context, g *ground, o options, clients int) (base, service, bare rounds, err error) {
	for range o.rounds {
		m, err := yardstick(ctx, g, clients, o.seconds)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("yardstick: %w", err)
		}
		base = append(base, m)
		if m, err = postService(ctx, g, o, clients, ""); err != nil {
			return nil, nil, nil, fmt.Errorf("service: %w", err)
		}
		service = append(service, m)
		if m, _, err = post(ctx, g, assignment{Role: roleBare}, clients, o.seconds); err != nil {
			return nil, nil, nil, fmt.Errorf("bare handler: %w", err)
		}
		bare = append(bare, m)
	}
	return base, service, bare, nil
}

const salesDatabase = "partilha_sales"

// postService loads the sales service on fresh tables and counts what it has kept.
func postService(ctx context.Context, g *ground, o options, clients int, cpuProfile string) (measured, error) {
	if err := g.fresh(ctx, salesDatabase); err != nil {
		return measured{}, err
	}
	m, total, err := post(ctx, g, salesService(g, o, cpuProfile), clients, o.seconds)
	if err != nil {
		return m, err
	}
	return m, expectSales(ctx, g, total)
}

func salesService(g *ground, o options, cpuProfile string) assignment {
	return assignment{Role: roleSales, DatabaseURL: g.postgres.URL(salesDatabase), Writers: o.writers, CPUProfile: cpuProfile}
}

func expectSales(ctx context.Context, g *ground, total int64) error {
	return errors.Join(
		g.expect(ctx, "sales", salesDatabase, `select count(*) from sales`, total),
		g.expect(ctx, "events in the outbox", salesDatabase, `select count(*) from outbox where name = 'sale.recorded'`, total),
	)
}

// post starts the process, warms it up, loads it, and stops it. total counts the
// warm-up as well.
func post(ctx context.Context, g *ground, a assignment, clients, seconds int) (m measured, total int64, err error) {
	return onChild(ctx, g, a, func(c *child, s *shop) (m measured, total int64, err error) {
		l, err := connect(s, clients)
		if err != nil {
			return m, 0, err
		}
		defer l.close()
		if _, err := l.closed(ctx, warmUp); err != nil {
			return m, 0, err
		}
		before := g.effort(c.cmd.Process.Pid)
		answered, err := l.closed(ctx, time.Duration(seconds)*time.Second)
		m = measured{answered.perSecond(), g.effort(c.cmd.Process.Pid).since(before).perSale(answered.sales)}
		return m, l.total(), err
	})
}

// onChild starts the process with a shop, has it measured, and stops it.
func onChild(ctx context.Context, g *ground, a assignment, measure func(*child, *shop) (measured, int64, error)) (m measured, total int64, err error) {
	c, err := startChild(g, a)
	if err != nil {
		return m, 0, err
	}
	defer func() {
		if err = errors.Join(err, c.stop()); err == nil {
			err = c.discard()
		}
	}()
	s, err := openShop(ctx, c)
	if err != nil {
		return m, 0, err
	}
	if err := g.settle(ctx); err != nil {
		return m, 0, err
	}
	return measure(c, s)
}
