package goals_test

import (
	"net/http"
	"sync"
	"testing"
)

func TestCallsThatWaitForTheirTenantLeaveTheConnectionsToOthers(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.serve() // with 12 connections
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock_shared(hashtextextended('goals ' || $1::uuid::text, 0))`, shop.id); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 30 {
		calls.Go(func() {
			if a := w.call(shop, "POST", "/api/v1/goals", goalBody("")); a.status != http.StatusCreated {
				t.Errorf("a call that waited: %d %s", a.status, a.raw)
			}
		})
	}
	waiting := func() int {
		return len(w.rows(`select pid::text from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database())`))
	}
	eventually(t, "somebody waits", func() bool { return waiting() > 0 })
	for range 50 {
		if a := w.call(other, "POST", "/api/v1/goals", goalBody("")); a.status != http.StatusCreated {
			t.Errorf("a call of another tenant: %d %s", a.status, a.raw)
		}
		if n := waiting(); n > 1 {
			t.Errorf("%d connections wait for one tenant", n)
			break
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
}
