package commissions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

// account is where money can be. All but expense, which is the tenant's, are a partner's.
type account string

const (
	expense   account = "expense"
	pending   account = "pending"
	available account = "available"
	reserved  account = "reserved"
	paid      account = "paid"
	debt      account = "debt"
)

// movement is the kind of a transfer. With what caused it, it makes a transfer unique.
type movement string

const (
	movedCommission   movement = "commission"    // earned; caused by the commission
	movedRelease      movement = "release"       // no longer held back; caused by the commission
	movedReversal     movement = "reversal"      // taken back; caused by the refund
	movedReversalDebt movement = "reversal_debt" // taken back although it is gone; caused by the refund
	movedRepayment    movement = "repayment"     // of debt; caused by what made money available

	movedWithdrawal movement = "withdrawal"          // asked for; caused by the withdrawal, as are the two below
	movedPayment    movement = "withdrawal_paid"     // paid out
	movedReturn     movement = "withdrawal_returned" // not paid after all
)

// balances are the accounts of one partner.
type balances struct {
	Pending   money.BRL `json:"pending_brl"`
	Available money.BRL `json:"available_brl"`
	Reserved  money.BRL `json:"reserved_brl"`
	Paid      money.BRL `json:"paid_brl"`
	Debt      money.BRL `json:"debt_brl"` // what the partner owes; never below zero
}

// move takes the amount from one account to another. What leaves debt is owed from
// then on, and what enters it is repaid; expense is not kept.
func (b *balances) move(from, to account, amount money.BRL) {
	b.add(from, -amount)
	b.add(to, amount)
}

func (b *balances) add(to account, amount money.BRL) {
	switch to {
	case pending:
		b.Pending += amount
	case available:
		b.Available += amount
	case reserved:
		b.Reserved += amount
	case paid:
		b.Paid += amount
	case debt:
		b.Debt -= amount
	}
}

// book is one partner's accounts, locked until the transaction ends.
type book struct {
	partnerKey
	balances
	postedAt time.Time // of the last transfer; zero: there is none

	uncovered   money.BRL // paid out, and not yet the money of any commission
	coveringDue bool      // it may suffice for a commission

	changed bool // and not kept
}

// transfer is one movement of money, with the balances that it leaves.
type transfer struct {
	partnerKey
	postedAt   time.Time
	kind       movement
	reference  uuid.UUID
	commission uuid.UUID // whose money it is; Nil: not that of one commission
	from, to   account
	amount     money.BRL
	after      balances
}

// ledger moves money between the accounts of the partners whose books it has locked.
// Nothing is stored before keep.
type ledger struct {
	now   time.Time
	books map[partnerKey]*book
	moved []transfer
}

// of is the book of the partner whose commission it is; nil where there was none to lock.
func (l *ledger) of(c *ownedCommission) *book { return l.books[partnerKey{c.tenant, c.PartnerID}] }

// post moves the amount and notes the transfer. An amount of nothing moves nothing.
func (l *ledger) post(b *book, kind movement, reference, commission uuid.UUID, from, to account, amount money.BRL) {
	if amount == 0 {
		return
	}
	b.move(from, to, amount)
	b.changed = true
	b.postedAt = later(l.now, b.postedAt)
	l.moved = append(l.moved, transfer{b.partnerKey, b.postedAt, kind, reference, commission, from, to, amount, b.balances})
}

// later is now or, where the partner's last transfer is not before that, the next
// instant after it: a partner's transfers have one order, whatever the clocks say.
func later(now, last time.Time) time.Time {
	if last.Before(now) {
		return now
	}
	return last.Add(time.Microsecond)
}

// free makes the amount available, and pays back of it what the partner owes. Caused is
// what brings that about: a commission, or a withdrawal that came to nothing.
func (l *ledger) free(b *book, kind movement, caused, commission uuid.UUID, from account, amount money.BRL) {
	l.post(b, kind, caused, commission, from, available, amount)
	l.post(b, movedRepayment, caused, commission, available, debt, min(b.Debt, b.Available))
}

// take takes the amount back out of what is available; the partner owes the rest.
func (l *ledger) take(b *book, refund, commission uuid.UUID, amount money.BRL) {
	there := min(b.Available, amount)
	l.post(b, movedReversal, refund, commission, available, expense, there)
	l.post(b, movedReversalDebt, refund, commission, debt, expense, amount-there)
}

// openBooks locks the books of these partners, in the one order in which all
// transactions do, and begins those that are not there yet.
func (s *Service) openBooks(ctx context.Context, tx *postgres.Tx, partners map[partnerKey]bool) (*ledger, error) {
	tenants, ids := columnsOf(partners)
	tx.Later(postgres.Doing("begin books"), beginBooksStatement, tenants, ids)
	return s.lockBooks(ctx, tx, partners)
}

// A book that another transaction is beginning is waited for here, in the order of the
// key and before any book is locked.
const beginBooksStatement = `
insert into accounts (tenant_id, partner_id)
select tenant_id, partner_id from unnest($1::uuid[], $2::uuid[]) as partner (tenant_id, partner_id)
order by tenant_id, partner_id
on conflict (tenant_id, partner_id) do nothing`

const lockBooksQuery = `
select a.tenant_id, a.partner_id, pending_centavos, available_centavos, reserved_centavos, paid_centavos, debt_centavos, posted_at,
	uncovered_centavos, covering_due
from unnest($1::uuid[], $2::uuid[]) as partner (tenant_id, partner_id)
join accounts a on a.tenant_id = partner.tenant_id and a.partner_id = partner.partner_id
order by a.tenant_id, a.partner_id
for no key update of a`

// lockBooks locks the books of those of the partners who have one. What is read in the
// same transaction afterwards, of commissions too, stays as it is until it ends.
func (s *Service) lockBooks(ctx context.Context, tx *postgres.Tx, partners map[partnerKey]bool) (*ledger, error) {
	tenants, ids := columnsOf(partners)
	rows, err := tx.Query(ctx, lockBooksQuery, tenants, ids)
	if err != nil {
		return nil, fmt.Errorf("lock books: %w", err)
	}
	return collectBooks(rows, event.Instant(s.deps.Now()))
}

// collectBooks makes a ledger of books that have just been locked.
func collectBooks(rows pgx.Rows, now time.Time) (*ledger, error) {
	books, err := pgx.CollectRows(rows, scanBook)
	if err != nil {
		return nil, fmt.Errorf("lock books: %w", err)
	}
	l := &ledger{now: now, books: make(map[partnerKey]*book, len(books))}
	for _, b := range books {
		l.books[b.partnerKey] = b
	}
	return l, nil
}

func scanBook(row pgx.CollectableRow) (*book, error) {
	var b book
	var postedAt *time.Time
	err := row.Scan(&b.tenant, &b.id, &b.Pending, &b.Available, &b.Reserved, &b.Paid, &b.Debt, &postedAt, &b.uncovered, &b.coveringDue)
	if postedAt != nil {
		b.postedAt = *postedAt
	}
	return &b, err
}

// columnsOf are the partners as sorted columns.
func columnsOf(partners map[partnerKey]bool) (tenants, ids []uuid.UUID) {
	for _, key := range slices.SortedFunc(maps.Keys(partners), partnerKey.compare) {
		tenants, ids = append(tenants, key.tenant), append(ids, key.id)
	}
	return tenants, ids
}
