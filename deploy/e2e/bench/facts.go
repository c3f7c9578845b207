package main

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Sales of the past as the goals service would have kept them: over a year, of so many
// partners in turn, each with an amount that depends on its number.
const fillFactsStatement = `
insert into facts (tenant_id, occurred_at, kind, source_id, partner_id, campaign_id, sales, amount_centavos, commission_centavos, conversions)
select $1, now() - interval '365 days' * (1 - i / $2::float8), 'sale', overlay(lpad(to_hex(i), 32, '0') placing '7' from 13 for 1)::uuid,
       lpad(to_hex(1 + i % $3), 32, '0')::uuid, $1, 1, 1000 + i * 7919 % 1000003, 100, 0
from generate_series(1::bigint, $2) i`

// pastSales are so many sales for the table facts.
func pastSales(tenant uuid.UUID, sales, partners int) loading {
	return loading{fillFactsStatement, []any{tenant, int64(sales), int64(partners)}}
}

// startPast starts a goals service that knows so many sales of so many partners. It
// tells how long they took to load.
func startPast(ctx context.Context, g *ground, sales, partners int) (_ *lone, took time.Duration, err error) {
	l, err := startLone(ctx, g, roleGoals, goalsDatabase)
	if err != nil {
		return nil, 0, err
	}
	start := time.Now()
	if err := g.load(ctx, goalsDatabase, []string{"facts"}, pastSales(l.tenant, sales, partners)); err != nil {
		return nil, 0, errors.Join(err, l.stop())
	}
	return l, time.Since(start), nil
}

// pastGoal is the body of a goal that counts all of the past that startPast loads.
func pastGoal(metric, period string) object {
	return object{"name": "Desde o começo", "metric": metric, "target": 1_000_000_000, "period": period, "starts_at": time.Now().AddDate(-2, 0, 0).UTC().Format(time.RFC3339)}
}
