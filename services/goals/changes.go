package goals

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/postgres"
)

// Which totals change is written down only for goals that somebody listens to, on
// whichever replica: those in the table listened. Counting looks there in the statement
// that changes the totals, and its transaction has an id by then. So a change is missing
// only of transactions that had begun when the goal came into that table; since is the
// first id after all of these.
//
// Changes are read up to the horizon: the oldest transaction that is still under way.
// All that are older have ended, and what they changed can be seen; so nothing that
// commits late is passed over. The horizon, sealed, is the id of an event in a stream.

// kept is for how long a goal is listened to after whoever listened last was heard of,
// and for how long its changes are remembered.
const kept = 2 * time.Minute

// tellListeners is a part of a statement whose part added has the totals that it changed.
const tellListeners = `
told as (
	insert into changes (tenant_id, goal_id, xid, partner_id, period_start, changed_at)
	select tenant_id, goal_id, pg_current_xact_id()::text::bigint, partner_id, period_start, now()
	from added join listened using (tenant_id, goal_id)
	on conflict do nothing)`

// A since that is still to come is of the server from which the database was restored:
// the transactions of this one begin anew, and so does what is written down.
const listenStatement = `
with heard as (
	insert into listened (tenant_id, goal_id, until)
	select tenant_id, goal_id, clock_timestamp() + @kept::interval
	from unnest(@tenants::uuid[], @goals::uuid[]) as asked (tenant_id, goal_id) join goals using (tenant_id, goal_id)
	order by tenant_id, goal_id
	on conflict (tenant_id, goal_id) do update set until = excluded.until,
		since = case when listened.since <= pg_snapshot_xmax(pg_current_snapshot())::text::bigint then listened.since end
	returning tenant_id, goal_id)
select ` + goalColumns + ` from heard join goals using (tenant_id, goal_id)`

// sinceStatement has to see what listenStatement has committed: whatever begins after it
// does so as well. Like every statement that changes some of these rows it takes them in
// the order of their key, so that replicas do not wait for one another.
const sinceStatement = `
with mine as (
	select tenant_id, goal_id
	from listened join unnest(@tenants::uuid[], @goals::uuid[]) as asked (tenant_id, goal_id) using (tenant_id, goal_id)
	where since is null
	order by tenant_id, goal_id for update of listened)
update listened l set since = pg_snapshot_xmax(pg_current_snapshot())::text::bigint
from mine where l.tenant_id = mine.tenant_id and l.goal_id = mine.goal_id and l.since is null`

// listen has the changes of these goals written down for some time to come. It returns
// those of the goals that exist, as they are now.
func listen(ctx context.Context, pool *pgxpool.Pool, keys []goalKey) (map[goalKey]*goal, error) {
	tenants, goals := split(keys)
	arguments := pgx.NamedArgs{"tenants": tenants, "goals": goals, "kept": kept}
	rows, err := pool.Query(ctx, listenStatement, arguments)
	if err != nil {
		return nil, fmt.Errorf("listen to goals: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanGoal)
	if err != nil {
		return nil, fmt.Errorf("listen to goals: %w", err)
	}
	if _, err := pool.Exec(ctx, sinceStatement, arguments); err != nil {
		return nil, fmt.Errorf("listen to goals: %w", err)
	}
	exist := make(map[goalKey]*goal, len(found))
	for _, g := range found {
		exist[goalKey{g.tenantID, g.id}] = &g
	}
	return exist, nil
}

const lookQuery = `
with horizon as materialized (select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as xid)
select asked.tenant_id, asked.goal_id, horizon.xid, l.since, exists (
	select from changes c
	where c.tenant_id = asked.tenant_id and c.goal_id = asked.goal_id and c.xid >= asked.position and c.xid < horizon.xid)
from horizon, unnest(@tenants::uuid[], @goals::uuid[], @positions::bigint[]) as asked (tenant_id, goal_id, position)
left join listened l on l.tenant_id = asked.tenant_id and l.goal_id = asked.goal_id`

// sight is what there is to be seen of a goal.
type sight struct {
	goalKey
	horizon int64
	since   *int64 // nil: nothing is written down
	changed bool   // between the position and the horizon
}

// look returns what has become of goals since their positions.
func look(ctx context.Context, pool *pgxpool.Pool, keys []goalKey, positions []int64) ([]sight, error) {
	tenants, goals := split(keys)
	rows, err := pool.Query(ctx, lookQuery, pgx.NamedArgs{"tenants": tenants, "goals": goals, "positions": positions})
	if err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	seen, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s sight, err error) {
		return s, row.Scan(&s.tenantID, &s.goalID, &s.horizon, &s.since, &s.changed)
	})
	if err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	return seen, nil
}

const (
	changesAtOnce = 500 // rows that are read, and told, at once
	mostChanges   = 4   // times so many are told one by one; of more only how things stand
)

// changesQuery fetches each row by a look-up of its own: PostgreSQL does not foresee how
// few they are.
const changesQuery = `
select ` + progressColumns + `,` + nearRank + `
from (
	select distinct c.partner_id, c.period_start from changes c
	where c.tenant_id = @tenant_id and c.goal_id = @goal_id and c.xid >= @from and c.xid < @until
		and (c.partner_id, c.period_start) > (@partner_id, @period_start)
	order by c.partner_id, c.period_start limit @limit) as changed
cross join lateral (
	select * from totals
	where tenant_id = @tenant_id and goal_id = @goal_id and partner_id = changed.partner_id and period_start = changed.period_start limit 1) as t` + joinReached + `
order by t.partner_id, t.period_start`

const rememberedQuery = `
select exists (select from listened where tenant_id = $1 and goal_id = $2 and since <= $3)`

// eachChange yields the rows that transactions from one, inclusive, to another, exclusive,
// have changed, as they are now, some at a time. It returns false where changes of that
// time are no longer remembered, or are too many: what it yielded may not be all.
func (s *Service) eachChange(ctx context.Context, g *goal, from, until int64, yield func([]progressBody) error) (whole bool, err error) {
	arguments := pgx.NamedArgs{
		"tenant_id": g.tenantID, "goal_id": g.id, "from": from, "until": until,
		"partner_id": uuid.Nil, "period_start": time.Unix(0, 0), "limit": changesAtOnce,
	}
	for n, more := 0, true; more; n++ {
		rows, err := s.progress(ctx, g, changesQuery, arguments)
		if err != nil {
			return false, err
		}
		if more = len(rows) == changesAtOnce; more {
			arguments["partner_id"], arguments["period_start"] = rows[len(rows)-1].PartnerID, rows[len(rows)-1].start
		}
		if n == mostChanges && len(rows) > 0 {
			return false, nil
		}
		if err := yield(rows); err != nil {
			return false, err
		}
	}
	// Only now: what was forgotten while it was read is seen too.
	if err := s.deps.Pool.QueryRow(ctx, rememberedQuery, g.tenantID, g.id, from).Scan(&whole); err != nil {
		return false, postgres.Explain(fmt.Errorf("ask what is remembered: %w", err))
	}
	return whole, nil
}

// What another replica has in hand is left to it.
const (
	silenceStatement = `
with silent as (select tenant_id, goal_id from listened where until < clock_timestamp() for update skip locked)
delete from listened l using silent where l.tenant_id = silent.tenant_id and l.goal_id = silent.goal_id`

	forgetStatement = `
with old as (
	select tenant_id, goal_id, xid, partner_id, period_start from changes
	where changed_at < clock_timestamp() - @kept::interval for update skip locked),
gone as (
	delete from changes c using old
	where (c.tenant_id, c.goal_id, c.xid, c.partner_id, c.period_start) = (old.tenant_id, old.goal_id, old.xid, old.partner_id, old.period_start)
	returning c.tenant_id, c.goal_id, c.xid),
newest as (
	select tenant_id, goal_id, max(xid) as xid from gone group by tenant_id, goal_id),
mine as (
	select tenant_id, goal_id, newest.xid
	from listened join newest using (tenant_id, goal_id)
	order by tenant_id, goal_id for update of listened)
update listened l set since = mine.xid + 1 from mine
where l.tenant_id = mine.tenant_id and l.goal_id = mine.goal_id and l.since <= mine.xid`
)

// forget ends the listening to goals that nobody has listened to for a while, and removes
// old changes.
func forget(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, silenceStatement); err != nil {
		return fmt.Errorf("stop listening to goals: %w", err)
	}
	if _, err := pool.Exec(ctx, forgetStatement, pgx.NamedArgs{"kept": kept}); err != nil {
		return fmt.Errorf("forget changes: %w", err)
	}
	return nil
}

func split(keys []goalKey) (tenants, goals []uuid.UUID) {
	for _, key := range keys {
		tenants, goals = append(tenants, key.tenantID), append(goals, key.goalID)
	}
	return tenants, goals
}
