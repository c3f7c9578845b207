package web

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTheSystemAnswersWithoutAKey(t *testing.T) {
	s := newShop(t)
	doc := mustLoad(t)
	for path, want := range map[string]struct {
		contentType string
		body        []byte
	}{
		"/healthz":      {"application/json", []byte(`{"status":"ok"}`)},
		"/readyz":       {"application/json", []byte(`{"status":"ready"}`)},
		"/openapi.json": {"application/json", doc.JSON()},
		"/docs":         {"text/html; charset=utf-8", doc.Docs()},
	} {
		for _, authorization := range []string{"", "Bearer nonsense"} {
			a := s.call("GET", path, "", "Authorization", authorization)
			if a.status != 200 || a.header.Get("Content-Type") != want.contentType || !bytes.Equal([]byte(a.body), want.body) {
				t.Errorf("%s: %d %s %.200s", path, a.status, a.header.Get("Content-Type"), a.body)
			}
			if a.header.Get("X-Request-Id") == "" {
				t.Errorf("%s: no request id", path)
			}
		}
	}
	server := serve(t, s.handler)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"} {
		response, err := http.Head(server.url + path)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode != 200 {
			t.Errorf("HEAD %s: %d", path, response.StatusCode)
		}
	}
}

func TestOnlyUnavailableIsNotReady(t *testing.T) {
	s := newShop(t)
	for _, c := range []struct {
		readiness Readiness
		status    int
		body      string
	}{
		{Readiness{Status: "ready"}, 200, `{"status":"ready"}`},
		{Readiness{Status: "degraded", Reasons: []string{"no NATS"}}, 200, `{"status":"degraded","reasons":["no NATS"]}`},
		{Readiness{Status: "unavailable", Reasons: []string{"no database"}}, 503, `{"status":"unavailable","reasons":["no database"]}`},
	} {
		s.readiness = func(context.Context) Readiness { return c.readiness }
		a := s.call("GET", "/readyz", "", "Authorization", "")
		if a.status != c.status || a.body != c.body || (a.header.Get("Retry-After") != "") != (c.status == 503) {
			t.Errorf("%s: %d %s %v", c.readiness.Status, a.status, a.body, a.header)
		}
	}
}

func TestTheQuestionWhetherItIsReadyIsAnsweredInTime(t *testing.T) {
	s := newShop(t)
	s.readiness = func(ctx context.Context) Readiness {
		if at, ok := ctx.Deadline(); !ok || time.Until(at) > 2*time.Second {
			t.Error("no deadline of two seconds")
		}
		return Readiness{Status: "ready"}
	}
	s.call("GET", "/readyz", "")
}

func TestLifeDoesNotDependOnReadiness(t *testing.T) {
	s := newShop(t)
	s.readiness = func(context.Context) Readiness { return Readiness{Status: "unavailable"} }
	if a := s.call("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("%d", a.status)
	}
}

func TestRequestsAreMeasuredByRouteAndStatus(t *testing.T) {
	s := newShop(t)
	s.call("POST", "/api/v1/things", `{"name":"x"}`)
	s.call("GET", "/api/v1/things/not-an-id", "")
	s.outcome = func(*Call) (Answer, error) { panic("x") }
	s.call("GET", "/api/v1/outcomes/x", "")
	a := s.call("GET", "/metrics", "", "Authorization", "")
	for _, line := range []string{
		`partilha_http_request_seconds_count{method="POST",route="/api/v1/things",status="201"}`,
		`partilha_http_request_seconds_count{method="GET",route="/api/v1/things/{thing_id}",status="400"}`,
		`partilha_http_request_seconds_count{method="GET",route="/api/v1/outcomes/{outcome}",status="500"}`,
	} {
		if !strings.Contains(a.body, line) {
			t.Errorf("no %s", line)
		}
	}
	if strings.Contains(a.body, "not-an-id") {
		t.Error("a label for every address that is asked for")
	}
}
