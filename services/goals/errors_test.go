package goals_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
	"partilha.dev/pkg/web"
	"partilha.dev/services/goals"
)

func TestABodyThatBreaksARuleIsRefusedWithItsPath(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	id := ids(1)[0].String()
	for _, row := range []struct{ body, path, code string }{
		{`{}`, "/metric", "required"},
		{goalBody(`"target":2.5`), "/target", "too_many_decimals"},
		{goalBody(`"target":0`), "/target", "too_small"},
		{goalBody(`"target":-0`), "/target", "too_small"},
		{goalBody(`"target":"3"`), "/target", "type"},
		{goalBody(`"target":1E1000000000`), "/target", "too_large"},
		{goalBody(`"target":0.001,"metric":"sales_amount"`), "/target", "too_many_decimals"},
		{goalBody(`"metric":"bonus_amount"`), "/metric", "not_allowed"},
		{goalBody(`"metric":"conversions_count","target":2.5`), "/target", "too_many_decimals"},
		{goalBody(`"period":"fortnight"`), "/period", "not_allowed"},
		{goalBody(`"timezone":"Mars/Olympus"`), "/timezone", "not_allowed"},
		{goalBody(`"timezone":"Local"`), "/timezone", "not_allowed"},
		{goalBody(`"timezone":""`), "/timezone", "too_short"},
		{goalBody(`"starts_at":"2026-01-01T00:00:00Z","ends_at":"2026-01-01T00:00:00Z"`), "/ends_at", "too_small"},
		{goalBody(`"ends_at":"2026-01-01T00:00:00Z"`), "/ends_at", "too_small"},
		{goalBody(`"starts_at":"2026-01-01"`), "/starts_at", "format"},
		{goalBody(`"partner_ids":[]`), "/partner_ids", "too_short"},
		{goalBody(`"partner_ids":["` + id + `","` + id + `"]`), "/partner_ids/1", "not_allowed"},
		{goalBody(`"partner_ids":["` + id + `","` + strings.ToUpper(id) + `"]`), "/partner_ids/1", "not_allowed"},
		{goalBody(`"partner_ids":["ana"]`), "/partner_ids/0", "format"},
		{goalBody(`"campaign_id":"{` + id + `}"`), "/campaign_id", "format"},
		{goalBody(`"reward_brl":0`), "/reward_brl", "too_small"},
		{goalBody(`"reward_brl":0.005`), "/reward_brl", "too_many_decimals"},
		{goalBody(`"external_ref":""`), "/external_ref", "too_short"},
		{goalBody(`"external_ref":"` + strings.Repeat("x", 256) + `"`), "/external_ref", "too_long"},
		{goalBody(`"name":"again"`), "/name", "duplicate_member"},
		{goalBody(`"Period":"month"`), "/Period", "unknown_member"},
		{`[]`, "", "type"},
	} {
		a := w.call(shop, "POST", "/api/v1/goals", row.body)
		if a.status != http.StatusBadRequest || a.body["code"] != "invalid_body" ||
			!strings.Contains(a.raw, `{"path":"`+row.path+`","code":"`+row.code+`"`) {
			t.Errorf("%s answers %d %s, want %s at %q", row.body, a.status, a.raw, row.code, row.path)
		}
	}
	if made := w.rows("select goal_id::text from goals"); len(made) != 0 {
		t.Errorf("refused calls have made %d goals", len(made))
	}
}

func TestEveryIssueIsNamedAtOnce(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	a := w.call(shop, "POST", "/api/v1/goals", goalBody(`"target":2.5,"timezone":"Nowhere","starts_at":"2026-02-01T00:00:00Z","ends_at":"2026-01-01T00:00:00Z"`))
	if details, _ := a.body["details"].([]any); len(details) != 3 {
		t.Errorf("the answer is %s, want three details", a.raw)
	}
}

func TestAParameterThatCannotBeUsedIsRefused(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	id := w.goal(shop, "")
	for _, path := range []string{
		"/api/v1/goals/1", "/api/v1/goals/{" + id + "}", "/api/v1/goals/" + id + "?verbose=1", "/api/v1/goals?limit=0", "/api/v1/goals?limit=101",
		"/api/v1/goals?limit=1&limit=2", "/api/v1/goals?cursor=", "/api/v1/goals?name=x", "/api/v1/goals/1/progress",
		"/api/v1/goals/" + id + "/progress?partner_id=ana", "/api/v1/goals/" + id + "/progress?period_start=today",
		"/api/v1/goals/" + id + "/progress?limit=x", "/api/v1/goals/" + id + "/progress?cursor=AAAA", "/api/v1/goals/" + id + "/progress?rank=1",
	} {
		if a := w.call(shop, "GET", path, ""); a.status != http.StatusBadRequest || a.body["code"] != "invalid_parameter" {
			t.Errorf("%s answers %d %s", path, a.status, a.raw)
		}
	}
}

func TestAnotherTenantsGoalReadsLikeOneThatNeverWas(t *testing.T) {
	w := newWorld(t)
	shop, stranger := w.tenant(), w.tenant()
	w.serve()
	id := w.goal(shop, `"external_ref":"mine"`)

	for _, suffix := range []string{"", "/progress", "/progress?partner_id=" + shop.id.String()} {
		var bodies []string
		for _, goalID := range []string{id, uuid.NewString()} {
			r := httptest.NewRequest("GET", "/api/v1/goals/"+goalID+suffix, nil)
			r.Header.Set("Authorization", "Bearer "+stranger.key)
			r.Header.Set("X-Request-Id", "same")
			a := w.do(r)
			if a.status != http.StatusNotFound || a.body["code"] != "not_found" {
				t.Errorf("%s answers %d %s", r.URL, a.status, a.raw)
			}
			bodies = append(bodies, a.raw)
		}
		if bodies[0] != bodies[1] {
			t.Errorf("the two answers differ: %s and %s", bodies[0], bodies[1])
		}
	}
	if list := w.call(stranger, "GET", "/api/v1/goals", ""); list.raw != `{"data":[],"next_cursor":null}` {
		t.Errorf("the stranger's list is %s", list.raw)
	}
}

func TestOnlyAKeyWithTheScopeMayCall(t *testing.T) {
	w := newWorld(t)
	writer, reader, frozen := w.tenant(auth.GoalsWrite), w.tenant(auth.GoalsRead), w.tenant()
	w.exec("update known_keys set suspended = true where tenant_id = $1", frozen.id)
	w.serve()
	id := w.goal(writer, "")
	reads := []string{"/api/v1/goals", "/api/v1/goals/" + id, "/api/v1/goals/" + id + "/progress"}

	for _, path := range reads {
		if a := w.call(writer, "GET", path, ""); a.status != http.StatusForbidden || a.body["code"] != "insufficient_scope" {
			t.Errorf("GET %s with goals:write alone answers %d %s", path, a.status, a.raw)
		}
		if a := w.call(frozen, "GET", path, ""); a.status != http.StatusForbidden || a.body["code"] != "tenant_suspended" {
			t.Errorf("GET %s of a suspended tenant answers %d %s", path, a.status, a.raw)
		}
		if a := w.call(tenant{key: "ptl_nobody"}, "GET", path, ""); a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("GET %s with a malformed key answers %d %s", path, a.status, a.raw)
		}
	}
	if a := w.call(reader, "POST", "/api/v1/goals", goalBody("")); a.status != http.StatusForbidden || a.body["code"] != "insufficient_scope" {
		t.Errorf("POST with goals:read alone answers %d %s", a.status, a.raw)
	}
}

func TestTransportErrorsAreTold(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.serve()
	request := func(method, path, body string, header ...string) answer {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+shop.key)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return w.do(r)
	}
	if a := request("DELETE", "/api/v1/goals", ""); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET, POST" {
		t.Errorf("DELETE answers %d, Allow %q", a.status, a.header.Get("Allow"))
	}
	if a := request("POST", "/api/v1/goals", strings.Repeat(" ", 64<<10)+"{}"); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body answers %d %s", a.status, a.raw)
	}
	if a := request("POST", "/api/v1/goals", goalBody(""), "Content-Type", "text/xml"); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("XML answers %d %s", a.status, a.raw)
	}
	if a := request("POST", "/api/v1/goals", goalBody(""), "Content-Encoding", "gzip"); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("an encoding answers %d %s", a.status, a.raw)
	}
}

func TestAKeyThatAsksTooOftenIsToldToWait(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	w.limiter = web.NewLimiter(web.Limits{PerSecond: 1, Burst: 1, InFlight: 1, FailuresPerSecond: 1, FailureBurst: 1})
	w.serve()
	w.call(shop, "GET", "/api/v1/goals", "")
	if a := w.call(shop, "GET", "/api/v1/goals", ""); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("the second call answers %d %v", a.status, a.header)
	}
}

func TestADefectAndAnOutageShowNothingInternal(t *testing.T) {
	server := testkit.Postgres(t)
	if err := postgres.Migrate(t.Context(), server.URL("postgres"), goals.Migrations...); err != nil {
		t.Fatal(err)
	}
	w := newWorldIn(t, server.URL("postgres"))
	shop := w.tenant()
	w.serve()
	id := w.goal(shop, "")
	calls := [][2]string{
		{"POST", "/api/v1/goals"}, {"GET", "/api/v1/goals"}, {"GET", "/api/v1/goals/" + id}, {"GET", "/api/v1/goals/" + id + "/progress"},
		{"PATCH", "/api/v1/goals/" + id}, {"DELETE", "/api/v1/goals/" + id},
	}
	assertAll := func(status int, code string) {
		t.Helper()
		for _, c := range calls {
			body := goalBody(`"external_ref":"x"`)
			if c[0] == "PATCH" {
				body = `{"status":"archived"}`
			}
			a := w.call(shop, c[0], c[1], body)
			if a.status != status || a.body["code"] != code || strings.Contains(a.raw, "SQL") || strings.Contains(a.raw, "goals") {
				t.Errorf("%s %s answers %d %s, want %d %s", c[0], c[1], a.status, a.raw, status, code)
			}
		}
	}
	w.exec("alter table goals rename to mislaid")
	assertAll(http.StatusInternalServerError, "internal_error")

	w.exec("alter table mislaid rename to goals")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	assertAll(http.StatusServiceUnavailable, "unavailable")
}
