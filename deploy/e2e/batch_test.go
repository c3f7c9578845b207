package e2e

import (
	"fmt"
	"sync"
	"testing"
)

func TestEverySaleOfABatchGoesAllTheWayOnce(t *testing.T) {
	t.Parallel()
	const sales, callers = 60, 4
	p := startPlatform(t)
	shop := openShop(t, p)
	var elements []any
	for i := range sales {
		elements = append(elements, shop.report(fmt.Sprintf("order-%d", i)), object{"external_ref": "no sale"})
	}
	answers := make([]answer, callers)
	errs := make([]error, callers)
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() { answers[n], errs[n] = shop.try("POST", "/api/v1/sales/batch", object{"sales": elements}) })
	}
	all.Wait()
	receipts, statuses := map[string]receipt{}, map[int]int{}
	for n, got := range answers {
		if errs[n] != nil || got.status != 200 {
			t.Fatalf("%v %v", errs[n], got)
		}
		var body struct {
			Results []struct {
				receipt
				Status int `json:"status"`
			} `json:"results"`
		}
		got.into(t, &body)
		for i, r := range body.Results {
			statuses[r.Status]++
			if r.Status == 201 {
				receipts[fmt.Sprintf("order-%d", i/2)] = r.receipt
			}
		}
	}
	if want := (map[int]int{201: sales, 200: (callers - 1) * sales, 400: callers * sales}); fmt.Sprint(statuses) != fmt.Sprint(want) {
		t.Errorf("answered %v, want %v", statuses, want)
	}
	b := books{p, shop}
	b.settle(t, receipts)
	b.allDelivered(t)
}

func TestEveryProcessLimitsWhoShowsNoKeyByAddress(t *testing.T) {
	t.Parallel()
	const burst = 5
	p := startPlatform(t, "RATE_LIMIT=on", fmt.Sprint("AUTH_FAILURES_BURST=", burst), "AUTH_FAILURES_PER_SECOND=1", "TRUSTED_PROXIES=127.0.0.0/8,::1/128")
	shop := newTenant(t, p)
	shop.awaitKey(t)
	stranger := caller{system: p, token: "no key"}
	for _, service := range services {
		var last answer
		for range 100 { // one of them may pass each second
			if last = stranger.call(t, "GET", anywhere[service], nil, "X-Forwarded-For", "198.51.100.1"); last.status != 401 {
				break
			}
		}
		if last.status != 429 || last.code() != "rate_limited" || last.header.Get("Retry-After") == "" {
			t.Errorf("%s: who guesses is answered %v %v", service, last, last.header)
		}
		if a := stranger.call(t, "GET", anywhere[service], nil, "X-Forwarded-For", "198.51.100.2"); a.status != 401 {
			t.Errorf("%s: from another address: %v", service, a)
		}
		if a := shop.call(t, "GET", anywhere[service], nil, "X-Forwarded-For", "198.51.100.1"); a.status != 200 {
			t.Errorf("%s: a valid key from the same address: %v", service, a)
		}
	}
}
