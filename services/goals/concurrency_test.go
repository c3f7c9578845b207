package goals_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
)

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	testkit.Eventually(t, patience, what, cond)
}

func TestTwoInstancesTellEveryGoalOnceUnderRedelivery(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	w.run()
	partners := ids(20)
	w.goal(shop, `"target":25,"period":"month","timezone":"UTC"`)
	w.goal(shop, `"target":300,"metric":"sales_amount"`)
	moment := time.Now().Add(time.Second)
	var sales []any
	for i := range 2000 {
		sales = append(sales, sale(shop, partners[i%len(partners)], moment))
	}
	events := w.seal(sales...)

	var publishers sync.WaitGroup
	for round := range 2 {
		for from := 0; from < len(events); from += 200 {
			chunk := append(events[:0:0], events[from:from+200]...)
			for i := range chunk {
				chunk[i].MessageID += fmt.Sprintf(":r%d", round)
			}
			publishers.Go(func() { w.publish(chunk) })
		}
	}
	publishers.Wait()
	w.drained()

	told := map[string]int{}
	for _, e := range w.reached() {
		told[e.GoalID.String()+e.PartnerID.String()]++
	}
	for who, times := range told {
		if times != 1 {
			t.Errorf("%s is told %d times", who, times)
		}
	}
	if want := 2 * len(partners); len(told) != want {
		t.Errorf("%d goals are reached, want %d", len(told), want)
	}
	w.assertTotals()
}

func TestAGoalMadeWhileSalesStreamInCountsEachOnce(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.run()
	w.run()
	partners := ids(4)
	const lots, lotSize, goalsMade = 150, 20, 40
	selling := make(chan struct{})
	go func() {
		defer close(selling)
		for lot := range lots {
			var sales []any
			for i := range lotSize {
				sales = append(sales, sale(shop, partners[i%len(partners)], time.Now().Add(-time.Duration(lot+i)*time.Hour)))
			}
			w.publish(w.seal(sales...))
		}
	}()
	for i := range goalsMade {
		members := `"starts_at":"2026-01-01T00:00:00Z","target":100`
		if i%2 == 0 {
			members += `,"period":"month","metric":"sales_amount"`
		}
		w.goal(shop, members)
	}
	<-selling
	w.drained()

	if facts := w.rows("select count(*)::text from facts")[0]; facts != fmt.Sprint(lots*lotSize) {
		t.Errorf("there are %s facts, want %d", facts, lots*lotSize)
	}
	w.assertTotals()
	w.assertReached()
}

func TestOneOfManyCallsWithOneExternalRefMakesTheGoal(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	const calls = 32
	answers := make([]answer, calls)
	var callers sync.WaitGroup
	for i := range calls {
		callers.Go(func() { answers[i] = w.call(shop, "POST", "/api/v1/goals", goalBody(`"external_ref":"same"`)) })
	}
	callers.Wait()

	made := 0
	for _, a := range answers {
		if a.status == http.StatusCreated {
			made++
		} else if a.status != http.StatusOK {
			t.Errorf("a repeat answers %d %s", a.status, a.raw)
		}
		if a.body["goal_id"] != answers[0].body["goal_id"] {
			t.Errorf("a call answers another goal: %s", a.raw)
		}
	}
	if made != 1 {
		t.Errorf("%d calls answer 201, want 1", made)
	}
}

func TestSeveralTenantsInOneBatchDoNotBlockEachOther(t *testing.T) {
	w := newWorld(t)
	tenants := make([]tenant, 8)
	for i := range tenants {
		tenants[i] = w.tenant()
	}
	w.run()
	w.run()
	selling := make(chan struct{})
	go func() {
		defer close(selling)
		for range 40 {
			var sales []any
			for i := range 32 {
				sales = append(sales, sale(tenants[i%len(tenants)], uuid.New(), time.Now()))
			}
			w.publish(w.seal(sales...))
		}
	}()
	for range 5 {
		for _, owner := range tenants {
			w.goal(owner, `"starts_at":"2026-01-01T00:00:00Z"`)
		}
	}
	<-selling
	w.drained()
	w.assertTotals()
}
