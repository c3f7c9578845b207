package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

const (
	transfersEach = 100       // of each partner
	loadedAtOnce  = 1_000_000 // rows
)

// Books as the commissions service would have kept them: each partner has earned a
// hundred commissions, one an hour, of 10.01, 10.02 and so on. Of $2 is the first number
// of a commission and $3 the last; $4 is the instant at which the first was earned.
const numberedCommissions = `
from generate_series($2::bigint, $3::bigint) i
cross join lateral (select 1 + (i - 1) / 100 as owner, 1 + (i - 1) % 100 as k) place
cross join lateral (select lpad(to_hex(owner), 32, '0')::uuid as partner_id,
	overlay(lpad(to_hex(i), 32, '0') placing '7' from 13 for 1)::uuid as commission_id,
	$4::timestamptz + k * interval '1 hour' + owner * interval '1 microsecond' as at, 1000 + k as amount) made`

const (
	fillCommissionsStatement = `
insert into commissions (tenant_id, commission_id, partner_id, campaign_id, plan_id, kind, source_sale_id,
	base_amount_centavos, commission_pct_e4, commission_amount_centavos, status, available_at, created_at)
select $1::uuid, commission_id, partner_id, $1, $1, 'sale', commission_id, 10 * amount, 100000, amount, 'available', at, at` + numberedCommissions

	fillTransfersStatement = `
insert into transfers (tenant_id, partner_id, posted_at, kind, reference, commission_id, from_account, to_account, amount_centavos,
	pending_centavos, available_centavos, reserved_centavos, paid_centavos, debt_centavos)
select $1::uuid, partner_id, at, 'commission', commission_id, commission_id, 'expense', 'available', amount,
	0, 1000 * k + k * (k + 1) / 2, 0, 0, 0` + numberedCommissions

	// Each partner's last transfer says what the accounts are.
	fillAccountsStatement = `
insert into accounts (tenant_id, partner_id, available_centavos, posted_at)
select distinct on (partner_id) tenant_id, partner_id, available_centavos, posted_at
from transfers where tenant_id = $1 order by partner_id, posted_at desc`
)

// booksTables are those that pastBooks fills.
var booksTables = []string{"commissions", "transfers", "accounts"}

// pastBooks are so many transfers of a tenant, with their commissions and accounts.
// Transfers is a multiple of transfersEach.
func pastBooks(tenant uuid.UUID, transfers int) (all []loading) {
	since := time.Now().UTC().Truncate(time.Hour).AddDate(-1, 0, 0)
	for first := 1; first <= transfers; first += loadedAtOnce {
		rows := []any{tenant, int64(first), int64(min(first+loadedAtOnce-1, transfers)), since}
		all = append(all, loading{fillCommissionsStatement, rows}, loading{fillTransfersStatement, rows})
	}
	return append(all, loading{fillAccountsStatement, []any{tenant}})
}

// loadedPartner is any of those whom pastBooks gives so many transfers in all.
func loadedPartner(transfers int) func(*rand.Rand) uuid.UUID {
	return func(random *rand.Rand) (partner uuid.UUID) {
		number := 1 + random.Uint64N(uint64(transfers/transfersEach))
		for i := len(partner) - 1; number > 0; i-- {
			partner[i], number = byte(number), number>>8
		}
		return partner
	}
}

// loadedBalance is what each of them has, as the API shows it.
func loadedBalance() string {
	const k = transfersEach
	return fmt.Sprintf(`"available_brl":%d.%02d,`, (1000*k+k*(k+1)/2)/100, (1000*k+k*(k+1)/2)%100)
}
