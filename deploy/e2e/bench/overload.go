package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

const (
	peakClients     = 64     // connections with which the capacity is found
	overloadTimes   = 3      // so much more is offered
	overloadClients = 10_000 // connections over which it is
	usualWaiting    = 2000   // as RATE_LIMIT_BURST is by default
)

// protection is what keeps the sales service from more than it can do.
type protection struct {
	name              string
	inFlight, waiting int
}

// measureOverload shows what becomes of the sales that the service can record where
// three times as many are asked of it.
func measureOverload(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
POST /api/v1/sales on the sales service alone, %d times what it accepts at %d clients, for %d s over %d connections, each with a new
external_ref: median (least–greatest) of %d rounds, of which each begins with finding the capacity for %d s
  capacity   sales answered 201 a second at %d clients, each its next as soon as it has the answer to the one before
  offered    calls that were sent, of the capacity; below %d.00 no more could be sent: either every connection was waiting for its answer, or
             the generator had no time, since it shares these cores with the service and PostgreSQL and takes from them what it uses itself
  accepted   sales answered 201 a second while that lasted, of the capacity; each one is in the database
  refused    calls answered 429 or 503, of those that were sent; none of them is in the database
  p99        ms from the moment at which a call was sent until it was answered
  busy       processors that the service, PostgreSQL and the generator kept busy meanwhile
  protected by
    tenant   at most %d calls of the tenant under way and %d that wait, as by default; what the key may ask a second is not limited
    queue    nothing but the queue of sales that wait for their commit (RATE_LIMIT=off), as where many tenants ask at once

`, overloadTimes, peakClients, o.openFor, overloadClients, o.rounds, o.seconds, peakClients, overloadTimes, usualInFlight, usualWaiting)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "protected by\tcapacity\toffered\taccepted\trefused\tp99 accepted\tp99 refused\tbusy: service\tPostgreSQL\tgenerator")
	for _, by := range []protection{{"tenant", usualInFlight, usualWaiting}, {"queue", 0, 0}} {
		var capacity, offered, accepted, refused, acceptedIn, refusedIn, service, postgres, generator series
		for range o.rounds {
			r, err := overloadRound(ctx, g, o, by)
			if err != nil {
				return fmt.Errorf("protected by %s: %w", by.name, err)
			}
			capacity, offered = append(capacity, r.capacity), append(offered, r.offered/r.capacity)
			accepted, refused = append(accepted, r.accepted/r.capacity), append(refused, r.refused)
			acceptedIn, refusedIn = append(acceptedIn, r.acceptedIn), append(refusedIn, r.refusedIn)
			service, postgres = append(service, r.busy(ofService)), append(postgres, r.busy(ofPostgres))
			generator = append(generator, r.busy(ofGenerator))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", by.name, capacity.spread("%.0f"), offered.spread("%.2f"), accepted.spread("%.2f"),
			refused.spread("%.2f"), acceptedIn.spread("%.0f"), refusedIn.spread("%.0f"),
			service.spread("%.2f"), postgres.spread("%.2f"), generator.spread("%.2f"))
	}
	return table.Flush()
}

// overloaded is one round.
type overloaded struct {
	capacity, offered, accepted float64 // a second
	refused                     float64 // share of what was offered
	acceptedIn, refusedIn       float64 // p99 in milliseconds
	effort                      effort  // in all
	took                        time.Duration
}

// busy is how many processors a part has used.
func (r overloaded) busy(part func(effort) time.Duration) float64 {
	return part(r.effort).Seconds() / r.took.Seconds()
}

func overloadRound(ctx context.Context, g *ground, o options, by protection) (r overloaded, err error) {
	if err := g.fresh(ctx, salesDatabase); err != nil {
		return r, err
	}
	a := salesService(g, o, "")
	a.InFlight, a.Waiting = by.inFlight, by.waiting
	var refs []string
	_, total, err := onChild(ctx, g, a, func(c *child, s *shop) (m measured, total int64, err error) {
		l, err := connect(s, peakClients)
		if err != nil {
			return m, 0, err
		}
		defer l.close()
		if _, err := l.closed(ctx, warmUp); err != nil {
			return m, 0, err
		}
		peak, err := l.closed(ctx, time.Duration(o.seconds)*time.Second)
		if err != nil {
			return m, 0, err
		}
		r.capacity = peak.perSecond()
		crowd, err := gather(s, overloadClients)
		if err != nil {
			return m, 0, err
		}
		defer crowd.close()
		before := g.effort(c.cmd.Process.Pid)
		d := time.Duration(o.openFor) * time.Second
		f, err := crowd.flood(ctx, int(overloadTimes*r.capacity), d)
		if err != nil {
			return m, 0, err
		}
		r.effort, r.took = g.effort(c.cmd.Process.Pid).since(before), f.took
		refs = f.refused
		sent := float64(len(f.acceptedIn) + len(f.refusedIn))
		r.offered, r.accepted = sent/d.Seconds(), float64(len(f.acceptedIn))/f.took.Seconds()
		r.refused = float64(len(f.refusedIn)) / sent
		r.acceptedIn, r.refusedIn = f.acceptedIn.quantile(0.99), f.refusedIn.quantile(0.99)
		return m, l.total() + crowd.gathered() + int64(len(f.acceptedIn)), nil
	})
	if err != nil {
		return r, err
	}
	return r, errors.Join(expectSales(ctx, g, total),
		g.expect(ctx, "refused sales that were recorded", salesDatabase, `select count(*) from sales where external_ref = any($1)`, 0, refs))
}
