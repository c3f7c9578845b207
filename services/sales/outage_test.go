package sales

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"partilha.dev/pkg/testkit"
)

func TestAKillOfTheDatabaseLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	const callers, kills, betweenKills = 8, 3, 50
	f, server := startOnOwnServer(t)
	var sold, refunds [callers]string // each caller refunds a sale of its own
	for i := range callers {
		sold[i], refunds[i] = f.sell(fmt.Sprint("refunded-", i))
	}
	kinds := []struct {
		table, event, id string
		before           int // rows that are there already
		call             func(caller int, ref string) posting
	}{
		{"sales", "sale.recorded", "sale_id", callers, func(_ int, ref string) posting { return posting{"/api/v1/sales", f.sale(ref)} }},
		{"conversions", "conversion.recorded", "conversion_id", 0, func(_ int, ref string) posting { return posting{"/api/v1/conversions", f.conversion(ref)} }},
		{"refunds", "sale.refunded", "refund_id", 0, func(caller int, ref string) posting { return posting{refunds[caller], refundOf(ref, "0.01")} }},
	}
	var (
		acknowledged = make([]atomic.Int64, len(kinds))
		reported     = make([]atomic.Int64, len(kinds))
		mu           sync.Mutex
		told         = make([]map[posting][]*response, len(kinds)) // every 201 and 200
	)
	for i := range told {
		told[i] = map[posting][]*response{}
	}
	stop := f.meanwhile(callers*len(kinds), func(goroutine, n int) {
		kind, caller := goroutine%len(kinds), goroutine/len(kinds)
		call := kinds[kind].call(caller, fmt.Sprint(caller, "/", n))
		reported[kind].Add(1)
		for range 2 {
			answer, err := f.try("POST", call.path, strings.NewReader(call.body), "Authorization", "Bearer "+f.key)
			switch {
			case err != nil:
				t.Error(err)
			case answer.StatusCode == 201 || answer.StatusCode == 200:
				acknowledged[kind].Add(1)
				mu.Lock()
				told[kind][call] = append(told[kind][call], answer)
				mu.Unlock()
			case answer.StatusCode != 503:
				t.Errorf("answered %d %s", answer.StatusCode, answer.raw)
			}
		}
	})
	for range kills {
		for i, kind := range kinds {
			until := acknowledged[i].Load() + betweenKills
			testkit.Eventually(t, soon, kind.table+" are acknowledged", func() bool { return acknowledged[i].Load() >= until })
		}
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()

	for i, kind := range kinds {
		for call, answers := range told[i] {
			firsts := 0
			for _, answer := range append(answers, f.post(call.path, call.body).want(200)) {
				if answer.StatusCode == 201 {
					firsts++
				}
				answer.shows(kind.id, answers[0].text(kind.id))
			}
			if firsts > 1 {
				t.Errorf("%s was answered 201 %d times", call.body, firsts)
			}
		}
		n := f.rows(kind.table) - kind.before
		if n < len(told[i]) || n > int(reported[i].Load()) {
			t.Errorf("%d %s are recorded of %d that were acknowledged and %d that were reported", n, kind.table, len(told[i]), reported[i].Load())
		}
		if events := f.rows("outbox where name = '"+kind.event+"'") - kind.before; events != n {
			t.Errorf("%d %s have %d events", n, kind.table, events)
		}
	}
	for caller, sale := range sold {
		n := f.rows("refunds where sale_id = '" + sale + "'")
		f.get("/api/v1/sales/"+sale).want(200).shows("refunded_total_brl", fmt.Sprintf("%d.%02d", n/100, n%100))
		if n == 0 {
			t.Errorf("caller %d refunded nothing", caller)
		}
	}
}
