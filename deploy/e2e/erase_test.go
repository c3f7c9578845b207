package e2e

import (
	"fmt"
	"strings"
	"testing"

	"partilha.dev/deploy/e2e/stage"

	"github.com/jackc/pgx/v5"
)

// everyTableQuery names the tables that hold rows; partitions are read with their table.
const everyTableQuery = `
select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and c.relkind in ('r', 'p') and not c.relispartition`

// mentions are the tables of all four databases, as service.table, that have a row in
// which a text occurs, in a column of whatever type, with how many such rows there are.
func mentions(t testing.TB, p *stage.Platform, text string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, service := range stage.Services {
		tables := p.Query(t, service, everyTableQuery)
		if len(tables) < 5 {
			t.Fatalf("%s has only the tables %v", service, tables)
		}
		for _, table := range tables {
			if n := rowsWith(t, p, service, table, text); n > 0 {
				found[service+"."+table] = n
			}
		}
	}
	return found
}

// rowsWith counts the rows of a table in which a text occurs; of a column of bytes, such
// as the body of an event, as the bytes that it is written in.
func rowsWith(t testing.TB, p *stage.Platform, service, table, text string) (n int) {
	t.Helper()
	rows, err := p.Pools[service].Query(t.Context(), "select * from "+table)
	if err != nil {
		t.Fatal(err)
	}
	err = forEachRow(rows, func(values [][]byte) {
		for _, value := range values {
			if strings.Contains(string(value), text) {
				n++
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// forEachRow gives the rows as the server sends them: text, JSON and bytes as they are.
func forEachRow(rows pgx.Rows, see func(values [][]byte)) error {
	defer rows.Close()
	for rows.Next() {
		see(rows.RawValues())
	}
	return rows.Err()
}

func TestAnErasedCustomerIsMentionedInNoDatabaseAndTheBooksStay(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop, other := stage.OpenShop(t, p), stage.OpenShop(t, p)
	const maria, joana = "maria-51@example.com", "joana-7@example.com"
	about := func(ref, customer string) stage.Object {
		sale := shop.Report(ref)
		sale["customer_ref"], sale["notes"] = customer, "deliver to "+customer
		return sale
	}
	receipts := map[string]stage.Receipt{}
	report := func(s stage.Caller, ref, customer string) {
		t.Helper()
		var r stage.Receipt
		sale := s.Must(t, 201, "POST", "/api/v1/sales", about(ref, customer))
		sale.Into(t, &r)
		receipts[ref] = r
		s.Must(t, 201, "POST", "/api/v1/sales/"+r.SaleID+"/refunds",
			stage.Object{"external_ref": "back-" + ref, "amount_brl": 50, "reason": "returned by " + customer})
		s.Must(t, 201, "POST", "/api/v1/conversions", stage.Object{"referral_code": stage.ReferralCode, "campaign_id": shop.CampaignID,
			"external_ref": "lead-" + ref, "customer_ref": customer, "notes": "of " + customer})
	}
	for i := range 3 {
		report(shop.Caller, fmt.Sprintf("maria-%d", i), maria)
		report(shop.Caller, fmt.Sprintf("joana-%d", i), joana)
	}
	others := other.Report("order-1")
	others["customer_ref"] = maria
	other.Must(t, 201, "POST", "/api/v1/sales", others)
	b := stage.Books{Platform: p, Shop: shop}
	const each = 6
	b.Await(t, "commissions", "every commission and every reversal is booked", 2*each, "select count(*)::text from transfers where tenant_id = $1")
	b.Await(t, "goals", "every sale, refund and conversion is a fact", 3*each, "select count(*)::text from facts where tenant_id = $1")
	b.Await(t, "webhooks", "the feed tells of all of it", 5*each+2, "select count(*)::text from events where tenant_id = $1")
	b.Await(t, "webhooks", "no delivery is under way", 0, "select count(*)::text from pending where tenant_id = $1")

	before := mentions(t, p, maria)
	if want := map[string]int{"sales.sales": 3 + 1, "sales.refunds": 3, "sales.conversions": 3}; fmt.Sprint(before) != fmt.Sprint(want) {
		t.Errorf("before the erasure the customer is mentioned in %v, want %v", before, want)
	}
	untouched := mentions(t, p, joana)
	totals := totalsOf(t, shop)
	sales := p.Processes["sales"]
	if said := sales.MustRun("customer", "erase", "--tenant", shop.TenantID, "--ref", maria); said != "erased of 3 sales, 3 conversions and 3 refunds" {
		t.Errorf("customer erase says %q", said)
	}
	if left := mentions(t, p, maria); fmt.Sprint(left) != fmt.Sprint(map[string]int{"sales.sales": 1}) {
		t.Errorf("after the erasure the customer is mentioned in %v, want the other tenant's sale alone", left)
	}
	if said := sales.MustRun("customer", "erase", "--tenant", other.TenantID, "--ref", maria); said != "erased of 1 sales, 0 conversions and 0 refunds" {
		t.Errorf("customer erase says %q", said)
	}
	if left := mentions(t, p, maria); len(left) != 0 {
		t.Errorf("after both erasures the customer is mentioned in %v", left)
	}
	if now := mentions(t, p, joana); fmt.Sprint(now) != fmt.Sprint(untouched) {
		t.Errorf("another customer was mentioned in %v and is in %v", untouched, now)
	}
	if now := totalsOf(t, shop); now != totals {
		t.Errorf("the totals were\n%s\nand are\n%s", totals, now)
	}
	b.Verify(t)
	b.CompareCommissions(t, receipts)
	again := shop.Must(t, 200, "POST", "/api/v1/sales", about("maria-0", maria))
	if again.Text("sale_id") != receipts["maria-0"].SaleID || again.Header.Get("Idempotency-Mismatch") != "" {
		t.Errorf("a repeat is answered %s and told of %q", again, again.Header.Get("Idempotency-Mismatch"))
	}
	shop.Receiver.AssertOnce(t)
}

// totalsOf is what a tenant sees of its sums.
func totalsOf(t testing.TB, s *stage.Shop) string {
	t.Helper()
	var told strings.Builder
	for _, path := range []string{"/api/v1/balances/" + s.PartnerID, "/api/v1/goals/" + s.GoalID + "/progress", "/api/v1/statements/" + s.PartnerID, "/api/v1/events?limit=100"} {
		fmt.Fprintln(&told, s.Must(t, 200, "GET", path, nil))
	}
	return told.String()
}
