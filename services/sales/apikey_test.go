package sales

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/testkit"
)

// listed is a key as the list shows it, by its id.
func (f *fixture) listed(id string) map[string]any {
	f.t.Helper()
	for _, key := range f.get("/api/v1/api-keys?limit=100").want(200).object()["data"].([]any) {
		if key := key.(map[string]any); key["api_key_id"] == id {
			return key
		}
	}
	f.t.Fatalf("there is no key %s", id)
	return nil
}

func TestAKeyIsShownInClearOnce(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	made := f.post("/api/v1/api-keys", `{"name":"checkout"}`).want(201).shows("name", "checkout", "scopes", "[sales:write sales:read]", "expires_at", "<nil>", "revoked_at", "<nil>", "last_used_at", "<nil>")
	clear := made.text("api_key")
	if !regexp.MustCompile(`^ptl_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$`).MatchString(clear) || made.text("prefix") != clear[:12] {
		t.Errorf("made as %s", made.raw)
	}
	list := f.get("/api/v1/api-keys?limit=100").want(200)
	if !strings.Contains(string(list.raw), made.text("prefix")) || strings.Contains(string(list.raw), clear[13:]) || strings.Contains(string(list.raw), `"api_key"`) {
		t.Errorf("listed as %s", list.raw)
	}
	var stored int
	if err := f.deps.Pool.QueryRow(t.Context(), `select count(*) from api_keys k where k::text like '%' || $1 || '%'`, clear[13:]).Scan(&stored); err != nil || stored != 0 {
		t.Errorf("the secret is stored in clear: %d %v", stored, err)
	}
}

func TestAKeyGrantsOnlyWhatItHas(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	if got := f.listed(f.firstKey())["scopes"]; fmt.Sprint(got) != fmt.Sprint(auth.AllScopes.Strings()) {
		t.Errorf("a key of the operator's may %v", got)
	}
	limited := f.with(f.post("/api/v1/api-keys", `{"name":"limited","scopes":["keys:write","sales:read"]}`).want(201).text("api_key"))
	f.recordsNothing(func() {
		for _, scopes := range []string{`"scopes":["sales:write"]`, `"scopes":["sales:read","catalog:read"]`, `"scopes":null`, `"expires_at":null`} {
			limited.post("/api/v1/api-keys", `{"name":"more",`+scopes+`}`).refused(403, "insufficient_scope")
		}
		for _, scopes := range []string{`[]`, `["everything"]`, `["sales:read","sales:read"]`, `"sales:read"`, `[null]`} {
			f.post("/api/v1/api-keys", `{"name":"x","scopes":`+scopes+`}`).refused(400, "invalid_body")
		}
		limited.post("/api/v1/sales", f.sale("order-1")).refused(403, "insufficient_scope")
		limited.post("/api/v1/partners", `{"name":"x","referral_code":"x"}`).refused(403, "insufficient_scope")
	})
	less := limited.with(limited.post("/api/v1/api-keys", `{"name":"less","scopes":["sales:read"]}`).want(201).text("api_key"))
	less.get("/api/v1/sales").want(200)
	less.get("/api/v1/api-keys").refused(403, "insufficient_scope")
	named := f.admin("POST", "/admin/v1/tenants/"+f.tenant+"/api-keys", `{"name":"x","scopes":["goals:read"]}`).want(201)
	if got := named.text("scopes"); got != "[goals:read]" {
		t.Errorf("a key of the operator's with scopes may %s", got)
	}
}

// firstKey is the id of the key that the fixture calls with.
func (f *fixture) firstKey() (id string) {
	f.t.Helper()
	err := f.deps.Pool.QueryRow(f.t.Context(), `select api_key_id::text from api_keys where tenant_id = $1 and key_id = $2`, f.tenant, f.key[4:12]).Scan(&id)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

func TestAKeyEndsWhenItExpiresOrIsRevoked(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.recordsNothing(func() {
		f.post("/api/v1/api-keys", `{"name":"x","expires_at":"2020-01-01T00:00:00Z"}`).invalid("/expires_at too_small")
		f.post("/api/v1/api-keys", `{"name":"x","expires_at":"tomorrow"}`).invalid("/expires_at format")
		f.call("DELETE", "/api/v1/api-keys/"+uuid.NewString(), "").refused(404, "not_found")
		f.call("DELETE", "/api/v1/api-keys/x", "").refused(400, "invalid_parameter")
	})
	made := f.post("/api/v1/api-keys", `{"name":"brief","expires_at":`+quoted(time.Now().Add(time.Second).Format(time.RFC3339Nano))+`}`).want(201)
	brief := f.with(made.text("api_key"))
	testkit.Eventually(t, soon, "the key expires", func() bool { return brief.get("/api/v1/sales").StatusCode == 401 })
	brief.post("/api/v1/sales", f.sale("order-1")).refused(401, "unauthorized")

	made = f.post("/api/v1/api-keys", `{"name":"revoked"}`).want(201)
	address := "/api/v1/api-keys/" + made.text("api_key_id")
	revoked := f.with(made.text("api_key"))
	revoked.post("/api/v1/sales", f.sale("order-2")).want(201)
	f.call("DELETE", address, "").want(204)
	revoked.post("/api/v1/sales", f.sale("order-2")).refused(401, "unauthorized")
	at := f.listed(made.text("api_key_id"))["revoked_at"]
	f.call("DELETE", address, "").want(204)
	if again := f.listed(made.text("api_key_id"))["revoked_at"]; at == nil || again != at {
		t.Errorf("revoked at %v, and after a second time at %v", at, again)
	}
}

func TestTheUseOfAKeyIsNoted(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	made := f.post("/api/v1/api-keys", `{"name":"used"}`).want(201)
	f.with(made.text("api_key")).post("/api/v1/partners", `{"name":"x","referral_code":"x"}`).refused(403, "insufficient_scope")
	if used := f.listed(made.text("api_key_id"))["last_used_at"]; used != nil {
		t.Errorf("a refused call counts as a use at %v", used)
	}
	before := time.Now()
	testkit.Eventually(t, soon, "the use is noted", func() bool {
		f.with(made.text("api_key")).get("/api/v1/sales").want(200)
		return f.listed(made.text("api_key_id"))["last_used_at"] != nil
	})
	used, err := time.Parse(time.RFC3339Nano, f.listed(made.text("api_key_id"))["last_used_at"].(string))
	if err != nil || used.Before(before.Truncate(time.Microsecond)) || used.After(time.Now()) {
		t.Errorf("used at %s: %v", used, err)
	}
}

func TestATenantHasAHundredLiveKeysAtMost(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	var last string
	for n := range maxLiveKeys - 1 { // the fixture's own is the hundredth
		last = f.post("/api/v1/api-keys", fmt.Sprintf(`{"name":"key %d"}`, n)).want(201).text("api_key_id")
	}
	f.recordsNothing(func() {
		f.post("/api/v1/api-keys", `{"name":"one more"}`).refused(422, "rule_violated")
		f.admin("POST", "/admin/v1/tenants/"+f.tenant+"/api-keys", `{"name":"one more"}`).refused(422, "rule_violated")
	})
	f.call("DELETE", "/api/v1/api-keys/"+last, "").want(204)
	f.post("/api/v1/api-keys", `{"name":"in its place"}`).want(201)
	f.post("/api/v1/api-keys", `{"name":"one more"}`).refused(422, "rule_violated")
	if _, err := f.deps.Pool.Exec(t.Context(), `update api_keys set expires_at = now() where name = 'key 1'`); err != nil {
		t.Fatal(err)
	}
	f.post("/api/v1/api-keys", `{"name":"instead of an expired one"}`).want(201)
	other := f.stranger()
	other.post("/api/v1/api-keys", `{"name":"another tenant's"}`).want(201)
}

// The other replica's clock moves only by hand, so that what it remembers is as old as the
// contract allows, however fast the test is.
func TestARevocationHoldsAtAnotherReplicaAfterASecond(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		end    func(f *fixture, keyID string)
		status int
		code   string
	}{
		"the key is revoked": {func(f *fixture, id string) { f.call("DELETE", "/api/v1/api-keys/"+id, "").want(204) }, 401, "unauthorized"},
		"the tenant is suspended": {func(f *fixture, _ string) {
			f.admin("PATCH", "/admin/v1/tenants/"+f.tenant, `{"status":"suspended"}`).want(200)
		}, 403, "tenant_suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := start(t, nowhere)
			there, since, passed := *here, time.Now(), atomic.Int64{}
			there.now = func() time.Time { return since.Add(time.Duration(passed.Load())) }
			there.run()
			made := here.admin("POST", "/admin/v1/tenants/"+here.tenant+"/api-keys", `{"name":"x"}`).want(201)
			other := there.with(made.text("api_key"))
			paths := []string{"/api/v1/sales", "/api/v1/conversions", "/api/v1/partners", "/api/v1/campaigns", "/api/v1/api-keys"}
			for _, path := range paths {
				other.get(path).want(200)
			}
			change.end(here, made.text("api_key_id"))
			passed.Store(int64(time.Second))
			here.recordsNothing(func() {
				for _, path := range paths {
					other.get(path).refused(change.status, change.code)
				}
				other.post("/api/v1/partners", `{"name":"x","referral_code":"x"}`).refused(change.status, change.code)
				other.post("/api/v1/api-keys", `{"name":"x"}`).refused(change.status, change.code)
			})
		})
	}
}
