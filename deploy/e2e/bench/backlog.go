package main

import (
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

const (
	backlogPartners = 1000
	backlogClients  = 64 // of the yardstick and of the sale path that a backlog is compared with
)

// backlog makes so many sales of a tenant, sold and recorded a moment ago one after
// the other by partners in no order, each of whom sells about as much. A hot partner
// sells every second one.
func backlog(tenant uuid.UUID, sales int, hot bool) ([]event.Sealed, error) {
	random := rand.New(rand.NewPCG(0, 0)) // the same partners in every round
	partners := make([]uuid.UUID, backlogPartners)
	for i := range partners {
		partners[i] = uuid.New()
	}
	campaign, plan := uuid.New(), uuid.New()
	now := event.Instant(time.Now())
	events := make([]event.Sealed, sales)
	for i := range events {
		partner := partners[random.IntN(len(partners))]
		if hot && i%2 == 0 {
			partner = partners[0]
		}
		sale, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		commission, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		amount := money.BRL(1000 + random.Int64N(100_000))
		events[i], err = event.Seal(tenant, sale.String(), now, event.SaleRecorded{
			SaleID: sale, PartnerID: partner, CampaignID: campaign, PlanID: plan, ExternalRef: "bench-" + sale.String(), Amount: amount, SoldAt: now,
			CommissionID: commission, CommissionPct: barePct, CommissionAmount: money.Percent(amount, barePct),
		}, "")
		if err != nil {
			return nil, err
		}
	}
	return events, nil
}
