package commissions

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
)

const (
	wholePct    = money.Pct(100_0000) // 100 %
	longestHold = 3650                // days; far more than any plan may ask for
	lastYear    = 9999                // what a time on the wire can hold
)

// earnFromSales books the commission of each sale, with the id and the amount that the
// event carries. A sale whose arithmetic is wrong fails them all; see earn.
func (s *Service) earnFromSales(ctx context.Context, tx *postgres.Tx, sales []event.Event[event.SaleRecorded]) error {
	earnings := make([]earning, len(sales))
	for i, sale := range sales {
		if err := checkSale(sale.Data); err != nil {
			return err
		}
		c := commissionOfSale(sale)
		if c.AvailableAt.Year() > lastYear {
			return invalid("hold_days after sold_at is beyond the year %d", lastYear)
		}
		told, err := s.tellAvailable(sale.TenantID, c, sale.Traceparent)
		if err != nil {
			return err
		}
		earnings[i] = earning{c, sale.TenantID, told}
	}
	return s.earn(ctx, tx, earnings)
}

// checkSale tells what of a sale cannot be, above all a commission that is not the
// rate's share of the amount: the two services must agree on every centavo.
func checkSale(sale event.SaleRecorded) error {
	ids := []uuid.UUID{sale.SaleID, sale.PartnerID, sale.CampaignID, sale.PlanID, sale.CommissionID}
	switch {
	case slices.Contains(ids, uuid.Nil):
		return invalid("an id is missing")
	case sale.Amount <= 0:
		return invalid("amount_brl %s is not above 0", sale.Amount)
	case sale.CommissionPct < 0 || sale.CommissionPct > wholePct:
		return invalid("commission_pct %s is not from 0 to 100", sale.CommissionPct)
	case sale.HoldDays < 0 || sale.HoldDays > longestHold:
		return invalid("hold_days %d is not from 0 to %d", sale.HoldDays, longestHold)
	case sale.SoldAt.IsZero():
		return invalid("sold_at is missing")
	}
	if want := money.Percent(sale.Amount, sale.CommissionPct); sale.CommissionAmount != want {
		return invalid("commission_amount_brl is %s, but %s percent of %s is %s",
			sale.CommissionAmount, sale.CommissionPct, sale.Amount, want)
	}
	return nil
}

func commissionOfSale(sale event.Event[event.SaleRecorded]) commission {
	d := sale.Data
	status, availableAt := hold(sale)
	return commission{
		ID: d.CommissionID, PartnerID: d.PartnerID, CampaignID: &d.CampaignID, PlanID: &d.PlanID, Kind: kindSale, SourceSaleID: &d.SaleID,
		BaseAmount: &d.Amount, Pct: &d.CommissionPct, Amount: d.CommissionAmount, Status: status,
		AvailableAt: openapi.Time{Time: availableAt}, CreatedAt: openapi.Time{Time: event.Instant(sale.CreatedAt)},
	}
}

// hold decides whether a new commission is held back, and until when: hold_days after
// the sale. It is never available before it is earned, which is when the sale was
// recorded, so that a hold which has run out by then holds nothing.
func hold(sale event.Event[event.SaleRecorded]) (status string, availableAt time.Time) {
	earned := event.Instant(sale.CreatedAt)
	until := event.Instant(sale.Data.SoldAt).AddDate(0, 0, sale.Data.HoldDays)
	if sale.Data.HoldDays > 0 && until.After(earned) {
		return statusPending, until
	}
	return statusAvailable, earned
}

// earnedQuery counts the commissions that the sales of a window have earned, whoever they
// are of: each sale one, with the amounts that the sale told.
const earnedQuery = `
select count(*), coalesce(sum(base_amount_centavos), 0)::bigint, coalesce(sum(commission_amount_centavos), 0)::bigint
from commissions
where created_at >= $1 and created_at < $2 and kind = '` + kindSale + `' and 'sale.recorded' = any($3::text[])`
