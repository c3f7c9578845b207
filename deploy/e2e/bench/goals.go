package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

const goalsDatabase = "partilha_goals"

// goalCounts are how many goals one sale counts for.
var goalCounts = []int{1, 5, 50}

// eventsFor is the length of a backlog that counts for so many goals: shorter where
// each event is more work, so that the time is bounded.
func (o options) eventsFor(goals int) int { return max(o.events/max(1, goals/5), 1) }

// measureGoals compares how fast the goals service counts a backlog of sales with the
// sale path, where each sale counts for some goals.
func measureGoals(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
A backlog of sale.recorded, which waits in the stream when the goals service starts, until the fact and the progress of each are committed,
events per second: median (least–greatest) of %d rounds
  sale path  POST /api/v1/sales on the sales service alone at %d clients for %d s
  the goals  count sales by the month, each of every partner; the sales are those of %d partners, each with about as many;
             no other service runs, NATS has a process of its own

`, o.rounds, backlogClients, o.seconds, backlogPartners)
	var sales rounds
	counted := make([]rounds, len(goalCounts))
	for range o.rounds {
		m, err := postService(ctx, g, o, backlogClients, "")
		if err != nil {
			return fmt.Errorf("sale path: %w", err)
		}
		sales = append(sales, m)
		for i, goals := range goalCounts {
			if m, err = goalsRound(ctx, g, goals, o.eventsFor(goals)); err != nil {
				return fmt.Errorf("count for %d goals: %w", goals, err)
			}
			counted[i] = append(counted[i], m)
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "goals\tbacklog\tevents/s\tof the sale path\tof one goal\tPostgreSQL, µs an event\tservice and NATS, µs an event")
	for i, goals := range goalCounts {
		rate := counted[i].perSecond()
		fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%s\t%.0f\t%.0f\n", goals, o.eventsFor(goals), rate.spread("%.0f"), rate.over(sales.perSecond()).spread("%.2f"),
			rate.over(counted[0].perSecond()).spread("%.2f"), counted[i].microseconds(ofPostgres), counted[i].microseconds(ofService))
	}
	err := table.Flush()
	fmt.Printf("\nIn the same rounds the sale path made %s a second.\n", sales.perSecond().spread("%.0f"))
	return err
}

// goalsRound has a new goals service count a backlog for so many goals.
func goalsRound(ctx context.Context, g *ground, goals, sales int) (m measured, err error) {
	l, err := startLone(ctx, g, roleGoals, goalsDatabase)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	for number := range goals {
		goal := object{"name": fmt.Sprintf("Meta %d", number+1), "metric": "sales_count", "target": 1_000_000_000, "period": "month"}
		if _, err := l.makeGoal(ctx, goal); err != nil {
			return m, err
		}
	}
	events, err := backlog(l.tenant, sales, false)
	if err != nil {
		return m, err
	}
	if err := l.pause(); err != nil {
		return m, err
	}
	if m, err = l.workOff(ctx, "goals-count", events); err != nil {
		return m, err
	}
	return m, errors.Join(
		g.expect(ctx, "facts", goalsDatabase, `select count(*) from facts`, int64(sales)),
		g.expect(ctx, "progress of the goals", goalsDatabase, progressOfAllQuery, int64(sales)*int64(goals)),
		g.expect(ctx, "parked events", goalsDatabase, `select count(*) from parked_events`, 0))
}

const progressOfAllQuery = `select coalesce(sum(progress), 0)::bigint from totals`

// madeGoal is what the benchmark reads of a goal.
type madeGoal struct {
	ID       string    `json:"goal_id"`
	Backfill *struct{} `json:"backfill"` // nil: past sales have been counted
}

// makeGoal makes a goal and returns when the past sales of its window are counted.
func (l *lone) makeGoal(ctx context.Context, goal object) (made madeGoal, err error) {
	if err := l.call(ctx, "POST", "/api/v1/goals", goal, &made); err != nil {
		return made, err
	}
	for made.Backfill != nil {
		select {
		case <-ctx.Done():
			return made, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		made.Backfill = nil
		if err := l.call(ctx, "GET", "/api/v1/goals/"+made.ID, nil, &made); err != nil {
			return made, err
		}
	}
	return made, nil
}
