package commissions

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

func TestASaleEarnsTheCommissionThatItsEventCarries(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	sold := sale(tenant, f.now.Add(-time.Minute))
	f.mustEarn(sold)

	got, err := f.commission(t.Context(), tenant, sold.Data.CommissionID)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case got.ID != sold.Data.CommissionID, got.PartnerID != sold.Data.PartnerID, got.Kind != "sale",
		*got.CampaignID != sold.Data.CampaignID, *got.PlanID != sold.Data.PlanID, *got.SourceSaleID != sold.Data.SaleID,
		got.SourceConversionID != nil, got.SourceGoalID != nil,
		*got.BaseAmount != 259_35, *got.Pct != 12_5000, got.Amount != 32_42, got.Reversed != 0, got.Status != "available",
		!got.AvailableAt.Equal(sold.CreatedAt), !got.CreatedAt.Equal(sold.CreatedAt):
		t.Errorf("commission %+v of sale %+v", got, sold)
	}
}

func TestTheNewCommissionIsToldOnceWithTheTraceOfItsSale(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	sold := sale(newID(), f.now.Add(-time.Minute))
	sold.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f.mustEarn(sold)

	var stored event.Sealed
	var id [16]byte
	err := f.deps.Pool.QueryRow(t.Context(), `select event_id, name, created_at, body, traceparent from outbox`).
		Scan(&id, &stored.Name, &stored.CreatedAt, &stored.Body, &stored.Traceparent)
	if err != nil {
		t.Fatal(err)
	}
	told, err := event.Read[event.CommissionAvailable](stored)
	if err != nil {
		t.Fatal(err)
	}
	d := told.Data
	switch {
	case stored.Name != "commission.available", told.Name != stored.Name, event.ID(id) != told.ID,
		told.ID != event.IDOf("commission.available", sold.Data.CommissionID.String()),
		told.TenantID != sold.TenantID, !told.CreatedAt.Equal(f.now), !stored.CreatedAt.Equal(f.now), stored.Traceparent != sold.Traceparent:
		t.Errorf("envelope %+v, stored as %+v", told, stored)
	case d.CommissionID != sold.Data.CommissionID, d.PartnerID != sold.Data.PartnerID, d.Amount != 32_42,
		*d.SourceSaleID != sold.Data.SaleID, d.CampaignID != sold.Data.CampaignID, d.SourceConversionID != nil,
		d.Kind != "sale", d.Status != "available", !d.AvailableAt.Equal(sold.CreatedAt):
		t.Errorf("data %+v", d)
	}
}

func TestAHoldEndsSoManyDaysAfterTheSaleButNeverBeforeTheCommissionIsEarned(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, recorded := newID(), f.now.Add(-time.Minute)
	for name, row := range map[string]struct {
		days        int
		soldAt      time.Time
		status      string
		availableAt time.Time
	}{
		"no hold":                             {0, recorded.Add(-time.Hour), "available", recorded},
		"no hold and a sale ahead of time":    {0, recorded.Add(day), "available", recorded},
		"a hold that starts now":              {14, recorded, "pending", recorded.Add(14 * day)},
		"a hold of a sale ahead of time":      {1, recorded.Add(day), "pending", recorded.Add(2 * day)},
		"a hold with an instant left":         {14, recorded.Add(-14*day + time.Microsecond), "pending", recorded.Add(time.Microsecond)},
		"a hold that ends as it is recorded":  {14, recorded.Add(-14 * day), "available", recorded},
		"a hold that ended before":            {14, recorded.Add(-30 * day), "available", recorded},
		"a hold with less than a microsecond": {14, recorded.Add(-14*day + time.Nanosecond), "available", recorded},
	} {
		t.Run(name, func(t *testing.T) {
			sold := sale(tenant, recorded, func(s *event.SaleRecorded) { s.HoldDays, s.SoldAt = row.days, row.soldAt })
			f.mustEarn(sold)
			got, err := f.commission(t.Context(), tenant, sold.Data.CommissionID)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != row.status || !got.AvailableAt.Equal(row.availableAt) {
				t.Errorf("%s at %s, want %s at %s", got.Status, got.AvailableAt, row.status, row.availableAt)
			}
			var toldStatus string
			var toldAt time.Time
			err = f.deps.Pool.QueryRow(t.Context(), `
				select data ->> 'status', (data ->> 'available_at')::timestamptz
				from (select convert_from(body, 'UTF8')::jsonb -> 'data' as data from outbox) told
				where data ->> 'commission_id' = $1`, sold.Data.CommissionID.String()).Scan(&toldStatus, &toldAt)
			if err != nil {
				t.Fatal(err)
			}
			if toldStatus != row.status || !toldAt.Equal(row.availableAt) {
				t.Errorf("told %s at %s, want %s at %s", toldStatus, toldAt, row.status, row.availableAt)
			}
		})
	}
}

func TestTheShareIsTheOneThatASpreadsheetWouldGive(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	for _, row := range []struct {
		amount money.BRL
		pct    money.Pct
		share  money.BRL
	}{
		{100_50, 5_0000, 5_03}, {95, 30_0000, 29}, {5, 10_0000, 1}, {2_00, 28_7500, 58}, {1, 10_0000, 0},
		{999999999_99, 100_0000, 999999999_99}, {100_00, 0, 0},
	} {
		f.mustEarn(sale(newID(), f.now, worth(row.amount, row.pct, row.share)))
		for _, off := range []money.BRL{row.share - 1, row.share + 1} {
			err := f.earnNow(sale(newID(), f.now, worth(row.amount, row.pct, off)))
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s percent of %s as %s: %v", row.pct, row.amount, off, err)
			}
		}
	}
}

func TestASaleThatCannotBeIsRefusedWhole(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	for name, change := range map[string]func(*event.SaleRecorded){
		"no sale_id":              func(s *event.SaleRecorded) { s.SaleID = uuid.Nil },
		"no partner_id":           func(s *event.SaleRecorded) { s.PartnerID = uuid.Nil },
		"no campaign_id":          func(s *event.SaleRecorded) { s.CampaignID = uuid.Nil },
		"no plan_id":              func(s *event.SaleRecorded) { s.PlanID = uuid.Nil },
		"no commission_id":        func(s *event.SaleRecorded) { s.CommissionID = uuid.Nil },
		"no sold_at":              func(s *event.SaleRecorded) { s.SoldAt = time.Time{} },
		"nothing sold":            worth(0, 5_0000, 0),
		"less than nothing sold":  worth(-100_00, 5_0000, -5_00),
		"more than all of it":     worth(100_00, 100_0001, 100_00),
		"less than nothing of it": worth(100_00, -5_0000, -5_00),
		"a centavo too much":      worth(100_00, 5_0000, 5_01),
		"a hold backwards":        func(s *event.SaleRecorded) { s.HoldDays = -1 },
		"a hold for ever":         func(s *event.SaleRecorded) { s.HoldDays = 1 << 40 },
		"a hold into year 10000": func(s *event.SaleRecorded) {
			s.HoldDays, s.SoldAt = 30, time.Date(9999, 12, 15, 0, 0, 0, 0, time.UTC)
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := f.earnNow(sale(newID(), f.now), sale(newID(), f.now, change))
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("refused as %v", err)
			}
		})
	}
	for _, table := range []string{"commissions", "accounts", "transfers", "holds", "outbox", "outbox_pending"} {
		if rows := f.dump("select * from " + table); len(rows) != 0 {
			t.Errorf("%s has %v", table, rows)
		}
	}
}

func TestASaleWithACommissionNeverGetsASecondOne(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant := newID()
	first := sale(tenant, f.now)
	f.mustEarn(first)
	before := f.state()

	again := sale(tenant, f.now, func(s *event.SaleRecorded) { s.SaleID = first.Data.SaleID })
	if err := f.earnNow(again); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the sale again: %v", err)
	}
	taken := sale(tenant, f.now, func(s *event.SaleRecorded) { s.CommissionID = first.Data.CommissionID })
	if err := f.earnNow(taken); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the commission id again: %v", err)
	}
	twice := sale(tenant, f.now)
	if err := f.earnNow(twice, twice); fault.KindOf(err) != fault.Conflict {
		t.Errorf("twice at once: %v", err)
	}
	same(t, before, f.state())
}

func TestTheSameIDsInAnotherTenantAreAnotherCommission(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	first := sale(newID(), f.now)
	f.mustEarn(first)
	f.now = f.now.Add(time.Second)
	other := first
	other.TenantID = newID()
	f.mustEarn(other)
	for _, tenant := range []uuid.UUID{first.TenantID, other.TenantID} {
		if _, err := f.commission(t.Context(), tenant, first.Data.CommissionID); err != nil {
			t.Errorf("tenant %s: %v", tenant, err)
		}
	}
}

func TestFiveHundredSalesTakeTwoRoundTrips(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	sent := f.counted()
	f.wire()
	var sales []event.Event[event.SaleRecorded]
	for range 500 {
		sales = append(sales, sale(newID(), f.now))
	}
	sent.forget()
	f.mustEarn(sales...)
	sent.expect(t, 8, 2) // begin, books begun and locked; commissions, transfers, books kept, the outbox, commit
	if rows := f.dump(`select commission_id from commissions`); len(rows) != 500 {
		t.Errorf("%d commissions", len(rows))
	}
}
