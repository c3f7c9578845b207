package commissions

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

const (
	postStatement = `
insert into transfers (tenant_id, partner_id, posted_at, kind, reference, commission_id, from_account, to_account, amount_centavos,
	pending_centavos, available_centavos, reserved_centavos, paid_centavos, debt_centavos)
select * from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::bigint[],
	$10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[])`

	keepBooksStatement = `
update accounts a
set pending_centavos = book.pending, available_centavos = book.available, reserved_centavos = book.reserved,
	paid_centavos = book.paid, debt_centavos = book.debt, posted_at = book.posted_at,
	uncovered_centavos = book.uncovered, covering_due = book.due
from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::boolean[])
	as book (tenant_id, partner_id, posted_at, pending, available, reserved, paid, debt, uncovered, due)
where a.tenant_id = book.tenant_id and a.partner_id = book.partner_id`
)

// keep stores the transfers, and what has become of the books, in two statements. A
// transfer that was made before is a conflict: its cause comes a second time.
func (l *ledger) keep(tx *postgres.Tx) {
	l.keepTransfers(tx)
	l.keepBooks(tx)
}

func (l *ledger) keepTransfers(tx *postgres.Tx) {
	n := len(l.moved)
	if n == 0 {
		return
	}
	rows := newPosted(n)
	kinds, references, commissions := make([]string, 0, n), make([]uuid.UUID, 0, n), make([]*uuid.UUID, 0, n)
	sources, targets, amounts := make([]string, 0, n), make([]string, 0, n), make([]int64, 0, n)
	for _, t := range l.moved {
		rows.append(t.partnerKey, t.postedAt, t.after)
		kinds, references, commissions = append(kinds, string(t.kind)), append(references, t.reference), append(commissions, orNull(t.commission))
		sources, targets, amounts = append(sources, string(t.from)), append(targets, string(t.to)), append(amounts, t.amount.Centavos())
	}
	tx.Later(explainPost, postStatement, rows.tenant, rows.partner, rows.postedAt, kinds, references, commissions, sources, targets, amounts,
		rows.pending, rows.available, rows.reserved, rows.paid, rows.debt)
}

func explainPost(err error) error {
	if postgres.Violates(err, "transfers_once") {
		return fault.New(fault.Conflict, "conflict", "this money has been moved already").Because(err)
	}
	return fmt.Errorf("post transfers: %w", err)
}

func (l *ledger) keepBooks(tx *postgres.Tx) {
	n := len(l.books)
	books := newPosted(n)
	uncovered, due := make([]int64, 0, n), make([]bool, 0, n)
	for key, b := range l.books {
		if b.changed {
			books.append(key, b.postedAt, b.balances)
			uncovered, due = append(uncovered, b.uncovered.Centavos()), append(due, b.coveringDue)
		}
	}
	if len(due) == 0 {
		return
	}
	tx.Later(postgres.Doing("keep books"), keepBooksStatement, books.tenant, books.partner, books.postedAt,
		books.pending, books.available, books.reserved, books.paid, books.debt, uncovered, due)
}

// orNull is the id, or null for none.
func orNull(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// posted are partners' balances at some moments, as the arrays that a statement takes.
type posted struct {
	tenant, partner                          []uuid.UUID
	postedAt                                 []time.Time
	pending, available, reserved, paid, debt []int64 // centavos
}

func newPosted(n int) *posted {
	centavos := func() []int64 { return make([]int64, 0, n) }
	return &posted{
		tenant: make([]uuid.UUID, 0, n), partner: make([]uuid.UUID, 0, n), postedAt: make([]time.Time, 0, n),
		pending: centavos(), available: centavos(), reserved: centavos(), paid: centavos(), debt: centavos(),
	}
}

func (p *posted) append(key partnerKey, at time.Time, b balances) {
	add := func(column *[]int64, amount money.BRL) { *column = append(*column, amount.Centavos()) }
	p.tenant, p.partner, p.postedAt = append(p.tenant, key.tenant), append(p.partner, key.id), append(p.postedAt, at)
	add(&p.pending, b.Pending)
	add(&p.available, b.Available)
	add(&p.reserved, b.Reserved)
	add(&p.paid, b.Paid)
	add(&p.debt, b.Debt)
}
