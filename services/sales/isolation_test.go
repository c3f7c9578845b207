package sales

import (
	"strings"
	"testing"
)

// identifiers are the path parameters of the service's addresses with, for each, what
// the owner has, by the tenant that asks.
func (f *fixture) identifiers() map[string]string {
	return map[string]string{
		"{campaign_id}": f.campaign, "{partner_id}": f.partner, "{plan_id}": f.plan, "{api_key_id}": f.firstKey(),
		"{sale_id}":       f.post("/api/v1/sales", f.sale("mine")).text("sale_id"),
		"{conversion_id}": f.post("/api/v1/conversions", f.conversion("mine")).text("conversion_id"),
	}
}

func TestAListShowsNothingOfAnotherTenant(t *testing.T) {
	t.Parallel()
	owner := start(t, nowhere)
	stranger := owner.stranger()
	theirs := owner.identifiers()
	theirs["code"], theirs["tenant"], theirs["prefix"] = owner.code, owner.tenant, owner.key[:12]
	for _, route := range owner.service.routes() {
		if route.Method != "GET" || strings.Contains(route.Pattern, "{") || strings.HasPrefix(route.Pattern, "/admin/") {
			continue
		}
		own := string(owner.get(route.Pattern).want(200).raw)
		shown := string(stranger.get(route.Pattern).want(200).raw)
		for what, id := range theirs {
			if strings.Contains(shown, id) {
				t.Errorf("%s shows another tenant's %s: %s", route.Pattern, what, shown)
			}
		}
		if own == shown || strings.Contains(own, `"data":[]`) {
			t.Errorf("%s shows its own tenant %s", route.Pattern, own)
		}
	}
	const none = `{"data":[],"next_cursor":null}`
	for _, filter := range []string{
		"/api/v1/sales?external_ref=mine", "/api/v1/sales?partner_id=" + owner.partner, "/api/v1/sales?campaign_id=" + owner.campaign,
		"/api/v1/conversions?external_ref=mine", "/api/v1/conversions?partner_id=" + owner.partner, "/api/v1/conversions?campaign_id=" + owner.campaign,
		"/api/v1/partners?referral_code=" + owner.code,
	} {
		if shown := string(stranger.get(filter).want(200).raw); shown != none {
			t.Errorf("%s shows %s", filter, shown)
		}
	}
	cursor := func() string {
		owner.post("/api/v1/sales", owner.sale("second")).want(201)
		return owner.get("/api/v1/sales?limit=1").want(200).text("next_cursor")
	}()
	stranger.get("/api/v1/sales?cursor="+cursor).refused(400, "invalid_parameter")
}

func TestARepeatKnowsOnlyTheReferencesOfItsOwnTenant(t *testing.T) {
	t.Parallel()
	owner := start(t, nowhere)
	stranger := owner.stranger()
	sale := owner.post("/api/v1/sales", owner.sale("order-1", "notes", `"private"`)).want(201)
	stranger.post("/api/v1/sales", owner.sale("order-1")).refused(404, "partner_not_found") // word for word what the owner said
	other := stranger.post("/api/v1/sales", stranger.sale("order-1")).want(201).shows("idempotent", "false")
	if other.text("sale_id") == sale.text("sale_id") {
		t.Error("two tenants have one sale")
	}
	conversion := owner.post("/api/v1/conversions", owner.conversion("lead-1", "notes", `"private"`)).want(201)
	stranger.post("/api/v1/conversions", owner.conversion("lead-1")).refused(404, "partner_not_found")
	other = stranger.post("/api/v1/conversions", stranger.conversion("lead-1")).want(201).shows("idempotent", "false")
	if other.text("conversion_id") == conversion.text("conversion_id") {
		t.Error("two tenants have one conversion")
	}
}
