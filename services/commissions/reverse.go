package commissions

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
)

// commissionKey names a commission of any tenant.
type commissionKey struct{ tenant, id uuid.UUID }

// reverse takes back of the commissions of refunded sales exactly what the refunds say,
// in whatever order the refunds of a sale arrive: from pending while the very commission
// is held back, else from what is available, and what is gone already the partner owes.
//
// The refund of a sale whose commission is not there yet fails them all as not yet; the
// bus then lets that one come again later. Where its sale is parked it is parked in the
// end too, and is to be retried after the sale.
func (s *Service) reverse(ctx context.Context, tx *postgres.Tx, refunds []event.Event[event.SaleRefunded]) error {
	slices.SortFunc(refunds, func(a, b event.Event[event.SaleRefunded]) int {
		return cmp.Or(bytes.Compare(a.TenantID[:], b.TenantID[:]), bytes.Compare(a.Data.RefundID[:], b.Data.RefundID[:]))
	})
	partners := make(map[partnerKey]bool)
	for _, refund := range refunds {
		if err := checkRefund(refund.Data); err != nil {
			return err
		}
		partners[partnerKey{refund.TenantID, refund.Data.PartnerID}] = true
	}
	books, err := s.lockBooks(ctx, tx, partners)
	if err != nil {
		return err
	}
	if err := refuseRepeated(ctx, tx, refunds); err != nil {
		return err
	}
	commissions, err := refundedCommissions(ctx, tx, refunds)
	if err != nil {
		return err
	}
	var told []event.Sealed
	for _, refund := range refunds {
		c, err := refunded(commissions, refund)
		if err != nil {
			return err
		}
		if books.of(c) == nil { // begun, together with the commission, after the books were locked
			return notYet()
		}
		amount := refund.Data.CommissionReversed
		if amount == 0 {
			continue
		}
		books.reverse(c, refund.Data)
		reversed, err := tellReversed(c, refund, books.now)
		if err != nil {
			return err
		}
		told = append(told, reversed)
	}
	keepReversals(tx, commissions)
	books.keep(tx)
	s.relay.Add(tx, told...)
	return nil
}

// reverse moves the refund's share of the commission back, and notes it on the commission.
// What a withdrawal had paid of it is then paid of others.
func (l *ledger) reverse(c *ownedCommission, refund event.SaleRefunded) {
	b, amount := l.of(c), refund.CommissionReversed
	if c.Status == statusPending {
		l.post(b, movedReversal, refund.RefundID, c.ID, pending, expense, amount)
	} else {
		l.take(b, refund.RefundID, c.ID, amount)
	}
	c.Reversed += amount
	switch c.Status {
	case statusPaid:
		b.uncover(amount)
	case statusAvailable:
		b.coverable(c.Amount - c.Reversed)
	}
	if c.Reversed == c.Amount {
		c.Status = statusReversed
	}
}

// checkRefund tells what of a refund cannot be, whatever is known of its sale.
func checkRefund(r event.SaleRefunded) error {
	switch {
	case slices.Contains([]uuid.UUID{r.RefundID, r.SaleID, r.PartnerID, r.CommissionID}, uuid.Nil):
		return invalid("an id is missing")
	case r.CommissionReversed < 0:
		return invalid("commission_reversed_brl %s is below 0", r.CommissionReversed)
	}
	return nil
}

// notYet is what becomes of a refund that has overtaken its sale.
func notYet() error {
	return fault.New(fault.NotYet, "not_yet", "the commission of the refunded sale is not here yet")
}

// refunded finds the commission that the refund takes from, and checks that it is the
// one of its sale and partner and that as much is left of it.
func refunded(known map[commissionKey]*ownedCommission, refund event.Event[event.SaleRefunded]) (*ownedCommission, error) {
	d := refund.Data
	c, found := known[commissionKey{refund.TenantID, d.CommissionID}]
	switch {
	case !found:
		return nil, notYet()
	case c.SourceSaleID == nil || *c.SourceSaleID != d.SaleID || c.PartnerID != d.PartnerID:
		return nil, invalid("commission %s is not that of the sale and partner of the refund", c.ID)
	case d.CommissionReversed > c.Amount-c.Reversed:
		return nil, fault.Newf(fault.Conflict, "conflict", "commission_reversed_brl is %s, but only %s of the commission is left",
			d.CommissionReversed, c.Amount-c.Reversed)
	}
	return c, nil
}

const repeatedRefundQuery = `
select t.reference
from unnest($1::uuid[], $2::uuid[]) as refund (tenant_id, refund_id)
join transfers t on t.tenant_id = refund.tenant_id and t.reference = refund.refund_id
	and t.kind in ('reversal', 'reversal_debt')
limit 1`

// refuseRepeated fails where one of the refunds has moved money before: the one transfer
// of each kind that it may make does not keep it from making one of the other kind.
func refuseRepeated(ctx context.Context, tx *postgres.Tx, refunds []event.Event[event.SaleRefunded]) error {
	tenants, ids := make([]uuid.UUID, len(refunds)), make([]uuid.UUID, len(refunds))
	for i, refund := range refunds {
		tenants[i], ids[i] = refund.TenantID, refund.Data.RefundID
	}
	var repeated uuid.UUID
	err := tx.QueryRow(ctx, repeatedRefundQuery, tenants, ids).Scan(&repeated)
	switch {
	case err == nil:
		return fault.Newf(fault.Conflict, "conflict", "refund %s has been posted already", repeated)
	case !postgres.Absent(err):
		return fmt.Errorf("look for repeated refunds: %w", err)
	}
	return nil
}

const refundedCommissionsQuery = `
select ` + ownedColumns + `
from (select distinct * from unnest($1::uuid[], $2::uuid[]) as refund (tenant_id, commission_id)) refund
join commissions c on c.tenant_id = refund.tenant_id and c.commission_id = refund.commission_id`

// refundedCommissions reads the commissions of the refunds, whose partners' books must
// be locked: nobody changes them then.
func refundedCommissions(ctx context.Context, tx *postgres.Tx, refunds []event.Event[event.SaleRefunded]) (map[commissionKey]*ownedCommission, error) {
	tenants, ids := make([]uuid.UUID, len(refunds)), make([]uuid.UUID, len(refunds))
	for i, refund := range refunds {
		tenants[i], ids[i] = refund.TenantID, refund.Data.CommissionID
	}
	rows, err := tx.Query(ctx, refundedCommissionsQuery, tenants, ids)
	if err != nil {
		return nil, fmt.Errorf("read refunded commissions: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanOwnedCommission)
	if err != nil {
		return nil, fmt.Errorf("read refunded commissions: %w", err)
	}
	commissions := make(map[commissionKey]*ownedCommission, len(found))
	for _, c := range found {
		commissions[commissionKey{c.tenant, c.ID}] = c
	}
	return commissions, nil
}

const keepReversalsStatement = `
update commissions c set reversed_centavos = refund.reversed, status = refund.status
from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[]) as refund (tenant_id, commission_id, reversed, status)
where c.tenant_id = refund.tenant_id and c.commission_id = refund.commission_id`

// keepReversals stores what refunds have made of the commissions.
func keepReversals(tx *postgres.Tx, commissions map[commissionKey]*ownedCommission) {
	var tenants, ids []uuid.UUID
	var reversed []int64
	var statuses []string
	for key, c := range commissions {
		tenants, ids = append(tenants, key.tenant), append(ids, key.id)
		reversed, statuses = append(reversed, c.Reversed.Centavos()), append(statuses, c.Status)
	}
	tx.Later(postgres.Doing("keep reversals"), keepReversalsStatement, tenants, ids, reversed, statuses)
}

// reasonSaleRefunded is why a commission is reversed.
const reasonSaleRefunded = "sale_refunded"

func tellReversed(c *ownedCommission, refund event.Event[event.SaleRefunded], at time.Time) (event.Sealed, error) {
	d := refund.Data
	return event.Seal(c.tenant, d.RefundID.String(), at, event.CommissionReversed{
		CommissionID: c.ID, PartnerID: c.PartnerID, CampaignID: c.CampaignID, SourceSaleID: c.SourceSaleID, RefundID: d.RefundID,
		Amount: d.CommissionReversed, ReversedTotal: c.Reversed, CommissionAmount: c.Amount, Status: c.Status,
		Reason: reasonSaleRefunded, ReversedAt: at,
	}, refund.Traceparent)
}
