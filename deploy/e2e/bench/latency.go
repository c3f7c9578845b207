package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

// openClients is how many connections an open loop may use at once.
const openClients = 128

// moments are the latencies of one round, in milliseconds.
type moments struct{ answer, webhook series }

// measureLatency sends sales at steady rates and measures from the moment at which
// each was due, so that waiting for a slow answer is not left out.
func measureLatency(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
Latency of the whole chain in ms, from the moment at which a sale was due: median (least–greatest) of %d rounds of %d s
  201        the sale is answered
  webhook    its commission.available has reached the tenant's server, and the signature is right

`, o.rounds, o.openFor)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "sales/s\t201 p50\t201 p99\twebhook p50\twebhook p99\twebhook slowest")
	for _, rate := range o.rates {
		var answer50, answer99, webhook50, webhook99, slowest series
		for range o.rounds {
			m, err := latencyRound(ctx, g, rate, time.Duration(o.openFor)*time.Second)
			if err != nil {
				return fmt.Errorf("at %d sales a second: %w", rate, err)
			}
			answer50, answer99 = append(answer50, m.answer.quantile(0.5)), append(answer99, m.answer.quantile(0.99))
			webhook50, webhook99 = append(webhook50, m.webhook.quantile(0.5)), append(webhook99, m.webhook.quantile(0.99))
			slowest = append(slowest, m.webhook.quantile(1))
		}
		const format = "%.1f"
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", rate, answer50.spread(format), answer99.spread(format),
			webhook50.spread(format), webhook99.spread(format), slowest.spread(format))
	}
	return table.Flush()
}

func latencyRound(ctx context.Context, g *ground, rate int, d time.Duration) (m moments, err error) {
	p, err := startPlant(ctx, g, openClients, "")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if _, err := p.load.open(ctx, rate, warmUp); err != nil {
		return m, err
	}
	if err := p.drain(ctx); err != nil {
		return m, err
	}
	promises, err := p.load.open(ctx, rate, d)
	if err != nil {
		return m, err
	}
	if err := p.drain(ctx); err != nil {
		return m, err
	}
	if _, err := p.judge(ctx); err != nil {
		return m, err
	}
	for _, kept := range promises {
		heard, ok := p.receiver.when(kept.sale)
		if !ok {
			return m, fmt.Errorf("sale %s has no webhook", kept.sale)
		}
		m.answer = append(m.answer, milliseconds(kept.answered.Sub(kept.due)))
		m.webhook = append(m.webhook, milliseconds(heard.Sub(kept.due)))
	}
	return m, nil
}
