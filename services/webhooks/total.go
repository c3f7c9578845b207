package webhooks

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
)

// amounts are the members of events that are added up. One that is null or not there
// adds nothing.
type amounts struct {
	Amount             *money.BRL `json:"amount_brl"`
	CommissionAmount   *money.BRL `json:"commission_amount_brl"`
	CommissionReversed *money.BRL `json:"commission_reversed_brl"`
	Value              *money.BRL `json:"value_brl"`
	Reward             *money.BRL `json:"reward_brl"`
	Status             string     `json:"status"`
}

// sum is something of each event of a kind that makes sense as the total of a day.
type sum struct {
	member string // of the answer
	of     func(amounts) *money.BRL
}

var (
	ofAmount           = sum{"amount_brl", func(a amounts) *money.BRL { return a.Amount }}
	ofCommissionAmount = sum{"commission_amount_brl", func(a amounts) *money.BRL { return a.CommissionAmount }}
	ofReversed         = sum{"commission_reversed_brl", func(a amounts) *money.BRL { return a.CommissionReversed }}
	ofValue            = sum{"value_brl", func(a amounts) *money.BRL { return a.Value }}
	ofReward           = sum{"reward_brl", func(a amounts) *money.BRL { return a.Reward }}
)

// ofAmountIn is the amount of what has come to a status, since adding up what was paid
// and what was refused would tell nothing.
func ofAmountIn(status string) sum {
	return sum{status + "_brl", func(a amounts) *money.BRL {
		if a.Status != status {
			return nil
		}
		return a.Amount
	}}
}

// sumsOf are the totals of each kind of event, beside how many there are.
var sumsOf = map[string][]sum{
	event.NameSaleRecorded:        {ofAmount, ofCommissionAmount},
	event.NameSaleRefunded:        {ofAmount, ofReversed},
	event.NameConversionRecorded:  {ofValue, ofCommissionAmount},
	event.NameCommissionAvailable: {ofAmount},
	event.NameCommissionBonus:     {ofAmount},
	event.NameCommissionReleased:  {ofAmount},
	event.NameCommissionReversed:  {ofAmount},
	event.NameWithdrawalRequested: {ofAmount},
	event.NameWithdrawalStatusChanged: {
		ofAmountIn("approved"), ofAmountIn("paid"), ofAmountIn("rejected"), ofAmountIn("cancelled"), ofAmountIn("failed"),
	},
	event.NameGoalReached: {ofReward},
}

// counted is the member under which events themselves are counted.
const counted = ""

// totalKey is one row of the totals.
type totalKey struct {
	tenant       uuid.UUID
	day          time.Time
	name, member string
}

// totalsOf adds up events. It fails where a member that is added up is no amount.
func totalsOf(events []event.Sealed) (map[totalKey]int64, error) {
	totals := map[totalKey]int64{}
	for _, e := range events {
		key := totalKey{e.TenantID, dayOf(e.CreatedAt), e.Name, counted}
		totals[key]++
		sums := sumsOf[e.Name]
		if len(sums) == 0 {
			continue
		}
		var told struct {
			Data amounts `json:"data"`
		}
		if err := json.Unmarshal(e.Body, &told); err != nil {
			return nil, fault.Newf(fault.Invalid, "invalid_event", "%s %s cannot be added up", e.Name, e.ID).Because(err)
		}
		for _, s := range sums {
			if amount := s.of(told.Data); amount != nil {
				key.member = s.member
				totals[key] += amount.Centavos()
			}
		}
	}
	return totals, nil
}

// dayOf is the beginning of the UTC day of a time.
func dayOf(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

const addTotalsStatement = `
insert into day_totals as t (tenant_id, day, name, member, total)
select * from unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::bigint[])
on conflict (tenant_id, day, name, member) do update set total = t.total + excluded.total`

// addTotals adds events, each of which was kept just now, to the totals of their days.
// Their tenants must be locked: so nobody else has these rows, and whoever reads the
// totals finds in them exactly the events that can be read.
func addTotals(tx *postgres.Tx, kept []event.Sealed) error {
	totals, err := totalsOf(kept)
	if err != nil {
		return err
	}
	var (
		tenants       []uuid.UUID
		days          []time.Time
		names, member []string
		added         []int64
	)
	for key, total := range totals {
		tenants, days, names = append(tenants, key.tenant), append(days, key.day), append(names, key.name)
		member, added = append(member, key.member), append(added, total)
	}
	tx.Later(postgres.Doing("add to the totals"), addTotalsStatement, tenants, days, names, member, added)
	return nil
}
