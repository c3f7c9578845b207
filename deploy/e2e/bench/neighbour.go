package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

const (
	quietRate    = 50  // sales a second of the quiet tenant
	quietClients = 16  // its connections
	stormClients = 256 // connections of the tenant that sends as fast as it can

	usualInFlight = 64 // as RATE_LIMIT_IN_FLIGHT is by default
)

// measureNeighbour shows what a tenant feels of another that sends at full speed.
func measureNeighbour(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
A quiet tenant, %d sales a second, alone and beside one that sends at full speed over %d connections, on the sales service with at most
%d calls of a tenant under way: answer in ms, from the moment at which a sale was due: median (least–greatest) of %d rounds of %d s

`, quietRate, stormClients, usualInFlight, o.rounds, o.openFor)
	var alone50, alone99, beside50, beside99, storm series
	for range o.rounds {
		alone, _, err := neighbourRound(ctx, g, o, 0)
		if err != nil {
			return fmt.Errorf("alone: %w", err)
		}
		beside, others, err := neighbourRound(ctx, g, o, stormClients)
		if err != nil {
			return fmt.Errorf("beside another: %w", err)
		}
		alone50, alone99 = append(alone50, alone.quantile(0.5)), append(alone99, alone.quantile(0.99))
		beside50, beside99 = append(beside50, beside.quantile(0.5)), append(beside99, beside.quantile(0.99))
		storm = append(storm, others)
	}
	const format = "%.1f"
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "alone p50\talone p99\tbeside p50\tbeside p99\tp99: beside/alone\tthe other's sales/s")
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", alone50.spread(format), alone99.spread(format), beside50.spread(format), beside99.spread(format),
		beside99.over(alone99).spread(format), storm.spread("%.0f"))
	return table.Flush()
}

// neighbourRound measures the quiet tenant while another has that many connections. It
// returns the quiet one's latencies and the other's sales a second.
func neighbourRound(ctx context.Context, g *ground, o options, others int) (latencies series, otherRate float64, err error) {
	if err := g.fresh(ctx, salesDatabase); err != nil {
		return nil, 0, err
	}
	a := salesService(g, o, "")
	a.InFlight = usualInFlight
	_, total, err := onChild(ctx, g, a, func(c *child, quiet *shop) (m measured, total int64, err error) {
		loud, err := openShop(ctx, c)
		if err != nil {
			return m, 0, err
		}
		quietLoad, err := connect(quiet, quietClients)
		if err != nil {
			return m, 0, err
		}
		defer quietLoad.close()
		loudLoad, err := connect(loud, others)
		if err != nil {
			return m, 0, err
		}
		defer loudLoad.close()

		stormed := make(chan error, 1)
		d := time.Duration(o.openFor) * time.Second
		go func() {
			if others == 0 {
				stormed <- nil
				return
			}
			b, err := loudLoad.closed(ctx, warmUp+d+time.Second)
			otherRate = b.perSecond()
			stormed <- err
		}()
		if _, err = quietLoad.open(ctx, quietRate, warmUp); err != nil {
			return m, 0, err
		}
		promises, err := quietLoad.open(ctx, quietRate, d)
		if err != nil {
			return m, 0, err
		}
		for _, kept := range promises {
			latencies = append(latencies, milliseconds(kept.answered.Sub(kept.due)))
		}
		err = <-stormed
		return m, quietLoad.total() + loudLoad.total(), err
	})
	if err != nil {
		return nil, 0, err
	}
	return latencies, otherRate, expectSales(ctx, g, total)
}
