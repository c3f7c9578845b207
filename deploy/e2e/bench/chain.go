package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

// chainClients is how many connections keep the whole chain at full load.
const chainClients = 64

// measureChain compares what the whole chain sustains with the yardstick at the same
// concurrency.
func measureChain(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
The whole chain at %d clients for %d s, then until the last webhook is there: median (least–greatest) of %d rounds
  accepted   sales answered 201 a second, while the load lasts
  sustained  sales a second from the first request to the last webhook, all of it done and counted
  behind     how long after the last answer the last webhook came, in seconds

`, chainClients, o.chainFor, o.rounds)
	var base, accepted, sustained, behind, services, postgres series
	for range o.rounds {
		m, err := yardstick(ctx, g, chainClients, o.seconds)
		if err != nil {
			return fmt.Errorf("yardstick: %w", err)
		}
		round, err := chainRound(ctx, g, time.Duration(o.chainFor)*time.Second)
		if err != nil {
			return err
		}
		base, accepted = append(base, m.perSecond), append(accepted, round.accepted)
		sustained, behind = append(sustained, round.sustained), append(behind, round.behind.Seconds())
		services = append(services, float64(round.effort.service.Microseconds()))
		postgres = append(postgres, float64(round.effort.postgres.Microseconds()))
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "yardstick\taccepted\tsustained\tsustained/yardstick\tbehind")
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", base.spread("%.0f"), accepted.spread("%.0f"), sustained.spread("%.0f"),
		sustained.over(base).spread("%.2f"), behind.spread("%.1f"))
	err := table.Flush()
	fmt.Printf("\nProcessor time for one sale, all the way: services and NATS %.0f µs, PostgreSQL %.0f µs\n", services.median(), postgres.median())
	return err
}

// chainResult is one round.
type chainResult struct {
	accepted, sustained float64 // sales a second
	behind              time.Duration
	effort              effort // for one sale
}

func chainRound(ctx context.Context, g *ground, d time.Duration) (result chainResult, err error) {
	p, err := startPlant(ctx, g, chainClients, "")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if _, err := p.load.closed(ctx, warmUp); err != nil {
		return result, err
	}
	if err := p.drain(ctx); err != nil {
		return result, err
	}
	before, start := g.effort(p.child.cmd.Process.Pid), time.Now()
	answered, err := p.load.closed(ctx, d)
	if err != nil {
		return result, err
	}
	if err := p.drain(ctx); err != nil {
		return result, err
	}
	used := g.effort(p.child.cmd.Process.Pid).since(before)
	v, err := p.judge(ctx)
	if err != nil {
		return result, err
	}
	took := v.webhooks.last.Sub(start)
	return chainResult{
		accepted: answered.perSecond(), sustained: float64(answered.sales) / took.Seconds(),
		behind: took - answered.took, effort: used.perSale(answered.sales),
	}, nil
}
