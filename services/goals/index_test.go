package goals

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/testkit"
)

// The first tenant has a third of all facts, one in a minute, and a goal that half of all
// totals belong to; everything else is spread over a hundred tenants. One goal in ten is
// to be filled.
var crowdStatements = []string{`
insert into facts (tenant_id, occurred_at, kind, source_id, partner_id, campaign_id, sales, amount_centavos, commission_centavos, conversions)
select lpad(to_hex(case when n % 3 = 0 then 1 else n % 100 end), 32, '0')::uuid, timestamptz '2026-01-01' + n / 3 * interval '1 minute', 'sale',
	lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n % 70), 32, '0')::uuid, lpad('1', 32, '0')::uuid, 1, 1000, 100, 0
from generate_series(1, $1::int) as n`, `
insert into goals (tenant_id, goal_id, name, metric, target, period, timezone, starts_at, status, created_at, origin, rested_from, past_done, past_total, settled)
select lpad(to_hex(1 + n % 100), 32, '0')::uuid, lpad(to_hex(n / 100), 32, '0')::uuid, 'goal', 'sales_count', 5, 'month', 'UTC',
	'2026-01-01', case when n % 3 = 0 then 'archived' else 'active' end, '2026-01-01', '2026-01-01', case when n % 3 = 0 then 1 end,
	case when n % 10 = 1 then 0 end, case when n % 10 = 1 then 9 end, n % 10 <> 1
from generate_series(0, $1::int / 5) as n`, `
insert into stretches (tenant_id, goal_id, sign, since, recorded_after, recorded_until, read_at, read_kind, read_source)
select lpad(to_hex(1 + n % 100), 32, '0')::uuid, lpad(to_hex(n / 100), 32, '0')::uuid, 1, '2026-01-01', 0, 1, '2026-01-01', '', lpad('1', 32, '0')::uuid
from generate_series(0, $1::int / 5) as n`, `
insert into totals (tenant_id, goal_id, partner_id, period_start, progress)
select lpad(to_hex(case when n % 2 = 0 then 1 else n % 100 end), 32, '0')::uuid, lpad(to_hex(case when n % 2 = 0 then 1 else n / 100 % 20 end), 32, '0')::uuid,
	lpad(to_hex(n), 32, '0')::uuid, '2026-01-01', n
from generate_series(1, $1::int) as n`, `
insert into reached (tenant_id, goal_id, partner_id, period_start, reached_at, progress)
select tenant_id, goal_id, partner_id, period_start, period_start, progress from totals limit $1`, `
insert into leftovers (tenant_id, goal_id)
select lpad(to_hex(n % 100), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid from generate_series(1, $1::int / 10) as n`,
}

// numbered makes numbered arguments named ones.
func numbered(query string, arguments ...any) (string, pgx.NamedArgs) {
	named := pgx.NamedArgs{}
	for n := len(arguments); n > 0; n-- {
		query = strings.ReplaceAll(query, "$"+strconv.Itoa(n), "@p"+strconv.Itoa(n))
		named["p"+strconv.Itoa(n)] = arguments[n-1]
	}
	return query, named
}

func TestWhateverIsReadIsFoundByAnIndex(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), testkit.Database(t, Migrations...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	for _, statement := range crowdStatements {
		if _, err := conn.Exec(t.Context(), statement, 30_000); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "analyze"); err != nil {
		t.Fatal(err)
	}
	id := func(n int) *uuid.UUID { return new(uuid.MustParse(fmt.Sprintf("00000000-0000-0000-0000-%012x", n))) }
	minute := func(n int) *time.Time { return new(time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)) }
	tenant := id(1)
	sale, never := new(kindSale), (*time.Time)(nil)
	partners := []uuid.UUID{*id(1), *id(2)}

	for name, row := range map[string]struct {
		query     string
		arguments []any
		index     string
		found     int
	}{
		"the next facts of an open stretch": {nextFactsQuery, []any{tenant, minute(100), sale, id(100), never, 50, int64(0), int64(9999999), id(1), partners, string(salesCount)}, "facts_pkey", 50},
		"the next facts of a short stretch": {nextFactsQuery, []any{tenant, minute(100), sale, id(9999), minute(130), 50, int64(0), int64(9999999), id(1), partners, string(salesCount)}, "facts_pkey", 29},
		"the next facts of a far stretch":   {nextFactsQuery, []any{tenant, minute(9_000), sale, id(100), never, 50, int64(0), int64(9999999), id(1), partners, string(salesCount)}, "facts_pkey", 50},
		"the first stretch":                 {firstStretchQuery, []any{tenant, id(1)}, "stretches_pkey", 1},
	} {
		t.Run(name, func(t *testing.T) {
			query, arguments := numbered(row.query, row.arguments...)
			testkit.WalksAlong(t, conn, query, arguments, row.index, row.found, false)
		})
	}
	for name, row := range map[string]struct {
		statement string
		arguments []any
		indexes   []string
	}{
		"the facts of a window":       {countPastQuery, []any{tenant, minute(100), minute(130), int64(20)}, []string{"facts_pkey"}},
		"what remains of a past":      {remainingQuery, []any{tenant, id(3)}, []string{"facts_pkey", "goals_pkey", "stretches_pkey"}},
		"how many goals are active":   {countActiveQuery, []any{tenant, 500}, []string{"goals_active"}},
		"the next totals":             {nextTotalsQuery, []any{tenant, id(1), 50}, []string{"goals_pkey", "totals_pkey"}},
		"goals that may count":        {activeGoalsQuery, []any{[]uuid.UUID{*tenant}, minute(1), minute(9), partners}, []string{"goals_active"}},
		"the next goal to fill":       {claimBehindStatement, []any{tenant, []uuid.UUID{*id(5)}}, []string{"goals_behind"}},
		"one goal":                    {lockQuery, []any{tenant, id(5)}, []string{"goals_pkey"}},
		"whether it may be settled":   {settleStatement, []any{tenant, id(4)}, []string{"goals_pkey", "stretches_pkey"}},
		"whether somebody reached it": {someReachedQuery, []any{tenant, id(50)}, []string{"reached_pkey"}},
		"a deleted goal":              {claimLeftoverStatement, nil, []string{"leftovers_pkey"}},
		"the totals of a deleted one": {clearTotalsStatement, []any{tenant, id(2), 20}, []string{"totals_pkey"}},
		"its stretches":               {removeStretchesStatement, []any{tenant, id(2)}, []string{"stretches_pkey"}},
	} {
		t.Run(name, func(t *testing.T) {
			statement, arguments := numbered(row.statement, row.arguments...)
			testkit.FindsBy(t, conn, statement, arguments, row.indexes...)
		})
	}
}
