package commissions

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
)

const (
	releaseEvery = time.Second
	releaseBatch = 500 // commissions in one transaction at most
)

// releaseHeld makes available what has been held back for long enough, until ctx ends.
// Any number of replicas may do so at once.
func (s *Service) releaseHeld(ctx context.Context) error {
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	for {
		s.releaseDue(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// releaseDue releases whatever is due now. If a batch fails, smaller ones are tried, until
// the one hold that cannot be ended stands alone; it stays, and those behind it go on.
func (s *Service) releaseDue(ctx context.Context) {
	var past held
	for most := releaseBatch; ctx.Err() == nil; {
		ended, err := s.release(ctx, past, most)
		switch {
		case ctx.Err() != nil:
		case err == nil && len(ended) < most:
			return
		case err == nil:
			most = min(2*most, releaseBatch)
		case fault.KindOf(err) == fault.Unavailable || len(ended) == 0:
			s.deps.Log.Warn("cannot release commissions now", zap.Error(err))
			return
		case len(ended) > 1:
			most = len(ended) / 2
		default:
			past = ended[0]
			s.deps.Log.Error("cannot release commission", zap.Stringer("tenant_id", past.tenant), zap.Stringer("commission_id", past.commission), zap.Error(err))
		}
	}
}

// release ends some holds behind past whose time has come, the first ones that no other
// replica has taken, and returns them. The commissions, their transfers and the events
// that tell of them commit together. After an error they are those that it was about.
func (s *Service) release(ctx context.Context, past held, most int) (ended []held, err error) {
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		ended, err = endHolds(ctx, tx, past, event.Instant(s.deps.Now()), most)
		if err != nil || len(ended) == 0 {
			return err
		}
		ctx, span := trace.Start(ctx, "release")
		defer span.End()
		partners, tenants, ids := make(map[partnerKey]bool), make([]uuid.UUID, len(ended)), make([]uuid.UUID, len(ended))
		for i, h := range ended {
			partners[h.partnerKey] = true
			tenants[i], ids[i] = h.tenant, h.commission
		}
		books, err := s.openBooks(ctx, tx, partners)
		if err != nil {
			return err
		}
		released, err := releaseCommissions(ctx, tx, tenants, ids)
		if err != nil {
			return err
		}
		told := make([]event.Sealed, len(released))
		for i, c := range released {
			books.free(books.of(c), movedRelease, c.ID, c.ID, pending, c.Amount-c.Reversed)
			books.of(c).coverable(c.Amount - c.Reversed)
			if told[i], err = tellReleased(c, books.now, trace.Parent(ctx)); err != nil {
				return err
			}
		}
		books.keep(tx)
		s.relay.Add(tx, told...)
		return nil
	})
	return ended, err
}

// held is a commission that is held back.
type held struct {
	partnerKey
	commission uuid.UUID
	until      time.Time
}

// What another replica has taken is passed over: these rows are waited for by nobody,
// so they may be locked before any book.
const endHoldsStatement = `
delete from holds
where ctid = any (array (
	select ctid from holds where available_at <= $1 and (available_at, tenant_id, commission_id) > ($2, $3, $4)
	order by available_at, tenant_id, commission_id limit $5
	for update skip locked))
returning tenant_id, partner_id, commission_id, available_at`

// endHolds takes the oldest holds behind past whose time has come.
func endHolds(ctx context.Context, tx *postgres.Tx, past held, now time.Time, most int) ([]held, error) {
	rows, err := tx.Query(ctx, endHoldsStatement, now, past.until, past.tenant, past.commission, most)
	if err != nil {
		return nil, fmt.Errorf("end holds: %w", err)
	}
	ended, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h held, err error) {
		err = row.Scan(&h.tenant, &h.id, &h.commission, &h.until)
		return h, err
	})
	if err != nil {
		return nil, fmt.Errorf("end holds: %w", err)
	}
	return ended, nil
}

// What refunds have taken back wholly is not pending any more, and stays as it is.
const releaseStatement = `
update commissions c set status = '` + statusAvailable + `'
from unnest($1::uuid[], $2::uuid[]) as due (tenant_id, commission_id)
where c.tenant_id = due.tenant_id and c.commission_id = due.commission_id and c.status = '` + statusPending + `'
returning ` + ownedColumns

// releaseCommissions makes available those of the commissions that are still pending,
// and returns them. Their partners' books must be locked.
func releaseCommissions(ctx context.Context, tx *postgres.Tx, tenants, ids []uuid.UUID) ([]*ownedCommission, error) {
	rows, err := tx.Query(ctx, releaseStatement, tenants, ids)
	if err != nil {
		return nil, fmt.Errorf("release commissions: %w", err)
	}
	released, err := pgx.CollectRows(rows, scanOwnedCommission)
	if err != nil {
		return nil, fmt.Errorf("release commissions: %w", err)
	}
	return released, nil
}

// reasonHoldEnded is why a commission is released.
const reasonHoldEnded = "hold_ended"

func tellReleased(c *ownedCommission, at time.Time, traceparent string) (event.Sealed, error) {
	return event.Seal(c.tenant, c.ID.String(), at, event.CommissionReleased{
		CommissionID: c.ID, PartnerID: c.PartnerID, CampaignID: c.CampaignID, SourceSaleID: c.SourceSaleID,
		Amount: c.Amount - c.Reversed, CommissionAmount: c.Amount, Reason: reasonHoldEnded,
		AvailableAt: c.AvailableAt.Time, ReleasedAt: at,
	}, traceparent)
}
