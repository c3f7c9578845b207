package main

import (
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

func TestABacklogIsOfSalesThatEveryServiceBelieves(t *testing.T) {
	tenant := uuid.New()
	const sales = 4000
	for _, c := range []struct {
		hot         bool
		least, most int // sales of the partner who sells most
	}{
		{false, sales / backlogPartners, sales / 100},
		{true, sales / 2, sales/2 + sales/100},
	} {
		events, err := backlog(tenant, sales, c.hot)
		if err != nil {
			t.Fatal(err)
		}
		ids, soldBy, most := map[event.ID]bool{}, map[uuid.UUID]int{}, 0
		for _, sealed := range events {
			e, err := event.Read[event.SaleRecorded](sealed)
			if err != nil {
				t.Fatal(err)
			}
			if e.TenantID != tenant || e.Data.Amount <= 0 || e.Data.CommissionAmount != money.Percent(e.Data.Amount, e.Data.CommissionPct) {
				t.Fatalf("a sale is %+v", e)
			}
			ids[e.ID] = true
			soldBy[e.Data.PartnerID]++
			most = max(most, soldBy[e.Data.PartnerID])
		}
		if len(events) != sales || len(ids) != sales {
			t.Errorf("hot %t: %d events with %d ids, want %d", c.hot, len(events), len(ids), sales)
		}
		if most < c.least || most > c.most || len(soldBy) < backlogPartners/2 {
			t.Errorf("hot %t: of %d partners one has %d sales, want %d to %d", c.hot, len(soldBy), most, c.least, c.most)
		}
	}
}
