package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
)

const commissionsDatabase = "partilha_commissions"

// measureLedger compares how fast the commissions service books a backlog of sales
// with the yardstick and with the sale path, and a backlog of which one partner has
// half with one that is spread evenly.
func measureLedger(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
A backlog of %d sale.recorded, which waits in the stream when the commissions service starts, until the commission, the transfer and the balance
of each are committed, events per second: median (least–greatest) of %d rounds
  yardstick  pgbench at %d clients for %d s: what it inserts is as much as a sale, not as a commission
  sale path  POST /api/v1/sales on the sales service alone at %d clients for %d s
  even       the sales are those of %d partners, each with about as many; no other service runs, NATS has a process of its own
  hot        the same, but every second sale is of one partner, whose balance all of these wait for

`, o.events, o.rounds, backlogClients, o.seconds, backlogClients, o.seconds, backlogPartners)
	var base, sales, even, hot rounds
	for range o.rounds {
		b, s, err := baseOfBacklog(ctx, g, o)
		if err != nil {
			return err
		}
		base, sales = append(base, b), append(sales, s)
		for _, kind := range []struct {
			hot  bool
			into *rounds
		}{{false, &even}, {true, &hot}} {
			m, err := ledgerRound(ctx, g, o.events, kind.hot)
			if err != nil {
				return fmt.Errorf("book a backlog (hot: %t): %w", kind.hot, err)
			}
			*kind.into = append(*kind.into, m)
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "backlog\tevents/s\tof the yardstick\tof the sale path\tof even\tPostgreSQL, µs an event\tservice and NATS, µs an event")
	for _, row := range []struct {
		name string
		rounds
	}{{"even", even}, {"hot", hot}} {
		rate := row.perSecond()
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.0f\t%.0f\n", row.name, rate.spread("%.0f"), rate.over(base.perSecond()).spread("%.2f"),
			rate.over(sales.perSecond()).spread("%.2f"), rate.over(even.perSecond()).spread("%.2f"), row.microseconds(ofPostgres), row.microseconds(ofService))
	}
	err := table.Flush()
	fmt.Printf("\nIn the same rounds the yardstick made %s and the sale path %s a second.\n", base.perSecond().spread("%.0f"), sales.perSecond().spread("%.0f"))
	return err
}

// baseOfBacklog measures what a backlog is compared with.
func baseOfBacklog(ctx context.Context, g *ground, o options) (base, sales measured, err error) {
	if base, err = yardstick(ctx, g, backlogClients, o.seconds); err != nil {
		return base, sales, fmt.Errorf("yardstick: %w", err)
	}
	if sales, err = postService(ctx, g, o, backlogClients, ""); err != nil {
		return base, sales, fmt.Errorf("sale path: %w", err)
	}
	return base, sales, nil
}

// ledgerRound has a new commissions service book a backlog, and its books verified.
func ledgerRound(ctx context.Context, g *ground, sales int, hot bool) (m measured, err error) {
	l, err := startLone(ctx, g, roleCommissions, commissionsDatabase)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	events, err := backlog(l.tenant, sales, hot)
	if err != nil {
		return m, err
	}
	if err := l.pause(); err != nil {
		return m, err
	}
	if m, err = l.workOff(ctx, "commissions-earn", events); err != nil {
		return m, err
	}
	return m, errors.Join(l.verifyBooks(ctx),
		g.expect(ctx, "commissions", commissionsDatabase, `select count(*) from commissions`, int64(sales)),
		g.expect(ctx, "transfers", commissionsDatabase, `select count(*) from transfers`, int64(sales)),
		g.expect(ctx, "parked events", commissionsDatabase, `select count(*) from parked_events`, 0))
}

// verifyBooks has the service check every invariant of the tenant's books.
func (l *lone) verifyBooks(ctx context.Context) error {
	var verdict struct {
		OK     bool `json:"ok"`
		Checks []struct {
			Name   string `json:"name"`
			OK     bool   `json:"ok"`
			Detail string `json:"detail"`
		} `json:"checks"`
	}
	if err := l.call(ctx, "GET", "/api/v1/ledger/verify", nil, &verdict); err != nil {
		return err
	}
	if !verdict.OK {
		return fmt.Errorf("the books do not balance: %+v", verdict.Checks)
	}
	return nil
}
