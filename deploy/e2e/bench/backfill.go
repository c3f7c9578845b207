package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

const backfillPartners = 1000

// measureBackfill compares how fast a new goal that looks back counts the sales that
// are there with how fast PostgreSQL copies them.
func measureBackfill(ctx context.Context, g *ground, o options) (err error) {
	fmt.Printf(`
A goal that counts the sales of two years by the month, from POST /api/v1/goals until it shows no backfill any more, with %d sales of %d
partners there beforehand, rows per second: median (least–greatest) of %d rounds, each with one goal more
  plain      insert into … select of the same rows, into a table with the same columns and no key

`, o.facts, backfillPartners, o.rounds)
	l, took, err := startPast(ctx, g, o.facts, backfillPartners)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	var plain, filled series
	for range o.rounds {
		rate, err := l.copyFacts(ctx, o.facts)
		if err != nil {
			return err
		}
		plain = append(plain, rate)
		if rate, err = l.fillGoal(ctx, o.facts); err != nil {
			return err
		}
		filled = append(filled, rate)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "plain\tbackfill\tbackfill/plain\tloaded in")
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", plain.spread("%.0f"), filled.spread("%.0f"), filled.over(plain).spread("%.2f"), took.Round(time.Second))
	return table.Flush()
}

// copyFacts copies every fact by one statement and returns how many it copied a second.
func (l *lone) copyFacts(ctx context.Context, facts int) (perSecond float64, err error) {
	conn, err := pgx.Connect(ctx, l.ground.postgres.URL(l.database))
	if err != nil {
		return 0, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `drop table if exists plain; create table plain (like facts)`); err != nil {
		return 0, fmt.Errorf("make the table of the copy: %w", err)
	}
	if err := l.ground.settle(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	copied, err := conn.Exec(ctx, `insert into plain select * from facts`)
	took := time.Since(start)
	if err == nil && copied.RowsAffected() != int64(facts) {
		err = fmt.Errorf("%d facts, want %d", copied.RowsAffected(), facts)
	}
	if err != nil {
		return 0, fmt.Errorf("copy facts: %w", err)
	}
	return float64(facts) / took.Seconds(), nil
}

// fillGoal makes a goal and returns how many facts it counted a second.
func (l *lone) fillGoal(ctx context.Context, facts int) (perSecond float64, err error) {
	if err := l.ground.settle(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	made, err := l.makeGoal(ctx, pastGoal("sales_count", "month"))
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	const progressQuery = `select coalesce(sum(progress), 0)::bigint from totals where goal_id = '%s'`
	err = l.ground.expect(ctx, "progress of a goal", l.database, fmt.Sprintf(progressQuery, made.ID), int64(facts))
	return float64(facts) / took.Seconds(), err
}
