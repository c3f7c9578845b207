package sales

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// list is one endpoint that lists, with what adds a row to it and returns its id.
type listing struct {
	path, id string
	operator bool
	add      func(n int) string
}

func (f *fixture) listings() map[string]listing {
	plans := "/api/v1/campaigns/" + f.campaign + "/plans"
	refunds := "/api/v1/sales/" + f.post("/api/v1/sales", f.sale("refunded", "sold_at", `"2025-06-01T00:00:00Z"`)).want(201).text("sale_id") + "/refunds"
	partner := func(n int) string {
		return f.post("/api/v1/partners", fmt.Sprintf(`{"name":"x","referral_code":"c%d","email":"a@example.com","status":"pending"}`, n)).want(201).text("partner_id")
	}
	return map[string]listing{
		"sales": {"/api/v1/sales", "sale_id", false, func(n int) string {
			return f.post("/api/v1/sales", f.sale(fmt.Sprint("order-", n))).want(201).text("sale_id")
		}},
		"filtered sales": {"/api/v1/sales?partner_id=" + f.partner + "&campaign_id=" + f.campaign, "sale_id", false, func(n int) string {
			return f.post("/api/v1/sales", f.sale(fmt.Sprint("filtered-", n))).want(201).text("sale_id")
		}},
		"conversions": {"/api/v1/conversions", "conversion_id", false, func(n int) string {
			return f.post("/api/v1/conversions", f.conversion(fmt.Sprint("lead-", n))).want(201).text("conversion_id")
		}},
		"conversions of a type": {"/api/v1/conversions?type=lead", "conversion_id", false, func(n int) string {
			return f.post("/api/v1/conversions", f.conversion(fmt.Sprint("conversions of a type ", n))).want(201).text("conversion_id")
		}},
		"conversions of a campaign": {"/api/v1/conversions?campaign_id=" + f.campaign + "&type=lead", "conversion_id", false, func(n int) string {
			return f.post("/api/v1/conversions", f.conversion(fmt.Sprint("conversions of a campaign ", n))).want(201).text("conversion_id")
		}},
		"conversions of a partner": {"/api/v1/conversions?partner_id=" + f.partner + "&type=lead", "conversion_id", false, func(n int) string {
			return f.post("/api/v1/conversions", f.conversion(fmt.Sprint("conversions of a partner ", n))).want(201).text("conversion_id")
		}},
		"sales of a span": {"/api/v1/sales?sold_from=2026-01-01T00:00:00Z&sold_to=2090-01-01T00:00:00Z", "sale_id", false, func(n int) string {
			return f.post("/api/v1/sales", f.sale(fmt.Sprint("spanned-", n))).want(201).text("sale_id")
		}},
		"sales of one moment": {"/api/v1/sales?sold_to=2026-01-01T00:00:00Z", "sale_id", false, func(n int) string {
			return f.post("/api/v1/sales", f.sale(fmt.Sprint("at once-", n), "sold_at", `"2025-12-31T23:59:59.999999Z"`)).want(201).text("sale_id")
		}},
		"refunds": {refunds, "refund_id", false, func(n int) string {
			return f.post(refunds, refundOf(fmt.Sprint("return-", n), "0.01")).want(201).text("refund_id")
		}},
		"partners":          {"/api/v1/partners", "partner_id", false, partner},
		"filtered partners": {"/api/v1/partners?status=pending&email=a@example.com", "partner_id", false, func(n int) string { return partner(1000 + n) }},
		"campaigns": {"/api/v1/campaigns", "campaign_id", false, func(int) string {
			return f.post("/api/v1/campaigns", `{"name":"x"}`).want(201).text("campaign_id")
		}},
		"plans": {plans, "plan_id", false, func(int) string {
			return f.post(plans, `{"name":"x","commission_pct":1}`).want(201).text("plan_id")
		}},
		"links": {"/api/v1/campaigns/" + f.campaign + "/partners", "partner_id", false, func(n int) string {
			id := partner(2000 + n)
			f.call("PUT", "/api/v1/campaigns/"+f.campaign+"/partners/"+id, "").want(204)
			return id
		}},
		"keys": {"/api/v1/api-keys", "api_key_id", false, func(int) string {
			return f.post("/api/v1/api-keys", `{"name":"x"}`).want(201).text("api_key_id")
		}},
		"tenants": {"/admin/v1/tenants", "tenant_id", true, func(int) string {
			return f.admin("POST", "/admin/v1/tenants", `{"name":"x"}`).want(201).text("tenant_id")
		}},
	}
}

// page asks for a list with these parameters added, given as name, value, name, value.
func (l listing) page(f *fixture, parameters ...string) *response {
	f.t.Helper()
	path, separator := l.path, "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for i := 0; i < len(parameters); i += 2 {
		path += separator + parameters[i] + "=" + url.QueryEscape(parameters[i+1])
		separator = "&"
	}
	if l.operator {
		return f.admin("GET", path, "")
	}
	return f.get(path)
}

func TestAWalkThroughAListSeesEachRowOnceWhileRowsAreAdded(t *testing.T) {
	t.Parallel()
	const before, limit = 60, "7"
	f := start(t, nowhere)
	for name, list := range f.listings() {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			var added []string
			for n := range before {
				added = append(added, list.add(n))
			}
			slices.Reverse(added)
			var seen []string
			parameters := []string{"limit", limit}
			for n := before; ; n++ {
				page := list.page(f, parameters...).want(200).object()
				rows := page["data"].([]any)
				for _, row := range rows {
					seen = append(seen, row.(map[string]any)[list.id].(string))
				}
				if page["next_cursor"] == nil {
					break
				}
				if fmt.Sprint(len(rows)) != limit {
					t.Errorf("a page has %d rows, want %s", len(rows), limit)
				}
				list.add(n)
				parameters = []string{"limit", limit, "cursor", page["next_cursor"].(string)}
			}
			if len(seen) < before || !slices.Equal(seen[:before], added) {
				t.Errorf("added %v, seen %v", added, seen)
			}
			if slices.Sort(seen); len(slices.Compact(seen)) != len(seen) {
				t.Error("a row was seen twice")
			}
		})
	}
}

func TestAListIsAskedForInItsOwnTerms(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	lists := f.listings()
	for n := range 30 {
		lists["campaigns"].add(n)
	}
	foreign := lists["campaigns"].page(f, "limit", "1").want(200).text("next_cursor")
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			for _, limit := range []string{"0", "-1", "101", "x", "", "1.0", "99999999999999999999"} {
				list.page(f, "limit", limit).refused(400, "invalid_parameter")
			}
			for _, limit := range []string{"1", "100"} {
				list.page(f, "limit", limit).want(200)
			}
			for _, cursor := range []string{"", "x", "%", "AAAA", strings.Repeat("A", 27), foreign[:len(foreign)-1], "B" + foreign[1:], foreign + "=", f.campaign} {
				list.page(f, "cursor", cursor).refused(400, "invalid_parameter")
			}
			if name != "campaigns" {
				list.page(f, "cursor", foreign).refused(400, "invalid_parameter")
			}
			list.page(f, "offset", "1").refused(400, "invalid_parameter")
			list.page(f, "Limit", "1").refused(400, "invalid_parameter")
			list.page(f, "limit", "1", "limit", "1").refused(400, "invalid_parameter")
		})
	}
	page := f.get("/api/v1/campaigns").want(200)
	if n := len(page.object()["data"].([]any)); n != 25 {
		t.Errorf("without a limit a page has %d rows, want 25", n)
	}
	for _, query := range []string{"?cursor=%zz", "?limit=1;cursor=x", "?limit=%"} {
		f.get("/api/v1/campaigns"+query).refused(400, "invalid_parameter")
	}
}

func TestAFilterFindsExactlyWhatItNames(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	rui := f.post("/api/v1/partners", `{"name":"Rui","referral_code":"rui","email":"rui@example.com","status":"pending"}`).want(201).text("partner_id")
	sale := f.post("/api/v1/sales", f.sale("a b+c%")).want(201).text("sale_id")
	other := f.post("/api/v1/sales", f.sale("A B+C%")).want(201).text("sale_id")
	for query, want := range map[string][]string{
		"/api/v1/partners?referral_code=rui":                              {rui},
		"/api/v1/partners?referral_code=Rui":                              {},
		"/api/v1/partners?email=rui%40example.com":                        {rui},
		"/api/v1/partners?status=active":                                  {f.partner},
		"/api/v1/partners?status=active&referral_code=rui":                {},
		"/api/v1/partners?status=banned":                                  {},
		"/api/v1/sales?external_ref=" + url.QueryEscape("a b+c%"):         {sale},
		"/api/v1/sales?external_ref=nothing":                              {},
		"/api/v1/sales?partner_id=" + f.partner:                           {other, sale},
		"/api/v1/sales?partner_id=" + rui:                                 {},
		"/api/v1/sales?campaign_id=" + strings.ToUpper(f.campaign):        {other, sale},
		"/api/v1/sales?campaign_id=" + f.plan:                             {},
		"/api/v1/sales?external_ref=A%20B%2BC%25&partner_id=" + f.partner: {other},
	} {
		var found []string
		list := f.get(query).want(200).object()
		for _, row := range list["data"].([]any) {
			id, ok := row.(map[string]any)["sale_id"].(string)
			if !ok {
				id = row.(map[string]any)["partner_id"].(string)
			}
			found = append(found, id)
		}
		if !slices.Equal(found, want) || list["next_cursor"] != nil {
			t.Errorf("%s finds %v and then %v, want %v", query, found, list["next_cursor"], want)
		}
	}
	for _, query := range []string{
		"/api/v1/partners?status=asleep", "/api/v1/partners?status=", "/api/v1/sales?partner_id=x", "/api/v1/sales?campaign_id=",
		"/api/v1/sales?external_ref=%00", "/api/v1/sales?external_ref=%ff", "/api/v1/partners?referral_code=a%00b", "/api/v1/partners?email=%c0%af",
	} {
		f.get(query).refused(400, "invalid_parameter")
	}
}
