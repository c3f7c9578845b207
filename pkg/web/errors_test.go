package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
)

func mustLoad(t *testing.T) *openapi.Document {
	t.Helper()
	doc, err := openapi.Load(document)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestEveryKindOfFaultHasItsStatus(t *testing.T) {
	s := newShop(t)
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{fault.New(fault.Invalid, "invalid_body", "no"), 400, "invalid_body"},
		{fault.InvalidParameter("limit", "no"), 400, "invalid_parameter"},
		{fault.New(fault.Unauthorized, "unauthorized", "no"), 401, "unauthorized"},
		{fault.New(fault.Forbidden, "tenant_suspended", "no"), 403, "tenant_suspended"},
		{fault.New(fault.NotFound, "partner_not_found", "no"), 404, "partner_not_found"},
		{NotFound(), 404, "not_found"},
		{fault.New(fault.Conflict, "conflict", "no"), 409, "conflict"},
		{fault.New(fault.Invalid, "request_timeout", "no"), 408, "request_timeout"},
		{fault.New(fault.Invalid, "payload_too_large", "no"), 413, "payload_too_large"},
		{fault.New(fault.Invalid, "unsupported_media_type", "no"), 415, "unsupported_media_type"},
		{fault.New(fault.Rule, "create_failed", "no"), 422, "create_failed"},
		{fault.New(fault.Limited, "rate_limited", "no"), 429, "rate_limited"},
		{fault.Unreachable(errors.New("dial tcp 10.0.0.7")), 503, "unavailable"},
		{fault.New(fault.NotYet, "not_yet", "no"), 503, "not_yet"},
		{fault.New(fault.Unknown, "internal_error", "no"), 500, "internal_error"},
		{fmt.Errorf("do this: %w", fmt.Errorf("do that: %w", fault.New(fault.Rule, "rule_violated", "no"))), 422, "rule_violated"},
	} {
		s.outcome = func(*Call) (Answer, error) { return Answer{}, c.err }
		a := s.call("GET", "/api/v1/outcomes/x", "")
		members := a.refused(c.code, c.status, c.code)
		if _, has := members["details"]; has != (c.code == "invalid_parameter") {
			t.Errorf("%s: details %v", c.code, members["details"])
		}
		for header, when := range map[string]bool{"Retry-After": c.status == 503, "WWW-Authenticate": c.status == 401} {
			if got := a.header.Get(header); (got != "") != when {
				t.Errorf("%s: %s %q", c.code, header, got)
			}
		}
		if strings.Contains(a.body, "10.0.0.7") || strings.Contains(a.body, "do that") {
			t.Errorf("%s shows its cause: %s", c.code, a.body)
		}
	}
}

func TestDetailsNameEachIssue(t *testing.T) {
	s := newShop(t)
	members := s.call("POST", "/api/v1/things", `{"size":-1}`).refused("two issues", 400, "invalid_body")
	want := `[map[code:required message:`
	if got := fmt.Sprint(members["details"]); !strings.HasPrefix(got, want) || !strings.Contains(got, "path:/name") || !strings.Contains(got, "path:/size") {
		t.Errorf("details %s", got)
	}
}

func TestWhatNobodyForesawShowsNothingInternal(t *testing.T) {
	const secret = `ERROR: relation "api_keys" on db-7.internal (SQLSTATE 42P01)`
	for name, outcome := range map[string]func(*Call) (Answer, error){
		"an error":              func(*Call) (Answer, error) { return Answer{}, errors.New(secret) },
		"a panic":               func(*Call) (Answer, error) { panic(secret) },
		"a panic with an error": func(*Call) (Answer, error) { panic(errors.New(secret)) },
		"an answer that cannot be written": func(*Call) (Answer, error) {
			return Answer{Status: 200, Body: failing{secret}, Header: map[string]string{"Location": secret}}, nil
		},
	} {
		s := newShop(t)
		s.outcome = outcome
		a := s.call("GET", "/api/v1/outcomes/x?private=1", "", "X-Request-Id", "find-me")
		a.refused(name, 500, "internal_error")
		if shown := a.body + fmt.Sprint(a.header); strings.Contains(shown, "api_keys") || strings.Contains(shown, "internal (") || strings.Contains(shown, "goroutine") {
			t.Errorf("%s: %s", name, shown)
		}
		lines := s.logs.FilterMessage("request failed").All()
		if len(lines) != 1 {
			t.Fatalf("%s: %d lines in the log", name, len(lines))
		}
		fields := lines[0].ContextMap()
		if lines[0].Level != zapcore.ErrorLevel || fields["request_id"] != "find-me" || !strings.Contains(fmt.Sprint(fields["error"]), "api_keys") {
			t.Errorf("%s is logged as %v", name, fields)
		}
		if done := s.logs.FilterMessage("request").All(); len(done) != 1 || done[0].ContextMap()["status"] != int64(500) {
			t.Errorf("%s: the request is logged as %v", name, done)
		}
	}
}

// failing cannot be written as JSON.
type failing struct{ reason string }

func (f failing) MarshalJSON() ([]byte, error) { return nil, errors.New(f.reason) }

func TestAnAbortedAnswerIsNotTurnedIntoAnError(t *testing.T) {
	s := newShop(t)
	s.outcome = func(*Call) (Answer, error) { panic(http.ErrAbortHandler) }
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("the server sees %v", p)
		}
	}()
	s.call("GET", "/api/v1/outcomes/x", "")
	t.Error("the server sees no panic")
}

func TestALogLineTellsTheOutcomeAndNothingOfTheCallersSecrets(t *testing.T) {
	s := newShop(t)
	credential, _ := auth.Parse(s.key)
	s.call("POST", "/api/v1/things?note=private", `{"name":"private"}`, "X-Request-Id", "r-1")
	lines := s.logs.All()
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	got := lines[0].ContextMap()
	for name, want := range map[string]any{
		"method": "POST", "route": "/api/v1/things", "status": int64(201), "request_id": "r-1", "tenant_id": s.keys.keys[credential.KeyID].TenantID.String(),
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if text := fmt.Sprint(lines[0].Message, got); strings.Contains(text, "private") || strings.Contains(text, s.key) {
		t.Errorf("the log shows %s", text)
	}
}

func TestAnErrorWithBrokenTextIsStillWritten(t *testing.T) {
	s := newShop(t)
	s.outcome = func(*Call) (Answer, error) { return Answer{}, fault.New(fault.Rule, "rule_violated", "no \xff") }
	s.call("GET", "/api/v1/outcomes/x", "").refused("broken text", 422, "rule_violated")
}

func TestAHandlerSeesTheCallersContext(t *testing.T) {
	s := newShop(t)
	type mark struct{}
	s.outcome = func(c *Call) (Answer, error) {
		if c.Context().Value(mark{}) != "here" {
			t.Error("another context")
		}
		return Answer{Status: http.StatusNoContent}, nil
	}
	r, err := http.NewRequestWithContext(context.WithValue(t.Context(), mark{}, "here"), "GET", "/api/v1/outcomes/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	if a := s.send(r); a.status != 204 || a.body != "" || a.header.Get("Content-Type") != "" {
		t.Errorf("%d %q %v", a.status, a.body, a.header)
	}
}
