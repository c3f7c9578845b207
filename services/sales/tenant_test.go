package sales

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestATenantIsMadeListedAndSuspended(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	made := f.admin("POST", "/admin/v1/tenants", `{"name":"Mercado"}`).want(201).shows("name", "Mercado", "status", "active")
	address := "/admin/v1/tenants/" + made.text("tenant_id")
	for _, status := range []string{"suspended", "suspended", "active", "active"} {
		f.admin("PATCH", address, `{"status":"`+status+`"}`).want(200).shows("status", status, "name", "Mercado", "created_at", made.text("created_at"))
	}
	if list := f.admin("GET", "/admin/v1/tenants", "").want(200); !strings.Contains(string(list.raw), string(made.raw)) {
		t.Errorf("%s is not in %s", made.raw, list.raw)
	}
	f.recordsNothing(func() {
		f.admin("POST", "/admin/v1/tenants", `{}`).invalid("/name required")
		f.admin("POST", "/admin/v1/tenants", `{"name":"x","status":"active"}`).invalid("/status unknown_member")
		f.admin("PATCH", address, `{}`).refused(400, "invalid_body")
		f.admin("PATCH", address, `{"status":"closed"}`).refused(400, "invalid_body")
		f.admin("PATCH", "/admin/v1/tenants/"+uuid.NewString(), `{"status":"active"}`).refused(404, "not_found")
		f.admin("PATCH", "/admin/v1/tenants/x", `{"status":"active"}`).refused(400, "invalid_parameter")
		f.admin("POST", "/admin/v1/tenants/"+uuid.NewString()+"/api-keys", `{"name":"x"}`).refused(404, "not_found")
	})
}

func TestARepeatedTenantIsTheFirstTenant(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	first := f.admin("POST", "/admin/v1/tenants", `{"name":"Mercado","external_ref":"crm-1"}`).want(201).shows("idempotent", "false")
	f.admin("PATCH", "/admin/v1/tenants/"+first.text("tenant_id"), `{"status":"suspended"}`).want(200)
	f.recordsNothing(func() {
		again := f.admin("POST", "/admin/v1/tenants", `{"name":"Mercado Novo","external_ref":"crm-1"}`).want(200).
			shows("idempotent", "true", "tenant_id", first.text("tenant_id"), "name", "Mercado", "status", "active")
		if got := again.Header.Get("Idempotency-Mismatch"); got != "name" {
			t.Errorf("Idempotency-Mismatch is %q", got)
		}
	})
}
