package goals_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// number is the only value that a query returns, as a number.
func (w *world) number(query string) int {
	w.t.Helper()
	n, err := strconv.Atoi(w.rows(query)[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestEverythingIsCountedOnceHoweverOftenTheServiceIsKilled kills a process twenty times
// while it counts what happens and what had happened before.
func TestEverythingIsCountedOnceHoweverOftenTheServiceIsKilled(t *testing.T) {
	const kills, before, perKill = 20, 3000, 150
	w := newWorld(t)
	shop := w.tenant()
	w.steps = childSteps
	w.serve() // which makes goals and does nothing else
	w.past(shop, before, 9)
	partners := ids(5)
	const counted, behind = `select count(*)::text from facts`, `select count(*)::text from goals where past_total is not null`
	stepsTaken := func() int { // of all goals: one that is filled has taken all of its
		return w.number(`select sum(coalesce(past_done, 100000))::text from goals`) / childSteps
	}
	midway := 0 // kills while a goal was half filled

	for kill := range kills {
		members := fmt.Sprintf(`"target":%d,`, 1+rand.IntN(200)) + since2026
		if kill%2 == 0 {
			members += `,"period":"week","metric":"sales_amount"`
		}
		w.goal(shop, members)
		var happened []any
		for i := range perKill {
			happened = append(happened, sale(shop, partners[i%len(partners)], w.now()))
		}
		w.publish(w.seal(happened...))
		facts, steps := w.number(counted), stepsTaken()
		end := w.process()
		more := rand.IntN(20)
		eventually(t, "the service counts both", func() bool { return w.number(counted) > facts && stepsTaken() > steps+more })
		end()
		midway += min(w.number(behind), 1)
	}
	if midway < kills/2 {
		t.Errorf("only %d of %d kills met a goal that was half filled", midway, kills)
	}
	w.process()
	w.drained()
	eventually(t, "every goal is filled", func() bool { return w.number(behind) == 0 })
	if facts, want := w.number(counted), before+kills*perKill; facts != want {
		t.Errorf("there are %d facts, want %d", facts, want)
	}
	w.assertTotals()
	w.assertReached()
}
