package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

const aloneRate = 2000 // sales a second

// measureAlone shows how long a sale takes at a steady rate where only the sales
// service runs.
func measureAlone(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
POST /api/v1/sales, %d a second over %d connections, on the sales service alone: answer in ms, from the moment at which a sale was due:
median (least–greatest) of %d rounds of %d s

`, aloneRate, openClients, o.rounds, o.openFor)
	var p50, p99, slowest series
	for range o.rounds {
		took, err := aloneRound(ctx, g, o)
		if err != nil {
			return err
		}
		p50, p99, slowest = append(p50, took.quantile(0.5)), append(p99, took.quantile(0.99)), append(slowest, took.quantile(1))
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "sales/s\tp50\tp99\tslowest")
	fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", aloneRate, p50.spread("%.1f"), p99.spread("%.1f"), slowest.spread("%.1f"))
	return table.Flush()
}

func aloneRound(ctx context.Context, g *ground, o options) (took series, err error) {
	if err := g.fresh(ctx, salesDatabase); err != nil {
		return nil, err
	}
	_, total, err := onChild(ctx, g, salesService(g, o, ""), func(_ *child, s *shop) (m measured, total int64, err error) {
		l, err := connect(s, openClients)
		if err != nil {
			return m, 0, err
		}
		defer l.close()
		if _, err := l.open(ctx, aloneRate, warmUp); err != nil {
			return m, 0, err
		}
		promises, err := l.open(ctx, aloneRate, time.Duration(o.openFor)*time.Second)
		for _, kept := range promises {
			took = append(took, milliseconds(kept.answered.Sub(kept.due)))
		}
		return m, l.total(), err
	})
	if err != nil {
		return nil, err
	}
	return took, expectSales(ctx, g, total)
}
