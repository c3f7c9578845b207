package sales

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
)

// refund is a part of a sale that was given back, as it is shown.
type refund struct {
	RefundID           uuid.UUID `json:"refund_id"`
	SaleID             uuid.UUID `json:"sale_id"`
	ExternalRef        string    `json:"external_ref"`
	Amount             money.BRL `json:"amount_brl"`
	CommissionReversed money.BRL `json:"commission_reversed_brl"` // by this refund alone
	Reason             *string   `json:"reason"`
	CreatedAt          time.Time `json:"created_at"`

	erased bool // the customer of the sale was forgotten, and the reason with it
}

// refundReport is what a payment system says of a refund.
type refundReport struct {
	saleID      uuid.UUID
	ExternalRef string    `json:"external_ref"`
	Amount      money.BRL `json:"amount_brl"`
	Reason      *string   `json:"reason"`
}

// refundReceipt is the answer to a refundReport, the same for the first and for every
// repeat.
type refundReceipt struct {
	RefundID           uuid.UUID `json:"refund_id"`
	SaleID             uuid.UUID `json:"sale_id"`
	Amount             money.BRL `json:"amount_brl"`
	CommissionReversed money.BRL `json:"commission_reversed_brl"`
	Idempotent         bool      `json:"idempotent"`
}

// recordRefund answers POST /api/v1/sales/{sale_id}/refunds.
func (s *Service) recordRefund(call *web.Call) (web.Answer, error) {
	var r refundReport
	var err error
	if r.saleID, err = call.PathID("sale_id"); err != nil {
		return web.Answer{}, err
	}
	if err := call.Decode(&r); err != nil {
		return web.Answer{}, err
	}
	known, fresh, err := s.refund(call.Context(), call.Tenant(), r)
	if err != nil {
		return web.Answer{}, err
	}
	answer := web.Answer{Status: 201, Body: refundReceipt{known.RefundID, known.SaleID, known.Amount, known.CommissionReversed, !fresh}}
	if !fresh {
		answer.Status, answer.Header = 200, mismatchHeader(known.differences(r))
	}
	return answer, nil
}

// Refunds of one sale wait for each other here, so that each is decided on what all
// before it have left.
const lockSaleQuery = getSaleQuery + ` for no key update`

// refund gives back a part of the sale, or finds the refund that the same external_ref
// made before, of whichever sale; fresh tells which. Whether there is such a sale, and
// whether enough of it is left, is looked at only after no earlier refund was found.
func (s *Service) refund(ctx context.Context, tenant uuid.UUID, r refundReport) (known refund, fresh bool, err error) {
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		sold, exists, err := one(ctx, tx, scanSale, lockSaleQuery, tenant, r.saleID)
		if err != nil {
			return err
		}
		// Only now: a call with the same reference may have held the lock.
		earlier, repeated, err := one(ctx, tx, scanRefund, findRefundQuery, tenant, r.ExternalRef)
		if err != nil || repeated {
			if known = earlier; !exists { // and so nothing was locked
				tx.Vouch()
			}
			return err
		}
		if !exists {
			return web.NotFound()
		}
		if known, err = decideRefund(sold, r, s.deps.Now()); err != nil {
			return err
		}
		if fresh, err = insertRefund(ctx, tx, tenant, known); err != nil {
			return err
		}
		if !fresh { // a refund of another sale has taken the reference meanwhile
			known, repeated, err = one(ctx, tx, scanRefund, findRefundQuery, tenant, r.ExternalRef)
			if err == nil && !repeated {
				return errors.New("the reference is taken and names no refund")
			}
			return err
		}
		told, err := known.event(tenant, sold, trace.Parent(ctx))
		if err != nil {
			return err
		}
		s.relay.Add(tx, told)
		return nil
	})
	if err != nil {
		return refund{}, false, fmt.Errorf("refund sale: %w", err)
	}
	return known, fresh, nil
}

// decideRefund decides what the refund takes back of the commission, or that it may not
// be made. The sale is as all refunds before have left it.
func decideRefund(sold sale, r refundReport, now time.Time) (refund, error) {
	if left := sold.Amount - sold.Refunded; r.Amount > left {
		return refund{}, fault.Newf(fault.Rule, "rule_violated", "the refunds of a sale cannot exceed its amount, of which %s is left", left)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return refund{}, err
	}
	reason := r.Reason
	if sold.erased {
		reason = nil // nobody could find it any more who is to erase it
	}
	return refund{
		RefundID: id, SaleID: sold.SaleID, ExternalRef: r.ExternalRef, Amount: r.Amount,
		CommissionReversed: sold.reversed(sold.Refunded+r.Amount) - sold.reversed(sold.Refunded),
		Reason:             reason, CreatedAt: event.Instant(now), erased: sold.erased,
	}, nil
}

// reversed is how much of the commission is taken back once that much of the sale is
// refunded: all of it with the whole sale, however many refunds that takes.
func (s sale) reversed(refunded money.BRL) money.BRL {
	return money.Share(s.CommissionAmount, refunded, s.Amount)
}

const refundStatement = `
with made as (
	insert into refunds (tenant_id, refund_id, sale_id, external_ref, amount_centavos, commission_reversed_centavos, reason, created_at, erased_at)
	values (@tenant_id, @refund_id, @sale_id, @external_ref, @amount, @reversed, @reason, @created_at,
	        case when @erased then @created_at::timestamptz end)
	on conflict (tenant_id, external_ref) do nothing
	returning amount_centavos)
update sales set refunded_centavos = refunded_centavos + made.amount_centavos
from made where tenant_id = @tenant_id and sale_id = @sale_id`

// insertRefund adds the refund and raises what is refunded of its sale; it reports
// false, and does neither, where the reference is taken.
func insertRefund(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID, r refund) (bool, error) {
	tag, err := tx.Exec(ctx, refundStatement, pgx.NamedArgs{
		"tenant_id": tenant, "refund_id": r.RefundID, "sale_id": r.SaleID, "external_ref": r.ExternalRef,
		"amount": int64(r.Amount), "reversed": int64(r.CommissionReversed), "reason": r.Reason, "created_at": r.CreatedAt, "erased": r.erased,
	})
	return tag.RowsAffected() == 1, err
}

// event tells of the refund. The sale is as it was before.
func (r refund) event(tenant uuid.UUID, sold sale, traceparent string) (event.Sealed, error) {
	return event.Seal(tenant, r.RefundID.String(), r.CreatedAt, event.SaleRefunded{
		RefundID: r.RefundID, SaleID: r.SaleID, PartnerID: sold.PartnerID, CampaignID: sold.CampaignID, CommissionID: sold.CommissionID,
		Amount: r.Amount, CommissionReversed: r.CommissionReversed, RefundedTotal: sold.Refunded + r.Amount,
		SaleAmount: sold.Amount, CommissionAmount: sold.CommissionAmount, SoldAt: sold.SoldAt, RefundedAt: r.CreatedAt,
	}, traceparent)
}

// differences names the members of a repeat that do not say what the first report said.
func (r refund) differences(repeat refundReport) []string {
	return differing(
		compared{"amount_brl", r.Amount == repeat.Amount},
		compared{"reason", r.erased || equal(r.Reason, repeat.Reason)},
		compared{"sale_id", r.SaleID == repeat.saleID},
	)
}

const refundColumns = `refund_id, sale_id, external_ref, amount_centavos, commission_reversed_centavos, reason, created_at, erased_at is not null as erased`

func scanRefund(row pgx.CollectableRow) (r refund, err error) {
	return r, row.Scan(&r.RefundID, &r.SaleID, &r.ExternalRef, &r.Amount, &r.CommissionReversed, &r.Reason, &r.CreatedAt, &r.erased)
}

const findRefundQuery = `select ` + refundColumns + ` from refunds where tenant_id = $1 and external_ref = $2`

const saleExistsQuery = `select exists (select from sales where tenant_id = $1 and sale_id = $2)`

const listRefundsQuery = `
select ` + refundColumns + ` from refunds
where tenant_id = @tenant_id and sale_id = @sale_id and refund_id < coalesce(@after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by refund_id desc limit @limit`

// listRefunds answers GET /api/v1/sales/{sale_id}/refunds, the last first.
func (s *Service) listRefunds(call *web.Call) (web.Answer, error) {
	saleID, err := s.existing(call, "sale_id", saleExistsQuery)
	if err != nil {
		return web.Answer{}, err
	}
	return list(s, call, scanRefund, func(r refund) uuid.UUID { return r.RefundID }, listRefundsQuery, pgx.NamedArgs{"sale_id": saleID})
}
