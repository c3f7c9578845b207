package sales

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// nowhere is an address at which no NATS answers.
const nowhere = "nats://127.0.0.1:1"

const operatorToken = "operator-token-of-a-test"

// fixture is a running service with a database of its own, one tenant, and a
// catalogue in which a sale can be made.
type fixture struct {
	t       *testing.T
	url     string
	service *Service
	deps    service.Deps

	tenant, key          string
	partner, code        string
	campaign, plan, name string
}

// start runs a service on a new database. Without a URL of NATS it is on its own.
func start(t *testing.T, natsURL string) *fixture {
	t.Helper()
	f := &fixture{t: t, code: "ana.souza"}
	f.run(testkit.Database(t, Migrations...), natsURL)
	f.tenant = f.admin("POST", "/admin/v1/tenants", `{"name":"Loja"}`).want(201).text("tenant_id")
	f.key = f.admin("POST", "/admin/v1/tenants/"+f.tenant+"/api-keys", `{"name":"test"}`).want(201).text("api_key")
	f.fill()
	return f
}

func (f *fixture) run(database, natsURL string) {
	t := f.t
	pool, err := postgres.Open(t.Context(), database, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b, err := bus.Connect(bus.Config{URL: natsURL, Name: t.Name()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	f.deps = service.Deps{Pool: pool, Bus: b, Log: zap.NewNop(), Now: time.Now}
	f.service, err = New(t.Context(), Config{AdminToken: operatorToken}, f.deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.service.Run(ctx) }()
	server := httptest.NewServer(f.service.Handler())
	t.Cleanup(func() {
		server.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	f.url = server.URL
}

// fill makes a partner, a campaign with a plan of 5 %, and the link between them.
func (f *fixture) fill() {
	f.partner = f.post("/api/v1/partners", `{"name":"Ana","referral_code":"`+f.code+`"}`).want(201).text("partner_id")
	f.campaign = f.post("/api/v1/campaigns", `{"name":"Verão"}`).want(201).text("campaign_id")
	f.plan = f.post("/api/v1/campaigns/"+f.campaign+"/plans", `{"name":"5 %","commission_pct":5}`).want(201).text("plan_id")
	f.call("PUT", "/api/v1/campaigns/"+f.campaign+"/partners/"+f.partner, "").want(204)
}

// sale is the body of a valid report, with members changed or, where the value is
// empty, left out. Values are raw JSON.
func (f *fixture) sale(ref string, changes ...string) string {
	members := map[string]string{
		"referral_code": quoted(f.code), "campaign_id": quoted(f.campaign), "plan_id": quoted(f.plan),
		"amount_brl": "100.50", "external_ref": quoted(ref),
	}
	for i := 0; i < len(changes); i += 2 {
		members[changes[i]] = changes[i+1]
	}
	var body bytes.Buffer
	body.WriteByte('{')
	for name, value := range members {
		if value == "" {
			continue
		}
		if body.Len() > 1 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, "%q:%s", name, value)
	}
	return body.String() + "}"
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func (f *fixture) post(path, body string) *response { return f.call("POST", path, body) }
func (f *fixture) get(path string) *response        { return f.call("GET", path, "") }

func (f *fixture) call(method, path, body string) *response {
	f.t.Helper()
	return f.send(method, path, body, "Authorization", "Bearer "+f.key)
}

func (f *fixture) admin(method, path, body string) *response {
	f.t.Helper()
	return f.send(method, path, body, "Authorization", "Bearer "+operatorToken)
}

// send makes one call with these headers, given as name, value, name, value.
func (f *fixture) send(method, path, body string, headers ...string) *response {
	f.t.Helper()
	request, err := http.NewRequest(method, f.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return &response{t: f.t, Response: answer, raw: raw, about: method + " " + path + " " + body}
}

// response is an answer together with what was asked.
type response struct {
	*http.Response
	t     *testing.T
	raw   []byte
	about string
}

// want fails the test unless the status is as expected.
func (r *response) want(status int) *response {
	r.t.Helper()
	if r.StatusCode != status {
		about := r.about
		if len(about) > 300 {
			about = about[:300] + "…"
		}
		r.t.Fatalf("%s: answered %d, want %d: %s", about, r.StatusCode, status, r.raw)
	}
	return r
}

// refused fails the test unless the answer is that status with that code.
func (r *response) refused(status int, code string) *response {
	r.t.Helper()
	if got := r.want(status).text("code"); got != code {
		r.t.Fatalf("%s: code %s, want %s: %s", r.about, got, code, r.raw)
	}
	return r
}

func (r *response) object() map[string]any {
	r.t.Helper()
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(r.raw))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		r.t.Fatalf("%s: %v in %s", r.about, err, r.raw)
	}
	return object
}

// text is a member as text, whatever its type.
func (r *response) text(name string) string {
	r.t.Helper()
	return fmt.Sprint(r.object()[name])
}

// rows is how many rows a table has.
func (f *fixture) rows(table string) (n int) {
	f.t.Helper()
	if err := f.deps.Pool.QueryRow(f.t.Context(), "select count(*) from "+table).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}
