package sales

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/testkit"
)

func TestOverlappingBatchesRecordEachSaleOnce(t *testing.T) {
	t.Parallel()
	const callers, rounds, size, step = 8, 6, 120, 40
	f := start(t, nowhere)
	replicas := []*fixture{f, f.replica()}
	var mu sync.Mutex
	firsts, ids := map[string]int{}, map[string]map[string]bool{}
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for round := range rounds {
				var refs, elements []string
				for i := range size { // every second caller goes from the last to the first
					n := round*step + i
					if caller%2 == 1 {
						n = round*step + size - 1 - i
					}
					refs = append(refs, fmt.Sprint("order-", n))
					elements = append(elements, f.sale(refs[i]))
				}
				answer, err := replicas[caller%2].try("POST", batchPath, strings.NewReader(batchOf(elements...)), "Authorization", "Bearer "+f.key)
				if err != nil || answer.StatusCode != 200 {
					t.Errorf("%v %v", err, answer)
					return
				}
				var body struct{ Results []batchResult }
				if err := json.Unmarshal(answer.raw, &body); err != nil || len(body.Results) != size {
					t.Errorf("%d results: %v", len(body.Results), err)
					return
				}
				mu.Lock()
				for i, r := range body.Results {
					switch r.Status {
					case 201:
						firsts[refs[i]]++
					case 200:
					default:
						t.Errorf("%s: %+v", refs[i], r)
					}
					if ids[refs[i]] == nil {
						ids[refs[i]] = map[string]bool{}
					}
					ids[refs[i]][r.SaleID] = true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	const sales = (rounds-1)*step + size
	if len(ids) != sales || f.rows("sales") != sales || f.rows("outbox where name = 'sale.recorded'") != sales {
		t.Errorf("%d references, %d sales, want %d", len(ids), f.rows("sales"), sales)
	}
	for ref := range ids {
		if firsts[ref] != 1 || len(ids[ref]) != 1 {
			t.Errorf("%s: %d answers say that they recorded it, and %d sales are named", ref, firsts[ref], len(ids[ref]))
		}
	}
}

func TestALoneSaleAndABatchShareEachCommit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ alone, batched, groupAlone, groupBatched int }{
		{600, 600, 256, 256}, {10, 600, 10, 502}, {600, 10, 502, 10}, {600, 0, 512, 0}, {0, 600, 0, 512}, {3, 4, 3, 4}, {0, 0, 0, 0},
	} {
		r := newRecorder(nil, nil, 1)
		for range c.alone {
			r.queue <- &entry{}
		}
		for range c.batched {
			r.batched <- &entry{version: 1}
		}
		group := r.gather()
		batched := 0
		for _, e := range group {
			batched += int(e.version)
		}
		if len(group)-batched != c.groupAlone || batched != c.groupBatched {
			t.Errorf("of %d lone sales and %d of batches %d and %d are committed, want %d and %d",
				c.alone, c.batched, len(group)-batched, batched, c.groupAlone, c.groupBatched)
		}
	}
}

func TestWhatABatchSubmitsTogetherIsCommittedTogether(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	const n = commitSize + 1
	r, decide := f.idle(1), f.decided()
	var entries []*entry
	for i := range n {
		entries = append(entries, decide(fmt.Sprint("order-", i)))
	}
	ctx, stop := context.WithCancel(t.Context())
	submitted := make(chan []outcome, 1)
	go func() { submitted <- r.submitAll(t.Context(), entries) }()
	testkit.Eventually(t, soon, "the entries wait together", func() bool { return len(r.batched) == n })
	done := make(chan error, 1)
	go func() { done <- r.run(ctx) }()
	for i, o := range <-submitted {
		if o.err != nil || !o.recorded {
			t.Errorf("entry %d: %+v", i, o)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := f.rows("(select distinct xmin::text from sales) transactions"); n != 2 {
		t.Errorf("they took %d commits, want 2", n)
	}
}

func TestABatchWithoutRoomIsRefusedAsAWholeWhileLoneSalesGoOn(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	release, err := f.service.recorder.reserve(t.Context(), batchRoom-1)
	if err != nil {
		t.Fatal(err)
	}
	f.recordsNothing(func() {
		f.post(batchPath, batchOf(f.sale("a"), f.sale("b"))).refused(503, "unavailable")
	})
	f.post("/api/v1/sales", f.sale("alone")).want(201)
	f.batch(f.sale("a"), "0")
	release()
	if got := statuses(f.batch(f.sale("a"), f.sale("b"))); fmt.Sprint(got) != "[200 201]" {
		t.Errorf("with room: %v", got)
	}
}

func TestABatchWaitsUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(nil, nil, 1)
		all, err := r.reserve(t.Context(), batchRoom)
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		go func() {
			release, err := r.reserve(t.Context(), 1000)
			if err == nil {
				release()
			}
			waited <- err
		}()
		synctest.Wait()
		all()
		if err := <-waited; err != nil {
			t.Error(err)
		}
	})
}

func TestRoomThatNobodyTakesIsGivenOn(t *testing.T) {
	t.Parallel()
	r := newRecorder(nil, nil, 1)
	for range 3 {
		release, err := r.reserve(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.reserve(cancelled, 2000); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a caller who left: %v", err)
	}
	release, err := r.reserve(t.Context(), 1000)
	if err != nil {
		t.Errorf("the room of a caller who left is not given on: %v", err)
	} else {
		release()
	}
}
