package commissions

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

// The same events one by one in one order, and in batches in another, must leave the
// same balances.
func TestTheSplitIntoBatchesAndTheOrderDecideNothing(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	var events []event.Event[event.SaleRecorded]
	var refunds []event.Event[event.SaleRefunded]
	partners := []uuid.UUID{newID(), newID(), newID()}
	for i := range 60 {
		sold := sale(newID(), f.now, soldBy(partners[i%3]), func(d *event.SaleRecorded) { d.HoldDays = i % 2 })
		events = append(events, sold)
		for _, part := range []money.BRL{10_00, 20_00, 2_42}[:i%4] {
			refunds = append(refunds, refundOf(sold, part))
		}
	}
	var outcomes []map[string][]string
	for _, batch := range []int{1, 7, 500} {
		tenant := newID()
		f.now = f.now.Add(time.Second) // events of other tenants with the same causes are told at another time
		for i := range events {
			events[i].TenantID = tenant
		}
		for i := range refunds {
			refunds[i].TenantID = tenant
		}
		rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		rand.Shuffle(len(refunds), func(i, j int) { refunds[i], refunds[j] = refunds[j], refunds[i] })
		for chunk := range slices.Chunk(events, batch) {
			f.mustEarn(chunk...)
		}
		for chunk := range slices.Chunk(refunds, batch) {
			f.mustReverse(chunk...)
		}
		f.balanced(tenant)
		outcomes = append(outcomes, map[string][]string{
			"balances":    f.dump(fmt.Sprintf(`select partner_id, %s from accounts where tenant_id = '%s'`, balanceColumns, tenant)),
			"commissions": f.dump(fmt.Sprintf(`select commission_id, reversed_centavos, status from commissions where tenant_id = '%s'`, tenant)),
		})
	}
	for _, other := range outcomes[1:] {
		same(t, outcomes[0], other)
	}
}
