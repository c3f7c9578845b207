package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

const balanceRate = 500 // calls a second

// measureBalance shows how long a partner's balance takes in books of many transfers.
func measureBalance(ctx context.Context, g *ground, o options) (err error) {
	fmt.Printf(`
GET /api/v1/balances/{partner_id}, each of a partner at random, %d calls a second over %d connections, on the commissions service alone:
answer in ms, from the moment at which a call was due: median (least–greatest) of %d rounds of %d s
  the books  %d transfers, %d of each partner, each with its commission and the balance that it leaves, loaded by insert … select from
             generate_series, %d rows at a time in the order of the partners; then verified by GET /api/v1/ledger/verify
  given up   calls that could not be sent within %s; they count with the time until then

`, balanceRate, readClients, o.rounds, o.openFor, o.transfers, transfersEach, loadedAtOnce, readPatience)
	l, err := startLone(ctx, g, roleCommissions, commissionsDatabase)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	start := time.Now()
	if err := g.load(ctx, commissionsDatabase, booksTables, pastBooks(l.tenant, o.transfers)...); err != nil {
		return err
	}
	if err := l.verifyBooks(ctx); err != nil {
		return err
	}
	loaded := time.Since(start)
	bytesOfBooks, err := g.number(ctx, commissionsDatabase,
		`select pg_total_relation_size('accounts') + pg_total_relation_size('transfers') + pg_total_relation_size('commissions')`)
	if err != nil {
		return err
	}
	want := []byte(loadedBalance())
	balance := question{
		path: "/api/v1/balances/%s", partner: loadedPartner(o.transfers),
		answered: func(body []byte) bool { return bytes.Contains(body, want) },
	}
	asked, err := l.askInRounds(ctx, o, balance, balanceRate)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "transfers\tp50\tp99\tslowest\tgiven up\tbytes of the books\tloaded and verified in")
	fmt.Fprintf(table, "%d\t%s\t%d\t%s\n", o.transfers, asked, bytesOfBooks, loaded.Round(time.Second))
	return table.Flush()
}
