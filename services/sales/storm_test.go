package sales

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// together makes calls of which none begins before all are ready to.
func (f *fixture) together(calls int, call func(i int) (*response, error)) []*response {
	f.t.Helper()
	answers := make([]*response, calls)
	errs := make([]error, calls)
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i := range calls {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-begin
			answers[i], errs[i] = call(i)
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		f.t.Fatal(err)
	}
	return answers
}

func TestOfSixtyFourCallsAtOnceExactlyOneRecords(t *testing.T) {
	t.Parallel()
	const calls, refs = 64, 200
	f := start(t, nowhere)
	replicas := []*fixture{f, f.replica()}
	for ref := range refs {
		body := f.sale(fmt.Sprint("order-", ref))
		answers := f.together(calls, func(i int) (*response, error) { return replicas[i%len(replicas)].report(body) })
		firsts := 0
		var receipt string
		for _, answer := range answers {
			if answer.StatusCode == 201 {
				firsts++
				answer.shows("idempotent", "false", "commission_amount_brl", "5.03")
				receipt = strings.Replace(string(answer.raw), `"idempotent":false`, `"idempotent":true`, 1)
			}
		}
		if firsts != 1 {
			t.Fatalf("%d of %d calls say that they recorded the sale", firsts, calls)
		}
		for _, answer := range answers {
			if answer.StatusCode != 201 && (answer.StatusCode != 200 || string(answer.raw) != receipt) {
				t.Fatalf("answered %d %s, want 200 %s", answer.StatusCode, answer.raw, receipt)
			}
		}
	}
	if n := f.rows("sales"); n != refs {
		t.Errorf("%d sales are recorded, want %d", n, refs)
	}
	if n := f.rows("outbox where name = 'sale.recorded'"); n != refs {
		t.Errorf("%d events are in the outbox, want %d", n, refs)
	}
	if n := f.rows("sales s join outbox o on convert_from(o.body, 'UTF8')::jsonb #>> '{data,sale_id}' = s.sale_id::text"); n != refs {
		t.Errorf("%d sales have their event, want %d", n, refs)
	}
}

func TestManyReferencesAtOnceAreManySales(t *testing.T) {
	t.Parallel()
	const callers, each = 16, 50
	f := start(t, nowhere)
	other := f.stranger()
	var done sync.WaitGroup
	for caller := range callers {
		done.Go(func() {
			for n := range each {
				for _, f := range []*fixture{f, other} {
					answer, err := f.report(f.sale(fmt.Sprint(caller, "/", n)))
					if err != nil || answer.StatusCode != 201 {
						t.Errorf("%v %v", err, answer)
					}
				}
			}
		})
	}
	done.Wait()
	if n := f.rows("sales"); n != 2*callers*each {
		t.Errorf("%d sales are recorded, want %d", n, 2*callers*each)
	}
}
