package commissions

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

// earn books exactly one commission for each sale, with the id and the amount that the
// event carries. The commissions and the events that tell of them commit together.
//
// A sale whose arithmetic is wrong, or that has a commission already under another
// event, fails them all; the bus then parks that one and books the others.
func (s *Service) earn(ctx context.Context, tx *postgres.Tx, sales []event.Event[event.SaleRecorded]) error {
	slices.SortFunc(sales, func(a, b event.Event[event.SaleRecorded]) int { // one lock order for all replicas
		return cmp.Or(bytes.Compare(a.TenantID[:], b.TenantID[:]), bytes.Compare(a.Data.SaleID[:], b.Data.SaleID[:]))
	})
	now := event.Instant(s.deps.Now())
	rows := newEarned(len(sales))
	told := make([]event.Sealed, 0, len(sales))
	for _, sale := range sales {
		if err := check(sale.Data); err != nil {
			return err
		}
		status, availableAt := hold(sale)
		if availableAt.Year() > lastYear {
			return invalid("hold_days after sold_at is beyond the year %d", lastYear)
		}
		rows.append(sale, status, availableAt)
		available, err := tell(sale, status, availableAt, now)
		if err != nil {
			return err
		}
		told = append(told, available)
	}
	if err := rows.insert(ctx, tx); err != nil {
		return err
	}
	return s.relay.Add(ctx, tx, told...)
}

const (
	wholePct    = money.Pct(100_0000) // 100 %
	longestHold = 3650                // days; far more than any plan may ask for
	lastYear    = 9999                // what a time on the wire can hold
)

func invalid(format string, args ...any) error {
	return fault.Newf(fault.Invalid, "invalid_event", format, args...)
}

// check tells what of a sale cannot be, above all a commission that is not the rate's
// share of the amount: the two services must agree on every centavo.
func check(sale event.SaleRecorded) error {
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

// tell makes the event that the sale's commission has come into being.
func tell(sale event.Event[event.SaleRecorded], status string, availableAt, now time.Time) (event.Sealed, error) {
	d := sale.Data
	return event.Seal(sale.TenantID, d.CommissionID.String(), now, event.CommissionAvailable{
		CommissionID: d.CommissionID, PartnerID: d.PartnerID, Amount: d.CommissionAmount, SourceSaleID: &d.SaleID,
		CampaignID: d.CampaignID, Kind: kindSale, Status: status, AvailableAt: availableAt,
	}, sale.Traceparent)
}

// earned are new commissions of sales as the arrays that one statement takes.
type earned struct {
	tenant, id, partner, campaign, plan, sale []uuid.UUID
	base, pct, amount                         []int64 // centavos, ten-thousandths of a percent, centavos
	status                                    []string
	availableAt, createdAt                    []time.Time
}

func newEarned(n int) *earned {
	ids := func() []uuid.UUID { return make([]uuid.UUID, 0, n) }
	numbers := func() []int64 { return make([]int64, 0, n) }
	times := func() []time.Time { return make([]time.Time, 0, n) }
	return &earned{
		tenant: ids(), id: ids(), partner: ids(), campaign: ids(), plan: ids(), sale: ids(),
		base: numbers(), pct: numbers(), amount: numbers(),
		status: make([]string, 0, n), availableAt: times(), createdAt: times(),
	}
}

func (e *earned) append(sale event.Event[event.SaleRecorded], status string, availableAt time.Time) {
	d := sale.Data
	e.tenant = append(e.tenant, sale.TenantID)
	e.id = append(e.id, d.CommissionID)
	e.partner = append(e.partner, d.PartnerID)
	e.campaign = append(e.campaign, d.CampaignID)
	e.plan = append(e.plan, d.PlanID)
	e.sale = append(e.sale, d.SaleID)
	e.base = append(e.base, d.Amount.Centavos())
	e.pct = append(e.pct, int64(d.CommissionPct))
	e.amount = append(e.amount, d.CommissionAmount.Centavos())
	e.status = append(e.status, status)
	e.availableAt = append(e.availableAt, availableAt)
	e.createdAt = append(e.createdAt, event.Instant(sale.CreatedAt))
}

const earnStatement = `
insert into commissions (tenant_id, commission_id, partner_id, campaign_id, plan_id, kind, source_sale_id,
	base_amount_centavos, commission_pct_e4, commission_amount_centavos, status, available_at, created_at)
select tenant_id, commission_id, partner_id, campaign_id, plan_id, $13, sale_id,
	base, pct, amount, status, available_at, created_at
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[],
	$7::bigint[], $8::integer[], $9::bigint[], $10::text[], $11::timestamptz[], $12::timestamptz[])
	as sale (tenant_id, commission_id, partner_id, campaign_id, plan_id, sale_id,
		base, pct, amount, status, available_at, created_at)`

// insert books all rows in one statement. A sale or an id that has a commission already
// is a conflict: this event is not the one that made it, since the bus hands over each
// event once.
func (e *earned) insert(ctx context.Context, tx *postgres.Tx) error {
	_, err := tx.Exec(ctx, earnStatement, e.tenant, e.id, e.partner, e.campaign, e.plan, e.sale,
		e.base, e.pct, e.amount, e.status, e.availableAt, e.createdAt, kindSale)
	switch {
	case postgres.Violates(err, "commissions_source_sale_key"):
		return fault.New(fault.Conflict, "conflict", "the sale has a commission already").Because(err)
	case postgres.Violates(err, "commissions_pkey"):
		return fault.New(fault.Conflict, "conflict", "the commission id is taken").Because(err)
	case err != nil:
		return fmt.Errorf("book commissions: %w", err)
	}
	return nil
}
