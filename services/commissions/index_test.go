package commissions

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

func TestEveryFilterOfTheCommissionsNarrowsTheList(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant := newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	start := f.now.Truncate(time.Second)
	partners, campaigns := []uuid.UUID{newID(), newID()}, []uuid.UUID{newID(), newID()}
	type made struct {
		id, sale, partner, campaign, status string
		at                                  time.Time
	}
	var all []made
	for i := range 24 {
		at := start.Add(time.Duration(i/2) * time.Second) // two at each instant
		sold := sale(tenant, at, soldBy(partners[i%2]), heldFor(i%3), func(s *event.SaleRecorded) { s.CampaignID = campaigns[i/4%2] })
		f.mustEarn(sold, sale(newID(), at, soldBy(partners[i%2])))
		status := statusAvailable
		if i%3 > 0 {
			status = statusPending
		}
		if i%5 == 0 {
			f.mustReverse(refundOf(sold, 32_42))
			status = statusReversed
		}
		d := sold.Data
		all = append(all, made{d.CommissionID.String(), d.SaleID.String(), d.PartnerID.String(), d.CampaignID.String(), status, at})
	}
	slices.SortFunc(all, func(a, b made) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(b.id, a.id)
	})
	choices := map[string][]string{
		"partner_id": {partners[0].String(), partners[1].String()}, "campaign_id": {campaigns[0].String(), campaigns[1].String()},
		"status": {statusPending, statusAvailable, statusReversed, statusPaid}, "source_sale_id": {all[3].sale, all[10].sale},
		"created_from": {start.Format(time.RFC3339), start.Add(5 * time.Second).Format(time.RFC3339)},
		"created_to":   {start.Add(9 * time.Second).Format(time.RFC3339), start.Add(2 * time.Second).Format(time.RFC3339)},
	}
	names := slices.Sorted(maps.Keys(choices))
	for set := range 1 << len(names) { // every combination of filters
		query := url.Values{"limit": {"5"}}
		for i, name := range names {
			if set>>i&1 == 1 {
				query.Set(name, choices[name][rand.IntN(len(choices[name]))])
			}
		}
		asks := func(name, value string) bool { return !query.Has(name) || query.Get(name) == value }
		var want, got []string
		for _, m := range all {
			at := m.at.Format(time.RFC3339)
			if asks("partner_id", m.partner) && asks("campaign_id", m.campaign) && asks("status", m.status) && asks("source_sale_id", m.sale) &&
				(!query.Has("created_from") || at >= query.Get("created_from")) && (!query.Has("created_to") || at < query.Get("created_to")) {
				want = append(want, m.id)
			}
		}
		for pages := 0; pages < 10; pages++ {
			ids, next := f.list(key, "?"+query.Encode())
			for _, id := range ids {
				got = append(got, id.String())
			}
			if next == nil {
				break
			}
			query.Set("cursor", *next)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", query.Encode(), got, want)
		}
	}
}

// Half of the commissions are a large partner's in a large campaign, the others spread
// over a hundred partners and campaigns, one in ten is pending, one in a hundred
// reversed, and a second tenant has as many again.
const manyCommissionsStatement = `
insert into commissions (tenant_id, commission_id, partner_id, campaign_id, plan_id, kind, source_sale_id, base_amount_centavos, commission_pct_e4,
	commission_amount_centavos, status, available_at, created_at)
select ('00000000-0000-7000-8000-00000000000' || tenant)::uuid, lpad(to_hex(n), 32, '0')::uuid,
	lpad(to_hex(case when n % 2 = 0 then 1 else n % 100 end), 32, '0')::uuid, lpad(to_hex(case when n % 2 = 0 then 1 else n / 100 % 100 end), 32, '0')::uuid,
	lpad('1', 32, '0')::uuid, 'sale', lpad(to_hex(n), 32, '0')::uuid, 10050, 50000, 503,
	case when n % 100 = 99 then 'reversed' when n % 10 = 1 then 'pending' else 'available' end, at, at
from generate_series(1, $1::bigint) as n, generate_series(1, 2) as tenant,
	lateral (select timestamptz '2026-01-01' + n * interval '1 minute' as at) as earned`

const manyAccountsStatement = `
insert into accounts (tenant_id, partner_id)
select ('00000000-0000-7000-8000-00000000000' || tenant)::uuid, lpad(to_hex(n), 32, '0')::uuid
from generate_series(1, $1::bigint) as n, generate_series(1, 2) as tenant`

// A large partner has half of the transfers.
const manyTransfersStatement = `
insert into transfers
select ('00000000-0000-7000-8000-00000000000' || tenant)::uuid, lpad(to_hex(case when n % 2 = 0 then 1 else n % 100 end), 32, '0')::uuid,
	timestamptz '2026-01-01' + n * interval '1 minute', 'commission', lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid, 'expense', 'available', 1, 0, 0, 0, 0, 0
from generate_series(1, $1::bigint) as n, generate_series(1, 2) as tenant`

// A large partner has half of the withdrawals; most are paid, one in ten is approved, one
// in a hundred failed.
const manyWithdrawalsStatement = `
insert into withdrawals (tenant_id, withdrawal_id, external_ref, partner_id, amount_centavos, pix_key_type, pix_key, pix_key_masked, status, reason, paid_at, requested_at, changed_at)
select ('00000000-0000-7000-8000-00000000000' || tenant)::uuid, lpad(to_hex(n), 32, '0')::uuid, 'ref ' || n,
	lpad(to_hex(case when n % 2 = 0 then 1 else n % 100 end), 32, '0')::uuid, 100, 'cpf', 'sealed', '***', status,
	case when status = 'failed' then 'x' end, case when status = 'paid' then at end, at, at
from generate_series(1, $1::bigint) as n, generate_series(1, 2) as tenant,
	lateral (select timestamptz '2026-01-01' + n * interval '1 minute' as at,
		case when n % 100 = 99 then 'failed' when n % 10 = 1 then 'approved' else 'paid' end as status) as asked`

// many fills tables by the statements with many rows of two tenants and returns a
// connection.
func (f *fixture) many(rows int, statements ...string) *pgx.Conn {
	f.t.Helper()
	conn, err := f.deps.Pool.Acquire(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(conn.Release)
	for _, statement := range statements {
		if _, err := conn.Exec(f.t.Context(), statement, rows); err != nil {
			f.t.Fatal(err)
		}
	}
	if _, err := conn.Exec(f.t.Context(), `analyze`); err != nil {
		f.t.Fatal(err)
	}
	return conn.Conn()
}

func ordinal(n int) *uuid.UUID {
	return new(uuid.MustParse(fmt.Sprintf("00000000-0000-0000-0000-%012x", n)))
}
func minute(n int) *time.Time { return new(time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)) }

var firstTenant = uuid.MustParse("00000000-0000-7000-8000-000000000001")

func TestEveryFilterOfTheCommissionsIsAWalkAlongOneIndex(t *testing.T) {
	t.Parallel()
	const limit = 26
	f := prepare(t, nowhere).wire()
	conn := f.many(30_000, manyCommissionsStatement)
	for name, row := range map[string]struct {
		filter commissionFilter
		index  string
		found  int
		picked bool // from rows that another of its filters admits
	}{
		"none":                                {commissionFilter{}, "commissions_of_tenant", limit, false},
		"a span":                              {commissionFilter{createdFrom: minute(5000), createdTo: minute(5010)}, "commissions_of_tenant", 10, false},
		"a long span, long ago":               {commissionFilter{createdFrom: minute(10), createdTo: minute(20_000)}, "commissions_of_tenant", limit, false},
		"a large partner":                     {commissionFilter{partnerID: ordinal(1)}, "commissions_of_partner", limit, false},
		"a small partner":                     {commissionFilter{partnerID: ordinal(7)}, "commissions_of_partner", limit, false},
		"a partner who earned nothing":        {commissionFilter{partnerID: ordinal(5000)}, "commissions_of_partner", 0, false},
		"a large partner and a span":          {commissionFilter{partnerID: ordinal(1), createdFrom: minute(10), createdTo: minute(30)}, "commissions_of_partner", 10, false},
		"a large campaign":                    {commissionFilter{campaignID: ordinal(1)}, "commissions_of_campaign", limit, false},
		"a small campaign and a span":         {commissionFilter{campaignID: ordinal(7), createdFrom: minute(10), createdTo: minute(50_000)}, "commissions_of_campaign", limit, false},
		"a common status":                     {commissionFilter{status: new(statusAvailable)}, "commissions_", limit, true},
		"a rare status":                       {commissionFilter{status: new(statusReversed)}, "commissions_of_status", limit, false},
		"a status that none has":              {commissionFilter{status: new(statusPaid)}, "commissions_of_status", 0, false},
		"a status and a span":                 {commissionFilter{status: new(statusPending), createdFrom: minute(100), createdTo: minute(200)}, "commissions_of_status", 10, false},
		"a large partner in a large campaign": {commissionFilter{partnerID: ordinal(1), campaignID: ordinal(1)}, "commissions_", limit, true},
		"a partner and a status":              {commissionFilter{partnerID: ordinal(1), status: new(statusAvailable)}, "commissions_", limit, true},
		"a campaign and a status":             {commissionFilter{campaignID: ordinal(1), status: new(statusAvailable)}, "commissions_", limit, true},
		"a sale":                              {commissionFilter{saleID: ordinal(7)}, "commissions_source_sale_key", 1, false},
		"a sale and everything": {commissionFilter{saleID: ordinal(7), partnerID: ordinal(7), campaignID: ordinal(0), status: new(statusAvailable),
			createdFrom: minute(5), createdTo: minute(50)}, "commissions_", 1, true},
	} {
		for _, page := range []string{"first", "later"} {
			t.Run(name+", the "+page+" page", func(t *testing.T) {
				arguments := row.filter.arguments()
				arguments["tenant_id"], arguments["limit"] = &firstTenant, limit
				if page == "later" {
					arguments["after"], arguments["after_created_at"] = ordinal(20_000), minute(20_000)
				}
				most := row.found
				if page == "later" {
					most = -1
				}
				testkit.WalksAlong(t, conn, row.filter.query(), arguments, row.index, most, row.picked)
			})
		}
	}
}

func TestBalancesAndStatementsAreWalksAlongOneIndex(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	conn := f.many(30_000, manyAccountsStatement, manyTransfersStatement)
	testkit.WalksAlong(t, conn, listBalancesQuery, pgx.NamedArgs{"tenant_id": &firstTenant, "after": ordinal(20_000), "limit": 26}, "accounts_pkey", 26, false)
	for name, query := range map[string]string{"lines": linesQuery, "opening": lastBeforeQuery} {
		named := pgx.NamedArgs{"p1": &firstTenant, "p2": ordinal(1), "p3": minute(20_000), "p4": minute(29_000), "p5": 1000}
		for n := 5; n > 0; n-- {
			query = strings.ReplaceAll(query, "$"+strconv.Itoa(n), "@p"+strconv.Itoa(n))
		}
		t.Run(name, func(t *testing.T) { testkit.WalksAlong(t, conn, query, named, "transfers_pkey", -1, false) })
	}
}

func TestEveryFilterOfTheWithdrawalsIsAWalkAlongOneIndex(t *testing.T) {
	t.Parallel()
	const limit = 26
	f := prepare(t, nowhere).wire()
	conn := f.many(30_000, manyWithdrawalsStatement)
	for name, row := range map[string]struct {
		filter withdrawalFilter
		index  string
		found  int
		picked bool // from rows that another of its filters admits
	}{
		"none":                   {withdrawalFilter{}, "withdrawals_of_tenant", limit, false},
		"a span":                 {withdrawalFilter{createdFrom: minute(5000), createdTo: minute(5010)}, "withdrawals_of_tenant", 10, false},
		"a large partner":        {withdrawalFilter{partnerID: ordinal(1)}, "withdrawals_of_partner", limit, false},
		"a small partner":        {withdrawalFilter{partnerID: ordinal(7)}, "withdrawals_of_partner", limit, false},
		"a partner and a status": {withdrawalFilter{partnerID: ordinal(1), status: new(statusPaid)}, "withdrawals_of_", limit, true},
		"a rare status":          {withdrawalFilter{status: new(statusFailed)}, "withdrawals_of_status", limit, false},
		"a status that none has": {withdrawalFilter{status: new(statusRejected)}, "withdrawals_of_status", 0, false},
		"a reference":            {withdrawalFilter{externalRef: new("ref 7")}, "withdrawals_external_ref_key", 1, false},
	} {
		for _, page := range []string{"first", "later"} {
			t.Run(name+", the "+page+" page", func(t *testing.T) {
				arguments := row.filter.arguments()
				arguments["tenant_id"], arguments["limit"] = &firstTenant, limit
				most := row.found
				if page == "later" {
					arguments["after"], arguments["after_requested_at"], most = ordinal(20_000), minute(20_000), -1
				}
				testkit.WalksAlong(t, conn, row.filter.query(), arguments, row.index, most, row.picked)
			})
		}
	}
}

// What a payment covers is looked up among the commissions that are available alone,
// however many a partner has that are paid already.
func TestTheOldestCommissionsThatAreAvailableAreAWalkAlongTheirOwnIndex(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	conn := f.many(30_000, manyCommissionsStatement)
	const oldest = `
select commission_id, commission_amount_centavos - reversed_centavos from commissions c where c.tenant_id = @tenant_id and c.partner_id = @partner_id and c.status = 'available'
order by created_at, commission_id limit @limit`
	if !strings.Contains(coverStatement, "c.status = 'available'\n\t\torder by created_at, commission_id limit") {
		t.Fatal("commissions are covered in another way than is looked at here")
	}
	testkit.WalksAlong(t, conn, oldest, pgx.NamedArgs{"tenant_id": &firstTenant, "partner_id": ordinal(1), "limit": 100}, "commissions_to_cover", 100, false)
}
