package goals

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

var (
	crowdTenant = uuid.MustParse("00000000-0000-7000-8000-000000000001")
	crowdGoal   = uuid.MustParse("00000000-0000-7000-8000-000000000002")
	crowdStart  = time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)
)

// Half of the partners of a large goal have the same progress, and half have reached it;
// another tenant has so many others in a thousand goals.
const crowdStatement = `
with large as (
	insert into totals (tenant_id, goal_id, partner_id, period_start, progress)
	select @tenant_id, @goal_id, lpad(to_hex(n), 32, '0')::uuid, @period_start, case when n % 2 = 0 then 100 else n end
	from generate_series(1, @rows::bigint) as n),
done as (
	insert into reached (tenant_id, goal_id, partner_id, period_start, reached_at, progress)
	select @tenant_id, @goal_id, lpad(to_hex(n), 32, '0')::uuid, @period_start, @period_start, 1
	from generate_series(1, @rows::bigint, 2) as n),
told as (
	insert into changes (tenant_id, goal_id, xid, partner_id, period_start, changed_at)
	select @tenant_id, @goal_id, n, lpad(to_hex(n), 32, '0')::uuid, @period_start, now()
	from generate_series(1, @rows::bigint) as n)
insert into totals (tenant_id, goal_id, partner_id, period_start, progress)
select gen_random_uuid(), lpad(to_hex(n % 1000), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid, @period_start, n
from generate_series(1, @others::bigint) as n`

func TestALeaderboardIsReadByIndexAndNoFurtherThanItsPage(t *testing.T) {
	for name, others := range map[string]int{"a goal that is half of the table": crowdRows, "a goal that is nearly all of the table": crowdRows / 50} {
		t.Run(name, func(t *testing.T) { assertRead(t, others) })
	}
}

const crowdRows = 50_000

// assertRead fails where a query reads more of the large goal than it needs, among so many
// other totals.
func assertRead(t *testing.T, others int) {
	const limit = 26
	pool, err := postgres.Open(t.Context(), testkit.Database(t, Migrations...), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), crowdStatement, pgx.NamedArgs{"tenant_id": crowdTenant, "goal_id": crowdGoal, "period_start": crowdStart, "rows": crowdRows, "others": others}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"vacuum analyze totals", "vacuum analyze reached", "vacuum analyze changes"} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	acquired, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(acquired.Release)
	conn := acquired.Conn()
	partner := func(n byte) *uuid.UUID { return &uuid.UUID{15: n} }
	board := func(progress int64, after *uuid.UUID) pgx.NamedArgs {
		return pgx.NamedArgs{"tenant_id": &crowdTenant, "goal_id": &crowdGoal, "period_start": &crowdStart, "progress": progress, "partner_id": after, "limit": limit}
	}
	one := func(partner *uuid.UUID) pgx.NamedArgs {
		return pgx.NamedArgs{"tenant_id": &crowdTenant, "goal_id": &crowdGoal, "period_start": &crowdStart, "partner_id": partner}
	}
	usual, of := numbered(progressOfPartnerQuery, &crowdTenant, partner(0x02), []uuid.UUID{crowdGoal}, []time.Time{crowdStart})
	for name, row := range map[string]struct {
		query     string
		arguments pgx.NamedArgs
		most      int
	}{
		"the first page":                 {leaderboardQuery, board(math.MaxInt64, &uuid.Nil), 3 * limit},
		"a page in the middle":           {leaderboardQuery, board(30_001, partner(1)), 3 * limit},
		"a page among many who tie":      {leaderboardQuery, board(100, partner(200)), 3 * limit},
		"a page that leaves a large tie": {leaderboardQuery, board(101, partner(101)), 3 * limit},
		"the rank of a good partner":     {onePlaceQuery, one(&uuid.UUID{14: 0xC3, 15: 0x01}), 100},
		"the rank of a usual partner":    {onePlaceQuery, one(&uuid.UUID{15: 0x02}), crowdRows/2 + 10}, // half of all are better
		"a partner's place among many":   {usual, of, 1_010},
		// Ten of them, of which five have to count as far as the thousand and first who is better.
		"the rows that have changed": {changesQuery, pgx.NamedArgs{
			"tenant_id": &crowdTenant, "goal_id": &crowdGoal, "from": int64(49_900), "until": int64(49_910), "partner_id": &uuid.Nil, "period_start": &crowdStart, "limit": 500}, 6_000},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.LooksUp(t, conn, row.query, row.arguments, row.most, "totals_best_first", "totals_pkey", "reached_pkey", "changes_pkey")
		})
	}
}
