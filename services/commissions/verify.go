package commissions

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// verification is what was found when a tenant's books were checked.
type verification struct {
	OK        bool         `json:"ok"`
	CheckedAt openapi.Time `json:"checked_at"`
	Checks    []check      `json:"checks"`
}

// check is one thing that must hold of the books.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// verifyLedger answers GET /api/v1/ledger/verify. All of the tenant's transfers are read
// for it, which takes longer than an ordinary answer may.
func (s *Service) verifyLedger(call *web.Call) (web.Answer, error) {
	return web.Answer{Status: http.StatusOK, Stream: &web.Stream{Type: "application/json", Write: func(to io.Writer) error {
		found, err := s.verify(call.Context(), call.Tenant())
		if err != nil {
			return err
		}
		return json.MarshalWrite(to, found)
	}}}, nil
}

// Each of these queries counts what it looked at and what is wrong of it, and names one
// of the latter.
const (
	// The sum over all accounts is what entered and left them from and to expense.
	sumOfBooksQuery = `
with books as (
	select coalesce(sum(pending_centavos + available_centavos + reserved_centavos + paid_centavos - debt_centavos), 0) as owed, count(*) as n
	from accounts where tenant_id = $1),
expense as (
	select coalesce(sum(case when from_account = 'expense' then amount_centavos end), 0)
		- coalesce(sum(case when to_account = 'expense' then amount_centavos end), 0) as spent
	from transfers where tenant_id = $1)
select n, (owed <> spent)::integer, 'accounts of ' || owed || ' centavos and an expense of ' || spent from books, expense`

	balancesQuery = `
with moved as (
	select partner_id, to_account as account, amount_centavos as amount from transfers where tenant_id = $1
	union all
	select partner_id, from_account, -amount_centavos from transfers where tenant_id = $1),
summed as (
	select partner_id,
		coalesce(sum(amount) filter (where account = 'pending'), 0) as pending, coalesce(sum(amount) filter (where account = 'available'), 0) as available,
		coalesce(sum(amount) filter (where account = 'reserved'), 0) as reserved, coalesce(sum(amount) filter (where account = 'paid'), 0) as paid,
		-coalesce(sum(amount) filter (where account = 'debt'), 0) as debt
	from moved group by partner_id)
select count(*), count(*) filter (where wrong), min(partner_id::text) filter (where wrong)
from (
	select partner_id, (coalesce(a.pending_centavos, 0), coalesce(a.available_centavos, 0), coalesce(a.reserved_centavos, 0),
			coalesce(a.paid_centavos, 0), coalesce(a.debt_centavos, 0))
		is distinct from (coalesce(s.pending, 0), coalesce(s.available, 0), coalesce(s.reserved, 0), coalesce(s.paid, 0), coalesce(s.debt, 0)) as wrong
	from (select * from accounts where tenant_id = $1) a full join summed s using (partner_id)) compared`

	belowZeroQuery = `
select count(*), count(*) filter (where wrong), min(partner_id::text) filter (where wrong)
from (
	select partner_id, least(pending_centavos, available_centavos, reserved_centavos, paid_centavos, debt_centavos) < 0 as wrong
	from accounts where tenant_id = $1) looked`

	unpaidDebtQuery = `
select count(*), count(*) filter (where wrong), min(partner_id::text) filter (where wrong)
from (select partner_id, available_centavos > 0 and debt_centavos > 0 as wrong from accounts where tenant_id = $1) looked`

	// Each transfer leaves what the one before has left, less or more its amount.
	runningQuery = `
select count(*), count(*) filter (where wrong), min(reference::text) filter (where wrong)
from (
	select reference,
		pending_centavos - lag(pending_centavos, 1, 0::bigint) over book <> amount_centavos * ((to_account = 'pending')::integer - (from_account = 'pending')::integer)
		or available_centavos - lag(available_centavos, 1, 0::bigint) over book <> amount_centavos * ((to_account = 'available')::integer - (from_account = 'available')::integer)
		or reserved_centavos - lag(reserved_centavos, 1, 0::bigint) over book <> amount_centavos * ((to_account = 'reserved')::integer - (from_account = 'reserved')::integer)
		or paid_centavos - lag(paid_centavos, 1, 0::bigint) over book <> amount_centavos * ((to_account = 'paid')::integer - (from_account = 'paid')::integer)
		or debt_centavos - lag(debt_centavos, 1, 0::bigint) over book <> amount_centavos * ((from_account = 'debt')::integer - (to_account = 'debt')::integer) as wrong
	from transfers where tenant_id = $1
	window book as (partition by partner_id order by posted_at)) looked`

	// A commission was earned once with its amount, a reversal is what its refunds took.
	commissionsQuery = `
with moved as (
	select commission_id,
		coalesce(sum(amount_centavos) filter (where kind = 'commission'), 0) as earned,
		coalesce(sum(amount_centavos) filter (where kind in ('reversal', 'reversal_debt')), 0) as reversed
	from transfers where tenant_id = $1 and kind in ('commission', 'reversal', 'reversal_debt') group by commission_id)
select count(*), count(*) filter (where wrong), min(commission_id::text) filter (where wrong)
from (
	select commission_id, c.commission_amount_centavos is distinct from coalesce(m.earned, 0) or c.reversed_centavos is distinct from coalesce(m.reversed, 0)
		or c.reversed_centavos > c.commission_amount_centavos as wrong
	from (select * from commissions where tenant_id = $1) c full join moved m using (commission_id)) compared`

	// What is held back of a partner's commissions is what is pending.
	pendingQuery = `
with held as (
	select partner_id, sum(commission_amount_centavos - reversed_centavos) as pending
	from commissions where tenant_id = $1 and status = 'pending' group by partner_id)
select count(*), count(*) filter (where wrong), min(partner_id::text) filter (where wrong)
from (
	select partner_id, coalesce(a.pending_centavos, 0) <> coalesce(h.pending, 0) as wrong
	from (select * from accounts where tenant_id = $1) a full join held h using (partner_id)) compared`

	// What is asked for and not yet settled is reserved, and what was paid is paid.
	withdrawnQuery = `
with asked as (
	select partner_id, coalesce(sum(amount_centavos) filter (where status in ('requested', 'approved')), 0) as open,
		coalesce(sum(amount_centavos) filter (where status = 'paid'), 0) as paid
	from withdrawals where tenant_id = $1 group by partner_id)
select count(*), count(*) filter (where wrong), min(partner_id::text) filter (where wrong)
from (
	select partner_id, coalesce(a.reserved_centavos, 0) <> coalesce(w.open, 0) or coalesce(a.paid_centavos, 0) <> coalesce(w.paid, 0) as wrong
	from (select * from accounts where tenant_id = $1) a full join asked w using (partner_id)) compared`

	// A withdrawal's money was reserved once, and paid or returned as its status says.
	withdrawalsMovedQuery = `
with moved as (
	select reference as withdrawal_id,
		coalesce(sum(amount_centavos) filter (where kind = 'withdrawal'), 0) as reserved,
		coalesce(sum(amount_centavos) filter (where kind = 'withdrawal_paid'), 0) as paid,
		coalesce(sum(amount_centavos) filter (where kind = 'withdrawal_returned'), 0) as returned
	from transfers where tenant_id = $1 and kind in ('withdrawal', 'withdrawal_paid', 'withdrawal_returned') group by reference)
select count(*), count(*) filter (where wrong), min(withdrawal_id::text) filter (where wrong)
from (
	select withdrawal_id, (m.reserved, m.paid, m.returned) is distinct from (w.amount_centavos,
		case when w.status = 'paid' then w.amount_centavos else 0 end,
		case when w.status in ('rejected', 'cancelled', 'failed') then w.amount_centavos else 0 end) as wrong
	from (select * from withdrawals where tenant_id = $1) w full join moved m using (withdrawal_id)) compared`

	// What was paid out is what is left of the paid commissions, and what covers none yet.
	coveredQuery = `
with covered as (
	select partner_id, sum(commission_amount_centavos - reversed_centavos) as worth
	from commissions where tenant_id = $1 and status = 'paid' group by partner_id)
select count(*), count(*) filter (where wrong), min(partner_id::text) filter (where wrong)
from (
	select partner_id, coalesce(a.paid_centavos, 0) <> coalesce(c.worth, 0) + coalesce(a.uncovered_centavos, 0) as wrong
	from (select * from accounts where tenant_id = $1) a full join covered c using (partner_id)) compared`
)

// checks are all that must hold of a tenant's books.
var checks = []struct{ name, of, query string }{
	{"sum_of_all_accounts_is_zero", "partners", sumOfBooksQuery},
	{"balances_equal_transfers", "partners", balancesQuery},
	{"no_balance_is_below_zero", "partners", belowZeroQuery},
	{"nothing_available_with_debt", "partners", unpaidDebtQuery},
	{"running_balances_are_continuous", "transfers", runningQuery},
	{"commissions_equal_transfers", "commissions", commissionsQuery},
	{"pending_equals_held_commissions", "partners", pendingQuery},
	{"reserved_and_paid_equal_withdrawals", "partners", withdrawnQuery},
	{"withdrawals_equal_transfers", "withdrawals", withdrawalsMovedQuery},
	{"paid_equals_covered_commissions", "partners", coveredQuery},
}

// verify holds every check against the tenant's books as they are at one moment.
func (s *Service) verify(ctx context.Context, tenant uuid.UUID) (verification, error) {
	found := verification{OK: true, CheckedAt: openapi.Time{Time: event.Instant(s.deps.Now())}}
	atOneMoment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.deps.Pool, atOneMoment, func(tx pgx.Tx) error {
		for _, c := range checks {
			var looked, wrong int64
			var example *string
			if err := tx.QueryRow(ctx, c.query, tenant).Scan(&looked, &wrong, &example); err != nil {
				return fmt.Errorf("check %s: %w", c.name, err)
			}
			result := check{Name: c.name, OK: wrong == 0, Detail: fmt.Sprintf("%d %s checked", looked, c.of)}
			if wrong > 0 {
				result.Detail += fmt.Sprintf(", %d wrong, among them %s", wrong, *example)
				found.OK = false
			}
			found.Checks = append(found.Checks, result)
		}
		return nil
	})
	return found, postgres.Explain(err)
}
