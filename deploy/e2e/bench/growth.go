package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

const growthClients = 64

// measureGrowth shows what a sale costs where there are many already. Each size is
// loaded once and then measured in every round, by a service that goes on running.
func measureGrowth(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
POST /api/v1/sales at %d clients with so many sales in the table beforehand, per second: median (least–greatest) of %d rounds of %d s

`, growthClients, o.rounds, o.seconds)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "sales before\tsales/s\tof the first\tPostgreSQL, µs a sale\tservice: own, µs a sale\tbytes of the table and its indexes\tloaded in")
	first := 0.0
	for _, size := range o.sizes {
		grown, err := growthOf(ctx, g, o, size)
		if err != nil {
			return fmt.Errorf("with %d sales: %w", size, err)
		}
		rates := grown.rounds.perSecond()
		if first == 0 {
			first = rates.median()
		}
		fmt.Fprintf(table, "%d\t%s\t%.2f\t%.0f\t%.0f\t%d\t%s\n", size, rates.spread("%.0f"), rates.median()/first,
			grown.rounds.microseconds(ofPostgres), grown.rounds.microseconds(ofService), grown.bytes, grown.loading.Round(time.Second))
	}
	return table.Flush()
}

// grown is what a table of some size has shown.
type grown struct {
	rounds  rounds
	bytes   int64
	loading time.Duration
}

func growthOf(ctx context.Context, g *ground, o options, size int) (result grown, err error) {
	if err := g.fresh(ctx, salesDatabase); err != nil {
		return result, err
	}
	_, total, err := onChild(ctx, g, salesService(g, o, ""), func(c *child, s *shop) (m measured, total int64, err error) {
		start := time.Now()
		past := loading{fillStatement, []any{s.TenantID, s.CampaignID, s.PlanID, int64(size)}}
		if err := g.load(ctx, salesDatabase, []string{"sales"}, past); err != nil {
			return m, 0, err
		}
		result.loading = time.Since(start)
		if result.bytes, err = g.number(ctx, salesDatabase, `select pg_total_relation_size('sales')`); err != nil {
			return m, 0, err
		}
		l, err := connect(s, growthClients)
		if err != nil {
			return m, 0, err
		}
		defer l.close()
		if _, err := l.closed(ctx, warmUp); err != nil {
			return m, 0, err
		}
		for range o.rounds {
			before := g.effort(c.cmd.Process.Pid)
			answered, err := l.closed(ctx, time.Duration(o.seconds)*time.Second)
			if err != nil {
				return m, 0, err
			}
			result.rounds = append(result.rounds, measured{answered.perSecond(), g.effort(c.cmd.Process.Pid).since(before).perSale(answered.sales)})
		}
		return m, l.total(), nil
	})
	if err != nil {
		return result, err
	}
	return result, g.expect(ctx, "sales", salesDatabase, `select count(*) from sales`, total+int64(size))
}

// Sales of the past, as the service would have recorded them: of a thousand partners,
// with references in no order, over a year.
const fillStatement = `
insert into sales (tenant_id, sale_id, external_ref, referral_code, partner_id, campaign_id, plan_id, amount_centavos,
                   commission_id, commission_pct_e4, commission_centavos, hold_days, sold_at, customer_ref, created_at)
select $1, overlay(lpad(to_hex(i), 32, '0') placing '7' from 13 for 1)::uuid, md5(i::text), 'ana.souza',
       lpad(to_hex(1 + i % 1000), 32, '0')::uuid, $2, $3, 10050,
       md5('commission ' || i)::uuid, 100000, 1005, 0, at, 'cliente@example.com', at
from generate_series(1::bigint, $4) i
cross join lateral (select now() - interval '365 days' * (1 - i / $4::float8) as at) moment`
