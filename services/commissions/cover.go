package commissions

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

// A withdrawal is paid of a balance, not of commissions; yet a partner wants to know which
// commissions have been paid. What was paid out covers those that are available, the
// oldest first: one is paid once what is left of it and of all before it is covered.

const (
	coverEvery = time.Second
	coverBooks = 8     // partners in one transaction of the worker
	coverMost  = 1_000 // commissions of a partner in one transaction
)

// uncover takes note of money that was paid out and covers no commission, or none any more.
func (b *book) uncover(amount money.BRL) {
	b.uncovered += amount
	b.coveringDue = b.uncovered > 0
}

// coverable takes note that so much is left of a commission that is available, which may
// be covered by what there is already.
func (b *book) coverable(left money.BRL) {
	if b.uncovered > 0 && left <= b.uncovered {
		b.coveringDue = true
	}
}

const coverStatement = `
with paid as (
	select * from unnest($1::uuid[], $2::uuid[], $3::bigint[]) as paid (tenant_id, partner_id, uncovered)),
walked as (
	select paid.tenant_id, paid.uncovered, oldest.commission_id,
		sum(oldest.net) over (partition by paid.tenant_id, paid.partner_id order by oldest.created_at, oldest.commission_id) as worth
	from paid cross join lateral (
		select commission_id, created_at, commission_amount_centavos - reversed_centavos as net
		from commissions c
		where c.tenant_id = paid.tenant_id and c.partner_id = paid.partner_id and c.status = '` + statusAvailable + `'
		order by created_at, commission_id limit $4) oldest),
covered as (
	update commissions c set status = '` + statusPaid + `'
	from walked w
	where w.worth <= w.uncovered and c.tenant_id = w.tenant_id and c.commission_id = w.commission_id
	returning c.tenant_id, c.partner_id, c.commission_amount_centavos - c.reversed_centavos as net)
select tenant_id, partner_id, count(*), sum(net)::bigint from covered group by tenant_id, partner_id`

// cover marks as paid what is covered of the commissions of the books for which that is
// due, so many of each partner at most; what is left over stays due.
func (l *ledger) cover(ctx context.Context, tx *postgres.Tx, most int) error {
	var tenants, partners []uuid.UUID
	var uncovered []int64
	for key, b := range l.books {
		if b.coveringDue {
			tenants, partners, uncovered = append(tenants, key.tenant), append(partners, key.id), append(uncovered, b.uncovered.Centavos())
			b.coveringDue, b.changed = false, true
		}
	}
	if len(tenants) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, coverStatement, tenants, partners, uncovered, most)
	if err != nil {
		return fmt.Errorf("cover commissions: %w", err)
	}
	var covered partnerKey
	var n int
	var worth money.BRL
	_, err = pgx.ForEachRow(rows, []any{&covered.tenant, &covered.id, &n, &worth}, func() error {
		b := l.books[covered]
		b.uncovered -= worth
		b.coveringDue = n == most
		return nil
	})
	if err != nil {
		return fmt.Errorf("cover commissions: %w", err)
	}
	return nil
}

// coverPaid marks commissions as paid for which a payment itself had no time, until ctx
// ends. Any number of replicas may do so at once.
func (s *Service) coverPaid(ctx context.Context) error {
	tick := time.NewTicker(coverEvery)
	defer tick.Stop()
	for {
		for more := true; more; {
			n, err := s.coverDue(ctx)
			if err != nil && ctx.Err() == nil {
				s.deps.Log.Warn("cannot cover commissions now", zap.Error(err))
			}
			more = err == nil && n > 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

const booksToCoverQuery = `
select tenant_id, partner_id, pending_centavos, available_centavos, reserved_centavos, paid_centavos, debt_centavos, posted_at,
	uncovered_centavos, covering_due
from accounts where covering_due
order by tenant_id, partner_id limit $1
for no key update skip locked`

// coverDue goes one step further with some books that nobody else holds, and returns how
// many. None of them is waited for, so they may be locked in any transaction.
func (s *Service) coverDue(ctx context.Context) (n int, err error) {
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		rows, err := tx.Query(ctx, booksToCoverQuery, coverBooks)
		if err != nil {
			return fmt.Errorf("lock books to cover: %w", err)
		}
		l, err := collectBooks(rows, event.Instant(s.deps.Now()))
		if err != nil || len(l.books) == 0 {
			return err
		}
		if err := l.cover(ctx, tx, coverMost); err != nil {
			return err
		}
		n = len(l.books)
		l.keep(tx)
		return nil
	})
	return n, err
}
