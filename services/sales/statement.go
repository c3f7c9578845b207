package sales

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// The two statements below do the same, for one sale and for many: keep the sales
// whose tenant's catalogue is still the one on which they were decided, record those
// whose external_ref is new, and put the event of each recorded one into the outbox.
// They return the ids of the recorded sales. One statement is one transaction, so
// there is no sale without its event and no event without its sale.

const recordOneStatement = `
with recorded as (
	insert into sales (tenant_id, sale_id, external_ref, referral_code, partner_id, campaign_id, plan_id, amount_centavos,
	                   commission_id, commission_pct_e4, commission_centavos, hold_days, sold_at, customer_ref, notes, created_at)
	select $1::uuid, $3::uuid, $4::text, $5::text, $6::uuid, $7::uuid, $8::uuid, $9::bigint,
	       $10::uuid, $11::integer, $12::bigint, $13::integer, $14::timestamptz, $15::text, $16::text, $17::timestamptz
	from tenants where tenant_id = $1 and catalogue_version = $2::bigint
	on conflict (tenant_id, external_ref) do nothing
	returning sale_id),
told as (
	insert into outbox (created_at, event_id, name, tenant_id, body, traceparent)
	select $17::timestamptz, $18::uuid, 'sale.recorded', $1::uuid, $19::bytea, $20::text from recorded),
pending as (
	insert into outbox_pending (created_at, event_id) select $17::timestamptz, $18::uuid from recorded)
select sale_id from recorded`

// arguments are the parameters of recordOneStatement.
func (e *entry) arguments() []any {
	s := &e.sale
	return []any{
		e.tenant, e.version, s.SaleID, s.ExternalRef, s.ReferralCode, s.PartnerID, s.CampaignID, s.PlanID, int64(s.Amount),
		s.CommissionID, int64(s.CommissionPct), int64(s.CommissionAmount), s.holdDays, s.SoldAt, s.CustomerRef, s.Notes, s.CreatedAt,
		[16]byte(e.event.ID), e.event.Body, e.event.Traceparent,
	}
}

// Rows are inserted in the order of the unique key, so that two groups which share
// keys wait for each other instead of deadlocking.
const recordManyStatement = `
with input as (
	select i.* from unnest(
		$1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::uuid[], $7::uuid[], $8::uuid[], $9::bigint[],
		$10::uuid[], $11::integer[], $12::bigint[], $13::integer[], $14::timestamptz[], $15::text[], $16::text[], $17::timestamptz[],
		$18::uuid[], $19::bytea[], $20::text[])
	as i (tenant_id, version, sale_id, external_ref, referral_code, partner_id, campaign_id, plan_id, amount_centavos,
	      commission_id, commission_pct_e4, commission_centavos, hold_days, sold_at, customer_ref, notes, created_at,
	      event_id, body, traceparent)
	join tenants t on t.tenant_id = i.tenant_id and t.catalogue_version = i.version),
recorded as (
	insert into sales (tenant_id, sale_id, external_ref, referral_code, partner_id, campaign_id, plan_id, amount_centavos,
	                   commission_id, commission_pct_e4, commission_centavos, hold_days, sold_at, customer_ref, notes, created_at)
	select tenant_id, sale_id, external_ref, referral_code, partner_id, campaign_id, plan_id, amount_centavos,
	       commission_id, commission_pct_e4, commission_centavos, hold_days, sold_at, customer_ref, notes, created_at
	from input order by tenant_id, external_ref collate "C"
	on conflict (tenant_id, external_ref) do nothing
	returning sale_id),
told as (
	insert into outbox (created_at, event_id, name, tenant_id, body, traceparent)
	select i.created_at, i.event_id, 'sale.recorded', i.tenant_id, i.body, i.traceparent
	from input i join recorded r on r.sale_id = i.sale_id
	returning created_at, event_id),
pending as (
	insert into outbox_pending (created_at, event_id) select created_at, event_id from told)
select sale_id from recorded`

// columnsOf are the parameters of recordManyStatement: one array for each of the
// parameters of recordOneStatement. Their types are those that pgx encodes without
// reflection.
func columnsOf(batch []*entry) []any {
	n := len(batch)
	var (
		tenant, saleID, partner, campaign, plan, commission = ids(n), ids(n), ids(n), ids(n), ids(n), ids(n)
		version, amount, commissionAmount                   = make([]int64, n), make([]int64, n), make([]int64, n)
		pct, hold                                           = make([]int32, n), make([]int32, n)
		ref, code, traceparent                              = make([]string, n), make([]string, n), make([]string, n)
		customer, notes                                     = make(pgtype.FlatArray[*string], n), make(pgtype.FlatArray[*string], n)
		sold, created                                       = make([]time.Time, n), make([]time.Time, n)
		eventID                                             = ids(n)
		body                                                = make(pgtype.FlatArray[[]byte], n)
	)
	for i, e := range batch {
		s := &e.sale
		tenant[i], version[i], saleID[i], ref[i], code[i] = e.tenant, e.version, s.SaleID, s.ExternalRef, s.ReferralCode
		partner[i], campaign[i], plan[i], amount[i] = s.PartnerID, s.CampaignID, s.PlanID, int64(s.Amount)
		commission[i], pct[i], commissionAmount[i] = s.CommissionID, int32(s.CommissionPct), int64(s.CommissionAmount)
		hold[i], sold[i], customer[i], notes[i], created[i] = int32(s.holdDays), s.SoldAt, s.CustomerRef, s.Notes, s.CreatedAt
		eventID[i], body[i], traceparent[i] = e.event.ID, e.event.Body, e.event.Traceparent
	}
	return []any{tenant, version, saleID, ref, code, partner, campaign, plan, amount, commission, pct, commissionAmount,
		hold, sold, customer, notes, created, eventID, body, traceparent}
}

func ids(n int) [][16]byte { return make([][16]byte, n) }
