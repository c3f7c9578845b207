package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"

	"partilha.dev/deploy/e2e/stage"
)

// refsAtOnce is how many references are reported by many callers at once: 200 where
// the environment asks for the full run.
func refsAtOnce() int {
	switch {
	case os.Getenv("E2E_FULL") == "1":
		return 200
	case testing.Short():
		return 10
	default:
		return 40
	}
}

func TestOfManyCallsAtOnceWithOneReferenceExactlyOneRecordsTheSale(t *testing.T) {
	t.Parallel()
	const calls = 64
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	receipts := map[string]stage.Receipt{}
	for i := range refsAtOnce() {
		ref := fmt.Sprintf("order-%d", i)
		answers := make([]stage.Answer, calls)
		errs := make([]error, calls)
		start := make(chan struct{})
		var callers sync.WaitGroup
		for n := range calls {
			callers.Go(func() {
				<-start
				answers[n], errs[n] = shop.Try("POST", "/api/v1/sales", shop.Report(ref))
			})
		}
		close(start)
		callers.Wait()

		statuses, results := map[int]int{}, map[stage.Receipt]int{}
		for n, got := range answers {
			if errs[n] != nil {
				t.Fatal(errs[n])
			}
			statuses[got.Status]++
			var r stage.Receipt
			if err := json.Unmarshal(got.Body, &r); err != nil {
				t.Fatalf("read %s: %v", got, err)
			}
			if r.Idempotent != (got.Status == 200) {
				t.Errorf("%s", got)
			}
			r.Idempotent = false
			results[r]++
			receipts[ref] = r
		}
		if statuses[201] != 1 || statuses[200] != calls-1 || len(results) != 1 {
			t.Errorf("%d calls at once with %s were answered %v with %d results", calls, ref, statuses, len(results))
		}
	}
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, receipts)
	b.AllDelivered(t)
	if told := len(shop.Receiver.Of("commission.available")); told != len(receipts) {
		t.Errorf("%d webhooks tell of %d commissions", told, len(receipts))
	}
}
