package sales

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// posting is one POST that is about to be made.
type posting struct{ path, body string }

// together makes the calls at the same moment, alternately at the instances, and returns
// what each was answered.
func together(t *testing.T, instances []*fixture, calls []posting) []*response {
	t.Helper()
	answers, errs := make([]*response, len(calls)), make([]error, len(calls))
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i, call := range calls {
		ready.Add(1)
		done.Go(func() {
			f := instances[i%len(instances)]
			ready.Done()
			<-begin
			answers[i], errs[i] = f.try("POST", call.path, strings.NewReader(call.body), "Authorization", "Bearer "+f.key)
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return answers
}

func TestSixtyFourRefundsAtOnceNeverExceedTheirSale(t *testing.T) {
	t.Parallel()
	const calls, rounds = 64, 5
	f := start(t, nowhere)
	instances := []*fixture{f, f.replica()}
	for round := range rounds {
		sale, refunds := f.sell(fmt.Sprint("order-", round)) // 100.50, of which 3.01 goes 33 times
		var storm []posting
		for i := range calls {
			storm = append(storm, posting{refunds, refundOf(fmt.Sprint(round, "/", i), "3.01")})
		}
		made, reversed := 0, int64(0)
		for _, answer := range together(t, instances, storm) {
			if answer.StatusCode == 201 {
				made++
				reversed += centavosOf(t, answer.text("commission_reversed_brl"))
			} else {
				answer.refused(422, "rule_violated")
			}
		}
		if made != 33 || reversed != 497 { // 99.33 × 5.03 / 100.50 is 4.9714…
			t.Errorf("%d refunds were made and took back %d centavos, want 33 and 497", made, reversed)
		}
		f.get("/api/v1/sales/"+sale).want(200).shows("refunded_total_brl", "99.33")
		f.post(refunds, refundOf(fmt.Sprint(round, "/rest"), "1.17")).want(201).shows("commission_reversed_brl", "0.06")
	}
	if n := f.rows("refunds"); n != rounds*34 {
		t.Errorf("%d refunds are recorded, want %d", n, rounds*34)
	}
	if n := f.rows("outbox where name = 'sale.refunded'"); n != rounds*34 {
		t.Errorf("%d refunds are told, want %d", n, rounds*34)
	}
}

func TestOfSixtyFourCallsWithOneReferenceExactlyOneRefunds(t *testing.T) {
	t.Parallel()
	const calls, refs = 64, 20
	f := start(t, nowhere)
	instances := []*fixture{f, f.replica()}
	for name, row := range map[string]struct {
		sales  int
		amount string
	}{
		"one sale":             {1, "1"},
		"one sale, all of it":  {1, "100.50"},
		"two sales":            {2, "1"},
		"eight, all of each":   {8, "100.50"},
		"as many as the calls": {calls, "100.50"},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			for ref := range refs {
				var paths []string
				for n := range row.sales {
					_, refunds := f.sell(fmt.Sprint(name, "/", ref, "/", n))
					paths = append(paths, refunds)
				}
				var storm []posting
				for i := range calls {
					storm = append(storm, posting{paths[i%len(paths)], refundOf(fmt.Sprint(name, "/", ref), row.amount)})
				}
				receipt, firsts := "", 0
				answers := together(t, instances, storm)
				for _, answer := range answers {
					if answer.StatusCode == 201 {
						firsts++
						receipt = strings.Replace(string(answer.raw), `"idempotent":false`, `"idempotent":true`, 1)
					}
				}
				if firsts != 1 {
					t.Fatalf("%d of %d calls say that they refunded", firsts, calls)
				}
				for i, answer := range answers {
					if answer.StatusCode == 201 {
						continue
					}
					if answer.StatusCode != 200 || string(answer.raw) != receipt {
						t.Fatalf("answered %d %s, want 200 %s", answer.StatusCode, answer.raw, receipt)
					}
					differs := ""
					if !strings.Contains(storm[i].path, answer.text("sale_id")) {
						differs = "sale_id"
					}
					answer.mismatches(differs)
				}
			}
		})
	}
	if made, told := f.rows("refunds"), f.rows("outbox where name = 'sale.refunded'"); made != 5*refs || told != made {
		t.Errorf("%d refunds are recorded and %d told, want %d", made, told, 5*refs)
	}
	if n := f.rows("sales where refunded_centavos <> coalesce((select sum(amount_centavos) from refunds r where r.sale_id = sales.sale_id), 0)"); n != 0 {
		t.Errorf("%d sales say that something else was refunded than their refunds do", n)
	}
}
