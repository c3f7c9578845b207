package commissions

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

// Half of all goes to one partner, the rest to many, in batches that touch them in every
// order, from several replicas at once, while refunds and releases go on: nobody may be
// refused because of anybody else, deadlocks included.
func TestAHotPartnerAndManyOthersNeverDeadlock(t *testing.T) {
	t.Parallel()
	const workers, rounds, batch = 6, 12, 60
	f := prepare(t, nowhere).wire()
	tenant := newID()
	partners := make([]uuid.UUID, 2*batch)
	for i := range partners {
		partners[i] = uuid.New()
	}
	pick := func() uuid.UUID {
		if rand.IntN(2) == 0 {
			return partners[0]
		}
		return partners[rand.IntN(len(partners))]
	}
	var group sync.WaitGroup
	done := make(chan struct{})
	for range workers {
		replica := f.replica()
		group.Go(func() {
			for range rounds {
				var sales []event.Event[event.SaleRecorded]
				var refunds []event.Event[event.SaleRefunded]
				for i := range batch {
					held := i % 3
					sold := sale(tenant, f.now, soldBy(pick()), heldFor(held), func(s *event.SaleRecorded) { s.SoldAt = f.now.Add(-time.Duration(held)*day + time.Millisecond) })
					sales = append(sales, sold)
					for _, part := range []money.BRL{10_00, 22_42}[:rand.IntN(3)] {
						refunds = append(refunds, refundOf(sold, part))
					}
				}
				if err := handle(replica, replica.earnFromSales, sales...); err != nil {
					t.Error(err)
				}
				if err := handle(replica, replica.reverse, refunds...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var releasing sync.WaitGroup
	for range 2 {
		replica := f.replica()
		replica.now = f.now.Add(time.Second)
		releasing.Go(func() {
			for last := false; ; {
				ended, err := replica.release(t.Context(), held{}, releaseBatch)
				if err != nil {
					t.Error(err)
				}
				if last && len(ended) == 0 {
					return
				}
				select {
				case <-done:
					last = true
				default:
				}
			}
		})
	}
	group.Wait()
	close(done)
	releasing.Wait()
	if n := len(f.dump(`select 1 from commissions`)); n != workers*rounds*batch {
		t.Errorf("%d commissions", n)
	}
	if n := len(f.dump(`select 1 from commissions where status = 'pending'`)) + len(f.dump(`select 1 from holds`)); n != 0 {
		t.Errorf("%d are still held", n)
	}
	f.balanced(tenant)
}

// Books that several replicas begin at the same moment are begun once.
func TestNewPartnersAreBegunByManyAtOnce(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	const workers, each = 8, 40
	for range 5 {
		partners := make([]uuid.UUID, each)
		for i := range partners {
			partners[i] = uuid.New()
		}
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				var sales []event.Event[event.SaleRecorded]
				for _, i := range rand.Perm(each)[:each/2] {
					sales = append(sales, sale(tenant, f.now, soldBy(partners[i])))
				}
				if err := handle(f, f.earnFromSales, sales...); err != nil {
					t.Errorf("kind %d: %v", fault.KindOf(err), err)
				}
			})
		}
		group.Wait()
	}
	f.balanced(tenant)
}
