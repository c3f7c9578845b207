package goals

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

// count adds sales to the totals of the goals that they count for, and tells of the
// goals that are reached by that.
//
// A sale that is known already adds nothing. A batch costs a handful of statements,
// however many sales and goals it touches.
func (s *Service) count(ctx context.Context, tx *postgres.Tx, events []event.Event[event.SaleRecorded]) error {
	sales, err := factsOf(events)
	if err != nil {
		return err
	}
	tenants := tenantsOf(sales)
	if err := shareTenants(ctx, tx, tenants); err != nil {
		return err
	}
	fresh, err := recordFacts(ctx, tx, sales)
	if err != nil || len(fresh) == 0 {
		return err
	}
	goals, err := activeGoals(ctx, tx, tenants, fresh)
	if err != nil {
		return err
	}
	additions, err := tally(goals, fresh)
	if err != nil {
		return err
	}
	arrivals, err := addToTotals(ctx, tx, additions)
	if err != nil {
		return err
	}
	return s.reach(ctx, tx, arrivals)
}

// fact is a sale as far as goals are concerned.
type fact struct {
	tenantID    uuid.UUID
	saleID      uuid.UUID
	partnerID   uuid.UUID
	campaignID  uuid.UUID
	occurredAt  time.Time // when it was sold, in UTC
	amount      money.BRL
	commission  money.BRL
	traceparent string
}

// factsOf reads the events, sorted by tenant and sale, each sale once. It fails with
// an Invalid fault where one of them cannot be a sale.
func factsOf(events []event.Event[event.SaleRecorded]) ([]fact, error) {
	facts := make([]fact, len(events))
	for i, e := range events {
		sale := e.Data
		facts[i] = fact{
			tenantID: e.TenantID, saleID: sale.SaleID, partnerID: sale.PartnerID, campaignID: sale.CampaignID,
			occurredAt: event.Instant(sale.SoldAt), amount: sale.Amount, commission: sale.CommissionAmount,
			traceparent: e.Traceparent,
		}
		if wrong := facts[i].wrong(); wrong != "" {
			return nil, fault.Newf(fault.Invalid, "invalid_event", "sale %s: %s", sale.SaleID, wrong)
		}
	}
	slices.SortStableFunc(facts, fact.compare)
	return slices.CompactFunc(facts, func(a, b fact) bool { return a.compare(b) == 0 }), nil
}

// wrong says what is wrong with the fact, or nothing.
func (f fact) wrong() string {
	switch year := f.occurredAt.Year(); {
	case f.saleID == uuid.Nil || f.partnerID == uuid.Nil || f.campaignID == uuid.Nil:
		return "an id is missing"
	case f.amount <= 0 || f.commission < 0:
		return "an amount is out of range"
	case year < 2000 || year > 9998: // its month must end in a year of four digits
		return "sold_at is out of range"
	default:
		return ""
	}
}

// compare orders facts by tenant and sale: their key.
func (f fact) compare(other fact) int {
	return cmp.Or(bytes.Compare(f.tenantID[:], other.tenantID[:]), bytes.Compare(f.saleID[:], other.saleID[:]))
}

// tenantsOf returns the tenants of sorted facts, sorted, each once.
func tenantsOf(facts []fact) []uuid.UUID {
	var tenants []uuid.UUID
	for _, f := range facts {
		tenants = append(tenants, f.tenantID)
	}
	return slices.Compact(tenants)
}

const recordFactsStatement = `
insert into facts (tenant_id, kind, source_id, partner_id, campaign_id, occurred_at, amount_centavos, commission_centavos)
select tenant_id, 'sale', source_id, partner_id, campaign_id, occurred_at, amount, commission
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::timestamptz[], $6::bigint[], $7::bigint[])
	as sale (tenant_id, source_id, partner_id, campaign_id, occurred_at, amount, commission)
on conflict (tenant_id, kind, source_id) do nothing
returning tenant_id, source_id`

// recordFacts stores sorted facts and returns those that were not known before.
func recordFacts(ctx context.Context, tx *postgres.Tx, facts []fact) ([]fact, error) {
	var (
		tenants, sales, partners, campaigns []uuid.UUID
		moments                             []time.Time
		amounts, commissions                []int64
	)
	for _, f := range facts {
		tenants, sales = append(tenants, f.tenantID), append(sales, f.saleID)
		partners, campaigns = append(partners, f.partnerID), append(campaigns, f.campaignID)
		moments = append(moments, f.occurredAt)
		amounts, commissions = append(amounts, f.amount.Centavos()), append(commissions, f.commission.Centavos())
	}
	rows, err := tx.Query(ctx, recordFactsStatement, tenants, sales, partners, campaigns, moments, amounts, commissions)
	if err != nil {
		return nil, fmt.Errorf("record facts: %w", err)
	}
	type key struct{ tenant, sale uuid.UUID }
	recorded, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k key, err error) {
		err = row.Scan(&k.tenant, &k.sale)
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("record facts: %w", err)
	}
	fresh := make(map[key]bool, len(recorded))
	for _, k := range recorded {
		fresh[k] = true
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return !fresh[key{f.tenantID, f.saleID}] }), nil
}

const activeGoalsQuery = `
select ` + goalColumns + ` from goals
where tenant_id = any($1) and status = 'active' and (ends_at is null or ends_at > $2)`

// activeGoals returns all that may count one of these facts, which are of these
// tenants.
func activeGoals(ctx context.Context, tx *postgres.Tx, tenants []uuid.UUID, facts []fact) ([]goal, error) {
	earliest := facts[0].occurredAt
	for _, f := range facts {
		if f.occurredAt.Before(earliest) {
			earliest = f.occurredAt
		}
	}
	rows, err := tx.Query(ctx, activeGoalsQuery, tenants, earliest)
	if err != nil {
		return nil, fmt.Errorf("read active goals: %w", err)
	}
	goals, err := pgx.CollectRows(rows, scanGoal)
	if err != nil {
		return nil, fmt.Errorf("read active goals: %w", err)
	}
	return goals, nil
}
