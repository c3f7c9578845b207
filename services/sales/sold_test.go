package sales

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/testkit"
)

// walked are the ids of the sales that the query finds, over all of its pages.
func (f *fixture) walked(query url.Values) (ids []string) {
	f.t.Helper()
	for {
		page := f.get("/api/v1/sales?" + query.Encode()).want(200).object()
		for _, row := range page["data"].([]any) {
			ids = append(ids, row.(map[string]any)["sale_id"].(string))
		}
		if page["next_cursor"] == nil {
			return ids
		}
		query.Set("cursor", page["next_cursor"].(string))
	}
}

func TestSalesAreListedInTheOrderInWhichTheyWereSold(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	at := func(when string) string {
		id, _ := f.sell("sold "+when+" "+uuid.NewString(), "sold_at", quoted(when))
		return id
	}
	march, january, february, sameFebruary := at("2026-03-01T00:00:00Z"), at("2026-01-01T00:00:00-03:00"), at("2026-02-01T00:00:00Z"), at("2026-02-01T01:00:00+01:00")
	now, _ := f.sell("sold now")
	last := at("2026-03-31T23:59:59.999999Z")
	for _, row := range []struct {
		from, to string
		want     []string
	}{
		{"", "", []string{now, last, march, sameFebruary, february, january}},
		{"2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", []string{sameFebruary, february}},
		{"2026-02-01T00:00:00.000001Z", "2026-03-01T00:00:00.000001Z", []string{march}},
		{"2026-03-01T00:00:00Z", "2026-03-31T23:59:59.999999Z", []string{march}},
		{"2026-03-31T20:59:59.999999-03:00", "", []string{now, last}},
		{"", "2026-02-01T00:00:00Z", []string{january}},
		{"", "2026-01-01T00:00:00-0300", nil},
		{"2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", nil},
		{"2026-03-01T00:00:00Z", "2026-02-01T00:00:00Z", nil},
		{"2090-01-01T00:00:00Z", "", nil},
	} {
		for _, limit := range []string{"1", "2", "100"} {
			query := url.Values{"limit": {limit}, "partner_id": {f.partner}}
			if row.from != "" {
				query.Set("sold_from", row.from)
			}
			if row.to != "" {
				query.Set("sold_to", row.to)
			}
			for _, without := range []string{"", "partner_id"} {
				query.Del(without)
				query.Del("cursor")
				if got := f.walked(query); !slices.Equal(got, row.want) {
					t.Errorf("%s lists %v, want %v", query.Encode(), got, row.want)
				}
			}
		}
	}
	for _, bad := range []string{"2026-03-01", "yesterday", "", "2026-03-01T00:00:00", "2026-02-30T00:00:00Z", "1999-12-31T23:59:59Z", "2026-03-01T00:00:00+01:00"} { // a plus sign is a space
		for _, name := range []string{"sold_from", "sold_to"} {
			f.get("/api/v1/sales?"+name+"="+bad).refused(400, "invalid_parameter")
		}
	}
}

func TestEveryCombinationOfFiltersFindsExactlyWhatItNames(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	first := *f
	f.code = "rui"
	f.fill() // another partner in another campaign
	f.call("PUT", "/api/v1/campaigns/"+f.campaign+"/partners/"+first.partner, "").want(204)
	type made struct{ id, ref, partner, campaign, soldAt string }
	var all []made
	for month := range 4 {
		for seller, by := range map[string]struct{ code, partner, campaign, plan string }{
			"ana": {first.code, first.partner, first.campaign, first.plan},
			"rui": {f.code, f.partner, f.campaign, f.plan}, "ana there": {first.code, first.partner, f.campaign, f.plan},
		} {
			m := made{"", fmt.Sprint(seller, month), by.partner, by.campaign, fmt.Sprintf("2026-0%d-01T00:00:00Z", 1+month)}
			m.id, _ = f.sell(m.ref, "referral_code", quoted(by.code), "campaign_id", quoted(by.campaign), "plan_id", quoted(by.plan), "sold_at", quoted(m.soldAt))
			all = append(all, m)
		}
	}
	choices := map[string][]string{
		"external_ref": {"", "ana2", "rui0"}, "partner_id": {"", first.partner, f.partner}, "campaign_id": {"", first.campaign, f.campaign},
		"sold_from": {"", "2026-02-01T00:00:00Z"}, "sold_to": {"", "2026-04-01T00:00:00Z"},
	}
	queries := []url.Values{{"limit": {"2"}}}
	for name, values := range choices {
		var more []url.Values
		for _, query := range queries {
			for _, value := range values {
				next := url.Values{}
				for known, text := range query {
					next[known] = text
				}
				if value != "" {
					next.Set(name, value)
				}
				more = append(more, next)
			}
		}
		queries = more
	}
	for _, query := range queries {
		asks := func(name, value string) bool { return !query.Has(name) || query.Get(name) == value }
		var want []string
		for _, m := range all {
			if asks("external_ref", m.ref) && asks("partner_id", m.partner) && asks("campaign_id", m.campaign) &&
				(!query.Has("sold_from") || m.soldAt >= query.Get("sold_from")) && (!query.Has("sold_to") || m.soldAt < query.Get("sold_to")) {
				want = append(want, m.id)
			}
		}
		slices.Reverse(want)
		if got := f.walked(query); !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", query.Encode(), got, want)
		}
	}
}

// Half of the sales are a large partner's in a large campaign, the others spread over a
// hundred partners and campaigns, and a second tenant has as many again.
const manySalesStatement = `
insert into sales (tenant_id, sale_id, external_ref, referral_code, partner_id, campaign_id, plan_id, amount_centavos,
                   commission_id, commission_pct_e4, commission_centavos, hold_days, sold_at, created_at)
select ('00000000-0000-7000-8000-00000000000' || tenant)::uuid, lpad(to_hex(n), 32, '0')::uuid, 'order-' || n, 'ana.souza',
       lpad(to_hex(case when n % 2 = 0 then 1 else n % 100 end), 32, '0')::uuid, lpad(to_hex(case when n % 2 = 0 then 1 else n / 100 % 100 end), 32, '0')::uuid,
       lpad('1', 32, '0')::uuid, 10050, lpad(to_hex(n), 32, '0')::uuid, 50000, 503, 0, at, at
from generate_series(1, $1::bigint) as n, generate_series(1, 2) as tenant,
     lateral (select timestamptz '2026-01-01' + n * interval '1 minute' as at) as sold`

func TestEveryFilterOfTheSalesIsAWalkAlongOneIndex(t *testing.T) {
	t.Parallel()
	const rows, limit = 30_000, 26
	f := start(t, nowhere)
	conn, err := f.deps.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), manySalesStatement, rows); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `analyze sales`); err != nil {
		t.Fatal(err)
	}
	id := func(n int) *uuid.UUID {
		id := uuid.MustParse(fmt.Sprintf("00000000-0000-0000-0000-%012x", n))
		return &id
	}
	at := func(n int) *time.Time {
		at := time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)
		return &at
	}
	ref, tenant := "order-7", uuid.MustParse("00000000-0000-7000-8000-000000000001")
	for name, row := range map[string]struct {
		filter saleFilter
		index  string
		found  int
	}{
		"none":                                {saleFilter{}, "sales_sold", limit},
		"a span":                              {saleFilter{soldFrom: at(5000), soldUntil: at(5010)}, "sales_sold", 10},
		"a long span, long ago":               {saleFilter{soldFrom: at(10), soldUntil: at(20_000)}, "sales_sold", limit},
		"an open span":                        {saleFilter{soldUntil: at(300)}, "sales_sold", limit},
		"a large partner":                     {saleFilter{partnerID: id(1)}, "sales_partner", limit},
		"a small partner":                     {saleFilter{partnerID: id(7)}, "sales_partner", limit},
		"a partner who sold nothing":          {saleFilter{partnerID: id(5000)}, "sales_partner", 0},
		"a large partner and a span":          {saleFilter{partnerID: id(1), soldFrom: at(10), soldUntil: at(30)}, "sales_partner", 10},
		"a small partner and a span":          {saleFilter{partnerID: id(7), soldFrom: at(10), soldUntil: at(20_000)}, "sales_partner", limit},
		"a large campaign":                    {saleFilter{campaignID: id(1)}, "sales_campaign", limit},
		"a small campaign":                    {saleFilter{campaignID: id(7)}, "sales_campaign", limit},
		"a small campaign and a span":         {saleFilter{campaignID: id(7), soldFrom: at(10), soldUntil: at(50_000)}, "sales_campaign", limit},
		"a large partner in a large campaign": {saleFilter{partnerID: id(1), campaignID: id(1)}, "sales_", limit},
		"a small partner in a small campaign": {saleFilter{partnerID: id(7), campaignID: id(7)}, "sales_", 3},
		"partner, campaign and span":          {saleFilter{partnerID: id(1), campaignID: id(1), soldFrom: at(10), soldUntil: at(30)}, "sales_", 10},
		"a reference":                         {saleFilter{externalRef: &ref}, "sales_external_ref", 1},
		"a reference and everything":          {saleFilter{externalRef: &ref, partnerID: id(7), campaignID: id(0), soldFrom: at(5), soldUntil: at(50)}, "sales_", 1},
	} {
		for _, page := range []string{"first", "later"} {
			t.Run(name+", the "+page+" page", func(t *testing.T) {
				arguments := row.filter.arguments()
				arguments["tenant_id"], arguments["limit"] = &tenant, limit
				found := row.found
				if page == "later" {
					found = -1
					arguments["after"], arguments["after_sold_at"] = id(20_000), at(20_000)
				}
				picks := row.filter.partnerID != nil && row.filter.campaignID != nil
				testkit.WalksAlong(t, conn.Conn(), row.filter.query(), arguments, row.index, found, picks)
			})
		}
	}
}
