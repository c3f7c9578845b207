package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"
)

func TestAWrongMethodNamesTheRightOnes(t *testing.T) {
	s := newShop(t)
	for _, c := range []struct{ method, path, allow string }{
		{"PUT", "/api/v1/things", "GET, POST"},
		{"DELETE", "/api/v1/things", "GET, POST"},
		{"OPTIONS", "/api/v1/things", "GET, POST"},
		{"TRACE", "/api/v1/things", "GET, POST"},
		{"BREW", "/api/v1/things", "GET, POST"},
		{"get", "/api/v1/things", "GET, POST"},
		{"POST", "/api/v1/things/1", "GET, DELETE"},
		{"PATCH", "/api/v1/things/a%2Fb", "GET, DELETE"},
		{"GET", "/api/v1/things/batch", "POST"},
		{"DELETE", "/api/v1/things/batch", "POST"},
		{"HEAD", "/api/v1/things/batch", "POST"},
		{"GET", "/admin/v1/things", "POST"},
		{"POST", "/healthz", "GET, HEAD"},
		{"DELETE", "/readyz", "GET, HEAD"},
		{"OPTIONS", "/metrics", "GET, HEAD"},
		{"PUT", "/openapi.json", "GET, HEAD"},
		{"BREW", "/docs", "GET, HEAD"},
	} {
		for _, authorization := range []string{"Bearer " + s.key, ""} {
			a := s.call(c.method, c.path, "", "Authorization", authorization)
			a.refused(c.method+" "+c.path, 405, "method_not_allowed")
			if got := a.header.Get("Allow"); got != c.allow {
				t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got, c.allow)
			}
		}
	}
	if s.handled.Load() != 0 {
		t.Error("a handler was called")
	}
}

func TestHEADIsAWrongMethodOfTheAPI(t *testing.T) {
	server := serve(t, newShop(t).handler)
	response, err := http.Head(server.url + "/api/v1/things")
	if err != nil {
		t.Fatal(err)
	}
	a := read(t, response)
	if a.status != 405 || a.header.Get("Allow") != "GET, POST" || a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Request-Id") == "" {
		t.Errorf("%d %v", a.status, a.header)
	}
}

func TestWhereThereIsNothingTheAnswerIsOurs(t *testing.T) {
	s := newShop(t)
	id := uuid.NewString()
	for _, path := range []string{
		"/", "/api", "/api/v1", "/api/v1/", "/api/v1/thing", "/api/v1/things/1/nothing", "/API/v1/things", "/favicon.ico", "/healthz/", "/docs/index.html",
		"//", "///", "//api/v1/things", "/api//v1/things", "/api/v1//things", "/api/v1/things/", "/api/v1/things//", "/api/v1/things//parts", "/api/v1/things/" + id + "/",
		"/./api/v1/things", "/api/./v1/things", "/api/v1/things/.", "/../api/v1/things", "/api/../api/v1/things", "/api/v1/others/../things", "/api/v1/things/..", "/x/../healthz", "//healthz",
		"/api/v1/things%2F" + id, "/%2e%2e/healthz/x", "/api%2Fv1%2Fthings",
	} {
		for _, method := range []string{"GET", "POST", "OPTIONS", "BREW"} {
			for _, authorization := range []string{"Bearer " + s.key, ""} {
				a := s.call(method, path, "", "Authorization", authorization)
				a.refused(method+" "+path, 404, "not_found")
				if got := a.header.Get("Location") + a.header.Get("Allow"); got != "" {
					t.Errorf("%s %s leads to %q", method, path, got)
				}
			}
		}
	}
	if s.handled.Load() != 0 {
		t.Error("a handler was called")
	}
}

func TestAnAPIBehindAMuxOfTheStandardLibraryIsNotRedirectedEither(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/", newShop(t).handler)
	handler := System{Document: mustLoad(t), Ready: newShop(t).readiness}.Around(mux)
	for _, path := range []string{"//api/v1/things", "/api/../api/v1/things", "//"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		read(t, w.Result()).refused(path, 404, "not_found")
	}
}

func TestAPathIDIsAUUIDInItsOneSpelling(t *testing.T) {
	s := newShop(t)
	const id = "0197f0a2-1111-7abc-8def-0123456789ab"
	for _, good := range []string{id, "0197F0A2-1111-7ABC-8DEF-0123456789AB", "00000000-0000-0000-0000-000000000000"} {
		if a := s.call("GET", "/api/v1/things/"+good, ""); a.status != 200 {
			t.Errorf("%s: %d %s", good, a.status, a.body)
		}
	}
	for _, bad := range []string{
		"1", "x", "{" + id + "}", "urn:uuid:" + id, "0197f0a211117abc8def0123456789ab", id[:35], id + "0", "0197f0a2-1111-7abc-8def-0123456789ag",
		"0197f0a2_1111_7abc_8def_0123456789ab", "0197f0a21-111-7abc-8def-0123456789ab", "%7B" + id + "%7D", "%200197f0a2-1111-7abc-8def-0123456789a", "%00", "%ff", "%2e%2e", "null",
	} {
		members := s.call("GET", "/api/v1/things/"+bad, "").refused(bad, 400, "invalid_parameter")
		if details, _ := members["details"].([]any); len(details) != 1 || details[0].(map[string]any)["path"] != "/thing_id" {
			t.Errorf("%s: details %v", bad, members["details"])
		}
	}
}

func TestTheSpellingOfAnIDDoesNotMatterToAHandler(t *testing.T) {
	s := newShop(t)
	lower := s.call("GET", "/api/v1/things/0197f0a2-1111-7abc-8def-0123456789ab", "")
	if upper := s.call("GET", "/api/v1/things/0197F0A2-1111-7ABC-8DEF-0123456789AB", ""); upper.body != lower.body {
		t.Errorf("%s differs from %s", upper.body, lower.body)
	}
}

func TestARequestKeepsItsIDWhereThatCanBeShown(t *testing.T) {
	s := newShop(t)
	full := ""
	for len(full) < 128 {
		full += "x"
	}
	for _, id := range []string{"a", "order 7/3", "!~", full, `"quoted"`} {
		for _, path := range []string{"/api/v1/things", "/api/v1/nothing", "/healthz", "//"} {
			if a := s.call("GET", path, "", "X-Request-Id", id); a.header.Get("X-Request-Id") != id {
				t.Errorf("%s: %q became %q", path, id, a.header.Get("X-Request-Id"))
			}
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{"", full + "x", "é", "a\tb", "a\x7f", "a\x00b", "a\nb", "\xff"} {
		a := s.call("GET", "/api/v1/nothing", "", "X-Request-Id", id)
		a.refused("with the id "+id, 404, "not_found")
		got := a.header.Get("X-Request-Id")
		if _, err := uuid.Parse(got); err != nil || seen[got] {
			t.Errorf("%q became %q", id, got)
		}
		seen[got] = true
	}
}
