package commissions

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

// earning is a commission that comes into being, and the event that tells of it.
type earning struct {
	commission
	tenant uuid.UUID
	told   event.Sealed
}

func (e earning) partner() partnerKey { return partnerKey{e.tenant, e.PartnerID} }

// earn books each commission exactly once, moves its money into the account of its
// status, and tells of it, all in tx and in a fixed number of statements.
//
// A commission whose id or source has one already, under another event, fails them all
// with a conflict; the bus then parks that one and books the others.
func (s *Service) earn(ctx context.Context, tx *postgres.Tx, earnings []earning) error {
	if len(earnings) == 0 {
		return nil
	}
	slices.SortFunc(earnings, func(a, b earning) int { // one lock order for all replicas
		return cmp.Or(bytes.Compare(a.tenant[:], b.tenant[:]), bytes.Compare(a.ID[:], b.ID[:]))
	})
	partners := make(map[partnerKey]bool)
	rows := newEarned(len(earnings))
	told := make([]event.Sealed, len(earnings))
	for i, e := range earnings {
		partners[e.partner()] = true
		rows.append(e)
		told[i] = e.told
	}
	books, err := s.openBooks(ctx, tx, partners)
	if err != nil {
		return err
	}
	rows.insert(tx)
	for _, e := range earnings {
		b := books.books[e.partner()]
		if e.Status == statusPending {
			books.post(b, movedCommission, e.ID, e.ID, expense, pending, e.Amount)
		} else {
			books.free(b, movedCommission, e.ID, e.ID, expense, e.Amount)
			b.coverable(e.Amount)
		}
	}
	books.keep(tx)
	s.relay.Add(tx, told...)
	return nil
}

func invalid(format string, args ...any) error {
	return fault.Newf(fault.Invalid, "invalid_event", format, args...)
}

// tellAvailable makes the event that the commission of a sale or conversion has come
// into being.
func (s *Service) tellAvailable(tenant uuid.UUID, c commission, traceparent string) (event.Sealed, error) {
	return event.Seal(tenant, c.ID.String(), s.deps.Now(), event.CommissionAvailable{
		CommissionID: c.ID, PartnerID: c.PartnerID, Amount: c.Amount, SourceSaleID: c.SourceSaleID, CampaignID: *c.CampaignID,
		SourceConversionID: c.SourceConversionID, Kind: c.Kind, Status: c.Status, AvailableAt: c.AvailableAt.Time,
	}, traceparent)
}

// earned are new commissions as the arrays that one statement takes.
type earned struct {
	tenant, id, partner                    []uuid.UUID
	campaign, plan, sale, conversion, goal []*uuid.UUID
	kind, status                           []string
	base, pct                              []*int64 // centavos, ten-thousandths of a percent
	amount                                 []int64  // centavos
	availableAt, createdAt                 []time.Time
}

func newEarned(n int) *earned {
	ids, maybe := func() []uuid.UUID { return make([]uuid.UUID, 0, n) }, func() []*uuid.UUID { return make([]*uuid.UUID, 0, n) }
	texts, times := func() []string { return make([]string, 0, n) }, func() []time.Time { return make([]time.Time, 0, n) }
	return &earned{
		tenant: ids(), id: ids(), partner: ids(), campaign: maybe(), plan: maybe(), sale: maybe(), conversion: maybe(), goal: maybe(),
		kind: texts(), status: texts(), base: make([]*int64, 0, n), pct: make([]*int64, 0, n), amount: make([]int64, 0, n),
		availableAt: times(), createdAt: times(),
	}
}

func (e *earned) append(c earning) {
	e.tenant, e.id, e.partner = append(e.tenant, c.tenant), append(e.id, c.ID), append(e.partner, c.PartnerID)
	e.campaign, e.plan = append(e.campaign, c.CampaignID), append(e.plan, c.PlanID)
	e.sale, e.conversion, e.goal = append(e.sale, c.SourceSaleID), append(e.conversion, c.SourceConversionID), append(e.goal, c.SourceGoalID)
	e.kind, e.status = append(e.kind, c.Kind), append(e.status, c.Status)
	e.base, e.pct, e.amount = append(e.base, units(c.BaseAmount)), append(e.pct, units(c.Pct)), append(e.amount, c.Amount.Centavos())
	e.availableAt, e.createdAt = append(e.availableAt, c.AvailableAt.Time), append(e.createdAt, c.CreatedAt.Time)
}

// units is an amount or a percentage as the number that is stored, or nil.
func units[T money.BRL | money.Pct](value *T) *int64 {
	if value == nil {
		return nil
	}
	return new(int64(*value))
}

const earnStatement = `
with earned as (
	insert into commissions (tenant_id, commission_id, partner_id, campaign_id, plan_id, source_sale_id, source_conversion_id, source_goal_id,
		kind, status, base_amount_centavos, commission_pct_e4, commission_amount_centavos, available_at, created_at)
	select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::uuid[], $8::uuid[],
		$9::text[], $10::text[], $11::bigint[], $12::integer[], $13::bigint[], $14::timestamptz[], $15::timestamptz[])
	returning tenant_id, commission_id, partner_id, status, available_at)
insert into holds (available_at, tenant_id, commission_id, partner_id)
select available_at, tenant_id, commission_id, partner_id from earned where status = '` + statusPending + `'`

// insert books all rows, and the holds of those that are held back, in one statement. A
// source or an id that has a commission already is a conflict: this event is not the one
// that made it, since the bus hands over each event once.
func (e *earned) insert(tx *postgres.Tx) {
	tx.Later(explainEarn, earnStatement, e.tenant, e.id, e.partner, e.campaign, e.plan, e.sale, e.conversion, e.goal,
		e.kind, e.status, e.base, e.pct, e.amount, e.availableAt, e.createdAt)
}

func explainEarn(err error) error {
	switch {
	case postgres.Violates(err, "commissions_source_sale_key"):
		return fault.New(fault.Conflict, "conflict", "the sale has a commission already").Because(err)
	case postgres.Violates(err, "commissions_source_conversion_key"):
		return fault.New(fault.Conflict, "conflict", "the conversion has a commission already").Because(err)
	case postgres.Violates(err, "commissions_pkey"):
		return fault.New(fault.Conflict, "conflict", "the commission id is taken").Because(err)
	}
	return fmt.Errorf("book commissions: %w", err)
}
