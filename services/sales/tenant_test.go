package sales

import (
	"slices"
	"strings"
	"testing"
	"time"

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

// Dead keys are kept for ever. Were all of them told of again, one tenant's suspension would
// hold up another's revocation.
func TestASuspensionIsToldOfTheKeysThatStillWorkAlone(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for _, name := range []string{"revoked", "expired", "expires later", "unlimited"} {
		made := f.post("/api/v1/api-keys", `{"name":"`+name+`","expires_at":"2090-01-01T00:00:00Z"}`).want(201)
		switch name {
		case "revoked":
			f.call("DELETE", "/api/v1/api-keys/"+made.text("api_key_id"), "").want(204)
		case "expired", "unlimited":
			expires := map[string]any{"expired": time.Now().Add(-time.Hour), "unlimited": nil}[name]
			if _, err := f.deps.Pool.Exec(t.Context(), `update api_keys set expires_at = $2 where api_key_id = $1`, made.text("api_key_id"), expires); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := f.stranger()
	for _, status := range []string{"suspended", "active"} {
		keys, err := f.service.keysSince(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		f.admin("PATCH", "/admin/v1/tenants/"+f.tenant, `{"status":"`+status+`"}`).want(200)
		told, err := f.service.keysSince(t.Context(), keys[len(keys)-1].Version)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, key := range told {
			if key.Suspended != (status == "suspended") || key.ID == other.key[4:12] {
				t.Errorf("%s: told of %+v", status, key)
			}
			var name string
			if err := f.deps.Pool.QueryRow(t.Context(), `select name from api_keys where key_id = $1`, key.ID).Scan(&name); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		slices.Sort(names)
		if want := []string{"expires later", "test", "unlimited"}; !slices.Equal(names, want) {
			t.Errorf("%s: told of %q, want %q", status, names, want)
		}
	}
}
