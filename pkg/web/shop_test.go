package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
)

//go:embed testdata/openapi.yaml
var document []byte

const operatorToken = "the operator's own token"

// shop is a service with a tiny API.
type shop struct {
	t       *testing.T
	handler http.Handler
	logs    *observer.ObservedLogs
	limiter *Limiter
	forward func(time.Duration) // moves the limiter's clock
	keys    *keyring
	key     string // may do everything

	handled   atomic.Int64                // requests, and elements of batches, that got as far as a handler
	outcome   func(*Call) (Answer, error) // of GET /api/v1/outcomes/{outcome} and /api/v1/news/{outcome}
	readiness func(context.Context) Readiness
	rows      []uuid.UUID // of the lists, newest first
}

// keyring stands for whoever knows the keys.
type keyring struct {
	mu   sync.Mutex
	keys map[string]auth.Key
}

func (k *keyring) Key(_ context.Context, c auth.Credential, _ auth.Scope) (auth.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok := k.keys[c.KeyID]
	if !ok {
		return auth.Key{}, auth.Unauthorized()
	}
	return key, nil
}

func newShop(t *testing.T) *shop { t.Helper(); return newLimitedShop(t, usual) }

func newLimitedShop(t *testing.T, limits Limits) *shop {
	t.Helper()
	doc, err := openapi.Load(document)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	s := &shop{t: t, logs: logs, keys: &keyring{keys: map[string]auth.Key{}}}
	s.limiter, s.forward = still(limits)
	s.readiness = func(context.Context) Readiness { return Readiness{Status: "ready"} }
	s.outcome = func(*Call) (Answer, error) {
		return Answer{Status: http.StatusOK, Body: map[string]bool{"ok": true}}, nil
	}
	s.key = s.issue(func(*auth.Key) {})
	read, write := Scope(auth.SalesRead), Scope(auth.SalesWrite)
	api, err := API{
		Document: doc, Keys: s.keys, OperatorToken: operatorToken, Limiter: s.limiter, Log: zap.New(core), Now: time.Now,
		Routes: []Route{
			{Method: "POST", Pattern: "/api/v1/things", Access: write, Handle: s.make},
			{Method: "POST", Pattern: "/api/v1/things/batch", Access: write, Batch: "things", Handle: s.makeMany},
			{Method: "GET", Pattern: "/api/v1/things", Access: read, Handle: s.list},
			{Method: "GET", Pattern: "/api/v1/others", Access: read, Handle: s.list},
			{Method: "POST", Pattern: "/api/v1/others", Access: write, Lenient: true, Handle: s.make},
			{Method: "GET", Pattern: "/api/v1/things/{thing_id}", Access: read, Handle: s.get},
			{Method: "DELETE", Pattern: "/api/v1/things/{thing_id}", Access: write, Handle: s.drop},
			{Method: "GET", Pattern: "/api/v1/things/{thing_id}/parts", Access: read, Handle: s.list},
			{Method: "GET", Pattern: "/api/v1/outcomes/{outcome}", Access: read, Handle: func(c *Call) (Answer, error) { return s.outcome(c) }},
			{Method: "GET", Pattern: "/api/v1/news/{outcome}", Access: read, Listens: true, Handle: func(c *Call) (Answer, error) { return s.outcome(c) }},
			{Method: "POST", Pattern: "/admin/v1/things", Access: Operator, Handle: s.make},
		},
	}.Handler()
	if err != nil {
		t.Fatal(err)
	}
	s.handler = System{Document: doc, Ready: func(ctx context.Context) Readiness { return s.readiness(ctx) }}.Around(api)
	return s
}

// issue makes a key that may do everything but what change takes away.
func (s *shop) issue(change func(*auth.Key)) (text string) {
	s.t.Helper()
	text, id, hash, err := auth.NewSecret()
	if err != nil {
		s.t.Fatal(err)
	}
	key := auth.Key{ID: id, Hash: hash, TenantID: uuid.New(), Scopes: auth.AllScopes, Version: 1}
	change(&key)
	s.keys.keys[id] = key
	return text
}

func (s *shop) make(c *Call) (Answer, error) {
	s.handled.Add(1)
	var body struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	}
	if err := c.Decode(&body); err != nil {
		return Answer{}, err
	}
	return Answer{Status: http.StatusCreated, Body: body, Header: map[string]string{"Location": "/api/v1/things/1"}}, nil
}

// makeMany makes each thing; one of size 500 fails on our side, one of size 422 breaks a rule.
func (s *shop) makeMany(c *Call) (Answer, error) {
	elements, err := c.Elements()
	if err != nil {
		return Answer{}, err
	}
	return c.Results(len(elements), func(i int) (Answer, error) {
		s.handled.Add(1)
		var body struct {
			Name string `json:"name"`
			Size int    `json:"size"`
		}
		switch err := elements[i].Decode(&body); {
		case err != nil:
			return Answer{}, err
		case body.Size == 500:
			return Answer{}, errors.New("the secret text of " + body.Name)
		case body.Size == 422:
			return Answer{}, fault.New(fault.Rule, "rule_violated", "that is too big")
		}
		return Answer{Status: http.StatusCreated, Body: body}, nil
	})
}

func (s *shop) get(c *Call) (Answer, error) {
	s.handled.Add(1)
	id, err := c.PathID("thing_id")
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: http.StatusOK, Body: struct {
		ThingID  uuid.UUID `json:"thing_id"`
		TenantID uuid.UUID `json:"tenant_id"`
	}{id, c.Tenant()}}, nil
}

func (s *shop) drop(*Call) (Answer, error) {
	s.handled.Add(1)
	return Answer{Status: http.StatusNoContent}, nil
}

func (s *shop) list(c *Call) (Answer, error) {
	s.handled.Add(1)
	page, err := c.Page()
	if err != nil {
		return Answer{}, err
	}
	rows := s.rows
	if page.After != nil {
		rows = rows[slices.Index(rows, *page.After)+1:]
	}
	rows = rows[:min(len(rows), page.Limit+1)]
	return Cut(page, slices.Clone(rows), func(id uuid.UUID) uuid.UUID { return id }), nil
}

// answer is what came back.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// call sends a request with the good key; headers are pairs that replace or add to its own,
// an empty value removes one.
func (s *shop) call(method, target, body string, headers ...string) answer {
	s.t.Helper()
	r := httptest.NewRequest(method, target, nil)
	if body != "" {
		r = httptest.NewRequest(method, target, strings.NewReader(body))
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return s.send(r)
}

func (s *shop) send(r *http.Request) answer {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return read(s.t, w.Result())
}

func read(t *testing.T, response *http.Response) answer {
	t.Helper()
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{t: t, status: response.StatusCode, header: response.Header, body: string(raw)}
}

// refused checks that the answer is this error in the one shape, and returns its members.
func (a answer) refused(what string, status int, code string) (members map[string]any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.body), &members); err != nil {
		a.t.Errorf("%s: %d %q is not JSON: %v", what, a.status, a.body, err)
		return nil
	}
	if a.status != status || members["code"] != code {
		a.t.Errorf("%s: %d %s, want %d %s", what, a.status, a.body, status, code)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		a.t.Errorf("%s: Content-Type %q", what, got)
	}
	if message, _ := members["message"].(string); message == "" {
		a.t.Errorf("%s: no message in %s", what, a.body)
	}
	if id := a.header.Get("X-Request-Id"); id == "" || members["request_id"] != id {
		a.t.Errorf("%s: request id %q in the header, %v in the body", what, id, members["request_id"])
	}
	for name := range members {
		if !slices.Contains([]string{"code", "message", "details", "request_id"}, name) {
			a.t.Errorf("%s: the unknown member %s", what, name)
		}
	}
	return members
}
