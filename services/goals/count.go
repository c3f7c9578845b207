package goals

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// count adds what has happened to the totals of the goals that it counts for, and tells
// of the goals that are reached by that.
//
// What is known already adds nothing. A batch costs a handful of statements, however
// many facts and goals it touches.
func (s *Service) count(ctx context.Context, tx *postgres.Tx, events []event.Sealed) error {
	facts, err := factsOf(events)
	if err != nil {
		return err
	}
	tenants := tenantsOf(facts)
	shareTenants(tx, tenants)
	fresh, err := recordFacts(ctx, tx, facts)
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

const recordFactsStatement = `
insert into facts (tenant_id, occurred_at, kind, source_id, partner_id, campaign_id, sales, amount_centavos, commission_centavos, conversions)
select * from unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::smallint[], $8::bigint[], $9::bigint[], $10::smallint[])
on conflict (tenant_id, occurred_at, kind, source_id) do nothing
returning tenant_id, kind, source_id`

// recordFacts stores sorted facts and returns those that were not known before.
func recordFacts(ctx context.Context, tx *postgres.Tx, facts []fact) ([]fact, error) {
	var (
		tenants, sources, partners, campaigns []uuid.UUID
		moments                               []time.Time
		kinds                                 []string
		sales, conversions                    []int16
		amounts, commissions                  []int64
	)
	for _, f := range facts {
		tenants, moments, kinds, sources = append(tenants, f.tenantID), append(moments, f.occurredAt), append(kinds, f.kind), append(sources, f.sourceID)
		partners, campaigns = append(partners, f.partnerID), append(campaigns, f.campaignID)
		sales, conversions = append(sales, f.sales), append(conversions, f.conversions)
		amounts, commissions = append(amounts, f.amount.Centavos()), append(commissions, f.commission.Centavos())
	}
	rows, err := tx.Query(ctx, recordFactsStatement, tenants, moments, kinds, sources, partners, campaigns, sales, amounts, commissions, conversions)
	if err != nil {
		return nil, fmt.Errorf("record facts: %w", err)
	}
	type source struct {
		tenant uuid.UUID
		kind   string
		id     uuid.UUID
	}
	fresh := make(map[source]bool, len(facts))
	var one source
	_, err = pgx.ForEachRow(rows, []any{&one.tenant, &one.kind, &one.id}, func() error {
		fresh[one] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record facts: %w", err)
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return !fresh[source{f.tenantID, f.kind, f.sourceID}] }), nil
}

const activeGoalsQuery = `
select ` + goalColumns + ` from goals
where tenant_id = any($1) and status = 'active' and (ends_at is null or ends_at > $2) and starts_at <= $3
	and (partner_ids is null or partner_ids && $4::uuid[])`

// activeGoals returns all that may count one of these facts, which are of these
// tenants.
func activeGoals(ctx context.Context, tx *postgres.Tx, tenants []uuid.UUID, facts []fact) ([]goal, error) {
	earliest, latest := facts[0].occurredAt, facts[0].occurredAt
	for _, f := range facts {
		if f.occurredAt.Before(earliest) {
			earliest = f.occurredAt
		}
		if f.occurredAt.After(latest) {
			latest = f.occurredAt
		}
	}
	rows, err := tx.Query(ctx, activeGoalsQuery, tenants, earliest, latest, partnersOf(facts))
	if err != nil {
		return nil, fmt.Errorf("read active goals: %w", err)
	}
	goals, err := pgx.CollectRows(rows, scanGoal)
	if err != nil {
		return nil, fmt.Errorf("read active goals: %w", err)
	}
	return goals, nil
}
