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

const (
	leaderboardRate = 50 // calls a second
	leaderboardPage = 25
)

// measureLeaderboard shows how long the first page of a goal takes where many
// partners take part in it.
func measureLeaderboard(ctx context.Context, g *ground, o options) (err error) {
	fmt.Printf(`
GET /api/v1/goals/{goal_id}/progress, the first %d of %d partners, %d calls a second over %d connections, on the goals service alone:
answer in ms, from the moment at which a call was due: median (least–greatest) of %d rounds of %d s
  given up   calls that could not be sent within %s; they count with the time until then

`, leaderboardPage, o.partners, leaderboardRate, readClients, o.rounds, o.openFor, readPatience)
	l, loading, err := startPast(ctx, g, o.partners, o.partners)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	start := time.Now()
	made, err := l.makeGoal(ctx, pastGoal("sales_amount", "total"))
	if err != nil {
		return err
	}
	filling := time.Since(start)
	if err := g.expect(ctx, "partners of the goal", goalsDatabase, `select count(*) from totals`, int64(o.partners)); err != nil {
		return err
	}
	rows := min(leaderboardPage, o.partners)
	page := question{
		path:     fmt.Sprintf("/api/v1/goals/%s/progress?limit=%d", made.ID, leaderboardPage),
		answered: func(body []byte) bool { return bytes.Count(body, []byte(`"rank":`)) == rows },
	}
	asked, err := l.askInRounds(ctx, o, page, leaderboardRate)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "partners\tp50\tp99\tslowest\tgiven up\tsales loaded in\tgoal filled in")
	fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", o.partners, asked, loading.Round(time.Second), filling.Round(time.Second))
	return table.Flush()
}
