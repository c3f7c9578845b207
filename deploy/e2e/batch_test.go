package e2e

import (
	"fmt"
	"sync"
	"testing"

	"partilha.dev/deploy/e2e/stage"
)

func TestEverySaleOfABatchGoesAllTheWayOnce(t *testing.T) {
	t.Parallel()
	const sales, callers = 60, 4
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	var elements []any
	for i := range sales {
		elements = append(elements, shop.Report(fmt.Sprintf("order-%d", i)), stage.Object{"external_ref": "no sale"})
	}
	answers := make([]stage.Answer, callers)
	errs := make([]error, callers)
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() { answers[n], errs[n] = shop.Try("POST", "/api/v1/sales/batch", stage.Object{"sales": elements}) })
	}
	all.Wait()
	receipts, statuses := map[string]stage.Receipt{}, map[int]int{}
	for n, got := range answers {
		if errs[n] != nil || got.Status != 200 {
			t.Fatalf("%v %v", errs[n], got)
		}
		var body struct {
			Results []struct {
				stage.Receipt
				Status int `json:"status"`
			} `json:"results"`
		}
		got.Into(t, &body)
		for i, r := range body.Results {
			statuses[r.Status]++
			if r.Status == 201 {
				receipts[fmt.Sprintf("order-%d", i/2)] = r.Receipt
			}
		}
	}
	if want := (map[int]int{201: sales, 200: (callers - 1) * sales, 400: callers * sales}); fmt.Sprint(statuses) != fmt.Sprint(want) {
		t.Errorf("answered %v, want %v", statuses, want)
	}
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, receipts)
	b.AllDelivered(t)
}

func TestEveryProcessLimitsWhoShowsNoKeyByAddress(t *testing.T) {
	t.Parallel()
	const burst = 5
	p := stage.StartPlatform(t, "RATE_LIMIT=on", fmt.Sprint("AUTH_FAILURES_BURST=", burst), "AUTH_FAILURES_PER_SECOND=1", "TRUSTED_PROXIES=127.0.0.0/8,::1/128")
	shop := stage.NewTenant(t, p)
	shop.AwaitKey(t)
	stranger := stage.Caller{System: p, Token: "no key"}
	for _, service := range stage.Services {
		var last stage.Answer
		for range 100 { // one of them may pass each second
			if last = stranger.Call(t, "GET", stage.Anywhere[service], nil, "X-Forwarded-For", "198.51.100.1"); last.Status != 401 {
				break
			}
		}
		if last.Status != 429 || last.Code() != "rate_limited" || last.Header.Get("Retry-After") == "" {
			t.Errorf("%s: who guesses is answered %v %v", service, last, last.Header)
		}
		if a := stranger.Call(t, "GET", stage.Anywhere[service], nil, "X-Forwarded-For", "198.51.100.2"); a.Status != 401 {
			t.Errorf("%s: from another address: %v", service, a)
		}
		if a := shop.Call(t, "GET", stage.Anywhere[service], nil, "X-Forwarded-For", "198.51.100.1"); a.Status != 200 {
			t.Errorf("%s: a valid key from the same address: %v", service, a)
		}
	}
}
