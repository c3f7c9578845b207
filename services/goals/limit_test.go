package goals_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
)

func TestATenantHasSoManyActiveGoals(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.config.PerTenant = 3
	w.serve()
	var statuses []int
	var all sync.WaitGroup
	var mu sync.Mutex
	for range 8 { // at once: none slips in between
		all.Go(func() {
			a := w.call(shop, "POST", "/api/v1/goals", goalBody(""))
			mu.Lock()
			defer mu.Unlock()
			if statuses = append(statuses, a.status); a.status == http.StatusUnprocessableEntity && a.body["code"] != "rule_violated" {
				t.Errorf("it is refused with %s", a.raw)
			}
		})
	}
	all.Wait()
	slices.Sort(statuses)
	if want := []int{201, 201, 201, 422, 422, 422, 422, 422}; !slices.Equal(statuses, want) {
		t.Fatalf("eight goals at once are answered %v, want %v", statuses, want)
	}
	if n := w.count("goals"); n != "3" {
		t.Errorf("there are %s goals", n)
	}
	w.goal(other, "")

	id := w.rows(`select goal_id::text from goals where tenant_id = $1 limit 1`, shop.id)[0]
	w.change(shop, id, `"status":"archived"`)
	repeatable := goalBody(`"external_ref":"last"`)
	if a := w.call(shop, "POST", "/api/v1/goals", repeatable); a.status != http.StatusCreated {
		t.Errorf("in place of an archived goal: %d %s", a.status, a.raw)
	}
	if a := w.call(shop, "POST", "/api/v1/goals", repeatable); a.status != http.StatusOK {
		t.Errorf("a repeat at the limit: %d %s", a.status, a.raw)
	}
	if a := w.call(shop, "PATCH", "/api/v1/goals/"+id, `{"status":"active"}`); a.status != http.StatusUnprocessableEntity || a.body["code"] != "rule_violated" {
		t.Errorf("made active again: %d %s", a.status, a.raw)
	}
	if got := fmt.Sprint(w.call(shop, "GET", "/api/v1/goals/"+id, "").body["status"]); got != "archived" {
		t.Errorf("after the refusal it is %s", got)
	}
	others := w.rows(`select goal_id::text from goals where tenant_id = $1 and status = 'active' limit 1`, shop.id)[0]
	if a := w.call(shop, "PATCH", "/api/v1/goals/"+others, `{"status":"active","name":"Still"}`); a.status != http.StatusOK {
		t.Errorf("a change of an active one at the limit: %d %s", a.status, a.raw)
	}
}
