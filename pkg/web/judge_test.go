package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/openapi"
)

// request is what a flaw spoils, before it is sent.
type request struct {
	method, path string
	bearer       bool
	key          func(*auth.Key)
	exhausted    bool
	headers      map[string]string
	body, pad    string
}

// flaws stand in the order in which they are judged.
var flaws = []struct {
	name   string
	spoil  func(*request)
	status int
	code   string
}{
	{"an unknown path", func(r *request) { r.path = "/api/v1/nothing" }, 404, "not_found"},
	{"a wrong method", func(r *request) { r.method = "PUT" }, 405, "method_not_allowed"},
	{"no key", func(r *request) { r.bearer = false }, 401, "unauthorized"},
	{"a suspended tenant", func(r *request) { add(r, func(k *auth.Key) { k.Suspended = true }) }, 403, "tenant_suspended"},
	{"a key without the scope", func(r *request) { add(r, func(k *auth.Key) { k.Scopes = auth.Scopes{auth.SalesRead} }) }, 403, "insufficient_scope"},
	{"too many requests", func(r *request) { r.exhausted = true }, 429, "rate_limited"},
	{"a wrong type", func(r *request) { r.headers["Content-Type"] = "text/xml" }, 415, "unsupported_media_type"},
	{"a body that is too large", func(r *request) { r.pad = strings.Repeat(" ", maxBody) }, 413, "payload_too_large"},
	{"a body that breaks its schema", func(r *request) { r.body = `{"size":-1}` }, 400, "invalid_body"},
}

func add(r *request, change func(*auth.Key)) {
	before := r.key
	r.key = func(k *auth.Key) { before(k); change(k) }
}

// send builds the request and sends it to a shop of its own.
func (r *request) send(t *testing.T) (answer, int64) {
	t.Helper()
	s := newShop(t)
	key := s.issue(r.key)
	if credential, _ := auth.Parse(key); r.exhausted {
		allowed(s.limiter, credential.KeyID)
	}
	built := httptest.NewRequest(r.method, r.path, strings.NewReader(r.body+r.pad))
	if r.bearer {
		built.Header.Set("Authorization", "Bearer "+key)
	}
	for name, value := range r.headers {
		built.Header.Set(name, value)
	}
	return s.send(built), s.handled.Load()
}

func TestARequestIsJudgedInAFixedOrder(t *testing.T) {
	good := func() *request {
		return &request{
			method: "POST", path: "/api/v1/things", bearer: true, key: func(*auth.Key) {},
			headers: map[string]string{}, body: `{"name":"chair"}`,
		}
	}
	if a, handled := good().send(t); a.status != http.StatusCreated || handled != 1 || a.header.Get("Location") == "" {
		t.Fatalf("without a flaw: %d %s", a.status, a.body)
	}
	for first, flaw := range flaws {
		for later := first; later < len(flaws); later++ {
			r, what := good(), flaw.name
			flaw.spoil(r)
			if later > first {
				flaws[later].spoil(r)
				what = fmt.Sprintf("%s and %s", flaw.name, flaws[later].name)
			}
			a, handled := r.send(t)
			a.refused(what, flaw.status, flaw.code)
			if handled != 0 && flaw.code != "invalid_body" {
				t.Errorf("%s: a handler was called", what)
			}
		}
	}
	all := good()
	for _, flaw := range flaws {
		flaw.spoil(all)
	}
	a, _ := all.send(t)
	a.refused("everything at once", 404, "not_found")
}

func TestARequestWithoutAnAdmissibleKeyIsUnauthorized(t *testing.T) {
	s := newShop(t)
	unknown, _, _, err := auth.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for name, authorization := range map[string][]string{
		"none":              nil,
		"empty":             {""},
		"basic":             {"Basic eDp5"},
		"the scheme alone":  {"Bearer"},
		"no token":          {"Bearer "},
		"unknown":           {"Bearer " + unknown},
		"wrong checksum":    {"Bearer " + s.key[:len(s.key)-1] + "!"},
		"one short":         {"Bearer " + s.key[:len(s.key)-1]},
		"trailing junk":     {"Bearer " + s.key + " x"},
		"two headers":       {"Bearer " + s.key, "Bearer " + s.key},
		"two in one header": {"Bearer " + s.key + ", Bearer " + s.key},
		"8 KB":              {"Bearer " + strings.Repeat(s.key, 160)},
		"the operator's":    {"Bearer " + operatorToken},
		"two blanks":        {"Bearer  " + s.key},
		"another scheme":    {"Bearers " + s.key},
		"no scheme":         {s.key},
	} {
		r := httptest.NewRequest("GET", "/api/v1/things?key="+s.key, nil)
		r.Header["Authorization"] = authorization
		a := s.send(r)
		members := a.refused(name, 401, "unauthorized")
		if got := a.header.Get("WWW-Authenticate"); got != "Bearer" {
			t.Errorf("%s: WWW-Authenticate %q", name, got)
		}
		texts = append(texts, fmt.Sprint(members["message"], members["details"]))
	}
	for _, text := range texts {
		if text != texts[0] {
			t.Errorf("%q tells a refusal from %q", text, texts[0])
		}
	}
	for _, scheme := range []string{"Bearer", "bearer", "BEARER", "bEaReR"} {
		if a := s.call("GET", "/api/v1/things", "", "Authorization", scheme+" "+s.key); a.status != 200 {
			t.Errorf("%s: %d %s", scheme, a.status, a.body)
		}
	}
}

func TestOnlyTheOperatorsTokenOpensTheOperatorsRoutes(t *testing.T) {
	s := newShop(t)
	if a := s.call("POST", "/admin/v1/things", `{"name":"x"}`, "Authorization", "Bearer "+operatorToken); a.status != 201 {
		t.Errorf("the operator: %d %s", a.status, a.body)
	}
	for name, token := range map[string]string{
		"a tenant's key": s.key, "a beginning of it": operatorToken[:5], "more than it": operatorToken + "x", "other letters": strings.ToUpper(operatorToken),
	} {
		a := s.call("POST", "/admin/v1/things", `{"name":"x"}`, "Authorization", "Bearer "+token)
		a.refused(name, 401, "unauthorized")
		if a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
	}
	s.call("POST", "/admin/v1/things", `{"name":"x"}`, "Authorization", "").refused("nobody", 401, "unauthorized")
}

func TestNobodyIsTheOperatorWhereNoTokenIsConfigured(t *testing.T) {
	for _, token := range []string{"", "x", " "} {
		if admitOperator(token, "") == nil {
			t.Errorf("%q is the operator", token)
		}
	}
	if err := admitOperator("secret", "secret"); err != nil {
		t.Error(err)
	}
}

func TestBearerReadsTheOneAuthorizationHeader(t *testing.T) {
	for _, c := range []struct {
		values []string
		token  string
	}{
		{[]string{"Bearer abc"}, "abc"},
		{[]string{"bearer abc"}, "abc"},
		{[]string{"BEARER a b"}, "a b"},
		{[]string{"Bearer"}, ""},
		{[]string{"Bearer "}, ""},
		{[]string{"Basic abc"}, ""},
		{[]string{"abc"}, ""},
		{[]string{""}, ""},
		{[]string{"Bearer\tabc"}, ""},
		{[]string{"Bearer abc", "Bearer abc"}, ""},
		{[]string{"Bearer abc", ""}, ""},
		{nil, ""},
	} {
		token, ok := bearer(http.Header{"Authorization": c.values})
		if token != c.token || ok != (c.token != "") {
			t.Errorf("%q: %q, %t", c.values, token, ok)
		}
	}
}

func TestABodyIsReadAsJSONOnlyWhereItsTypeSaysSo(t *testing.T) {
	for _, c := range []struct {
		types []string
		want  bool
	}{
		{nil, true},
		{[]string{"application/json"}, true},
		{[]string{"application/json; charset=utf-8"}, true},
		{[]string{"application/json;charset=UTF-8"}, true},
		{[]string{`application/json; profile="a;b"; v=1`}, true},
		{[]string{"Application/JSON"}, true},
		{[]string{" application/json "}, true},
		{[]string{"application/json;"}, true},
		{[]string{""}, false},
		{[]string{"text/xml"}, false},
		{[]string{"text/plain; application/json"}, false},
		{[]string{"application/jsonp"}, false},
		{[]string{"application/json-patch+json"}, false},
		{[]string{"application/x-www-form-urlencoded"}, false},
		{[]string{"application/json, application/json"}, false},
		{[]string{"application/json", "application/json"}, false},
		{[]string{"application/json", "text/xml"}, false},
		{[]string{"*/*"}, false},
	} {
		if got := isJSON(c.types); got != c.want {
			t.Errorf("%q: %t", c.types, got)
		}
	}
}

func TestABodyWithAContentEncodingIsRefused(t *testing.T) {
	s := newShop(t)
	for _, encoding := range []string{"gzip", "identity", "br"} {
		s.call("POST", "/api/v1/things", `{"name":"x"}`, "Content-Encoding", encoding).refused(encoding, 415, "unsupported_media_type")
	}
}

func TestARouteThatIsNotDescribedDoesNotStart(t *testing.T) {
	s := newShop(t)
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		_, err := API{Document: mustLoad(t), Routes: []Route{{Method: method, Pattern: "/api/v1/nowhere", Handle: s.make}}}.Handler()
		if err == nil || !strings.Contains(err.Error(), method+" /api/v1/nowhere") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestARouteWithoutADescribedBodyDoesNotStart(t *testing.T) {
	s := newShop(t)
	bodiless, err := openapi.Load([]byte(`{openapi: 3.1.0, info: {title: Bare, version: "1"}, paths: {/bare: {
		post: {responses: {200: {description: Done.}}}, patch: {responses: {200: {description: Done.}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"POST", "PATCH"} {
		_, err := API{Document: bodiless, Routes: []Route{{Method: method, Pattern: "/bare", Handle: s.make}}}.Handler()
		if err == nil || !strings.Contains(err.Error(), "no body for "+method+" /bare") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestAKeyInTheQueryIsRefusedBesideAGoodOneToo(t *testing.T) {
	s := newShop(t)
	for _, path := range []string{"/api/v1/things", "/api/v1/others"} {
		for _, query := range []string{
			"api_key=" + s.key, "anything=" + s.key, "note=1&access_token=" + s.key, s.key, s.key + "=1", "a;key=" + s.key,
			"authorization=Bearer+" + s.key, "authorization=Bearer%20" + s.key, "key=%70" + s.key[1:], "note=%zz&key=" + s.key,
		} {
			a := s.call("POST", path+"?"+query, `{"name":"chair"}`)
			a.refused(path+"?"+query, 401, "unauthorized")
		}
	}
	if s.handled.Load() != 0 {
		t.Error("a handler was called")
	}
	if a := s.call("POST", "/api/v1/others?api_key=mine&key="+s.key[1:], `{"name":"chair"}`); a.status != 201 {
		t.Errorf("what is no key: %d %s", a.status, a.body)
	}
}
