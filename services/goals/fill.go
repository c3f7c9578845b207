package goals

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
)

// fillStatement places facts by the starts of the periods, which it is given in
// ascending order: width_bucket finds the last one that is not after the fact. Where
// a month begins is decided by the calendar alone, never by the server's time zones.
const fillStatement = `
with filled as (
	insert into totals (tenant_id, goal_id, partner_id, period_start, period_end, progress)
	select $1, $2, partner_id, ($3::timestamptz[])[n], ($4::timestamptz[])[n], progress
	from (
		select partner_id, width_bucket(occurred_at, $3::timestamptz[]) as n,
			sum(case when $5 = 'sales_amount' then amount_centavos else 1 end)::bigint as progress
		from facts
		where tenant_id = $1 and kind = 'sale'
			and occurred_at >= $6 and occurred_at < coalesce($7, 'infinity'::timestamptz)
			and ($8::uuid is null or campaign_id = $8)
			and ($9::uuid[] is null or partner_id = any($9))
		group by partner_id, n) as past
	returning partner_id, period_start, progress)
select partner_id, period_start, progress from filled where progress >= $10
order by partner_id, period_start`

// fill makes the totals of a new goal from the facts that exist, and returns the
// places that have come up to the target already. The tenant is held.
func fill(ctx context.Context, tx *postgres.Tx, g *goal, traceparent string) ([]arrival, error) {
	spans, err := pastSpans(ctx, tx, g)
	if err != nil || len(spans) == 0 {
		return nil, err
	}
	starts, ends := make([]time.Time, len(spans)), make([]*time.Time, len(spans))
	byStart := make(map[int64]span, len(spans))
	for i, s := range spans {
		starts[i], ends[i] = s.start, s.end
		byStart[s.start.UnixMicro()] = s
	}
	rows, err := tx.Query(ctx, fillStatement, g.tenantID, g.id, starts, ends, string(g.metric),
		g.startsAt, g.endsAt, g.campaignID, g.partnerIDs, g.target)
	if err != nil {
		return nil, fmt.Errorf("fill totals: %w", err)
	}
	arrivals, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (arrival, error) {
		var partnerID uuid.UUID
		var start time.Time
		var progress int64
		err := row.Scan(&partnerID, &start, &progress)
		return arrival{goal: g, partnerID: partnerID, span: byStart[start.UnixMicro()], progress: progress, traceparent: traceparent}, err
	})
	if err != nil {
		return nil, fmt.Errorf("fill totals: %w", err)
	}
	return arrivals, nil
}

const pastFactsQuery = `
select min(occurred_at), max(occurred_at) from facts
where tenant_id = $1 and occurred_at >= $2 and occurred_at < coalesce($3, 'infinity'::timestamptz)`

// pastSpans returns the periods, in ascending order, from the first to the last fact
// in the goal's window; none where there is no fact.
func pastSpans(ctx context.Context, tx *postgres.Tx, g *goal) ([]span, error) {
	var first, last *time.Time
	if err := tx.QueryRow(ctx, pastFactsQuery, g.tenantID, g.startsAt, g.endsAt).Scan(&first, &last); err != nil {
		return nil, fmt.Errorf("find the goal's past facts: %w", err)
	}
	if first == nil {
		return nil, nil
	}
	c, err := newCalendar(g)
	if err != nil {
		return nil, err
	}
	spans := []span{c.spanOf(*first)}
	for {
		newest := spans[len(spans)-1]
		if newest.end == nil || newest.end.After(*last) {
			return spans, nil
		}
		spans = append(spans, c.spanOf(*newest.end))
	}
}
