package contract

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/testkit"
	"partilha.dev/pkg/web"
	"partilha.dev/services/commissions"
	"partilha.dev/services/goals"
	"partilha.dev/services/sales"
	"partilha.dev/services/webhooks"
)

const adminToken = "operator-of-the-contract-tests"

// goalsPerTenant is how many goals a tenant may have: more than the contract's world needs.
const goalsPerTenant = 60

// blueprints are the four services. Webhooks may go to this machine and nowhere else.
var blueprints = []struct {
	name     string
	schemas  []postgres.Schema
	document func() (*openapi.Document, error)
	build    func(context.Context, service.Deps) (service.Service, error)
}{
	{"sales", sales.Migrations, sales.Document, func(ctx context.Context, deps service.Deps) (service.Service, error) {
		return sales.New(ctx, sales.Config{AdminToken: adminToken}, deps)
	}},
	{"commissions", commissions.Migrations, commissions.Document, func(ctx context.Context, deps service.Deps) (service.Service, error) {
		sealing := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("pix-", 8)))
		return commissions.New(ctx, commissions.Config{SecretKey: sealing}, deps)
	}},
	{"goals", goals.Migrations, goals.Document, func(ctx context.Context, deps service.Deps) (service.Service, error) {
		return goals.New(ctx, goals.Config{PerTenant: goalsPerTenant}, deps)
	}},
	{"webhooks", webhooks.Migrations, webhooks.Document, func(ctx context.Context, deps service.Deps) (service.Service, error) {
		sealing := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("contract", 4)))
		return webhooks.New(ctx, webhooks.Config{SecretKey: sealing, AllowHTTP: true, AllowNets: "127.0.0.0/8", Ports: "*"}, deps)
	}},
}

// platform is the four services in this process, on a database each, with NATS
// between them. A receiver of webhooks takes everything.
type platform struct {
	t        *testing.T
	services []*running
	bus      *bus.Bus
	receiver string
	seen     map[string]bool // "GET /path 200" for each kind of answer so far
}

// running is one service. It answers calls that never leave the process.
type running struct {
	name    string
	doc     *document
	handler http.Handler
	deps    service.Deps
}

func startPlatform(t *testing.T, limiter *web.Limiter) *platform {
	t.Helper()
	databases := map[string]string{}
	for _, b := range blueprints {
		databases[b.name] = testkit.Database(t, b.schemas...)
	}
	return startPlatformOn(t, databases, limiter)
}

// startPlatformOn runs the services on migrated databases, by service.
func startPlatformOn(t *testing.T, databases map[string]string, limiter *web.Limiter) *platform {
	t.Helper()
	p := &platform{t: t, seen: map[string]bool{}}
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	p.receiver = receiver.URL
	nats := testkit.NATS(t).URL()
	p.bus = connect(t, nats)
	for _, b := range blueprints {
		published, err := b.document()
		if err != nil {
			t.Fatal(err)
		}
		pool, err := postgres.Open(t.Context(), databases[b.name], 8)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		s := &running{name: b.name, doc: readDocument(t, published), deps: service.Deps{
			Pool: pool, Bus: connect(t, nats), Log: zap.NewNop(), Now: time.Now, Limiter: limiter,
		}}
		wired, err := b.build(t.Context(), s.deps)
		if err != nil {
			t.Fatal(err)
		}
		s.handler = wired.Handler()
		p.services = append(p.services, s)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- wired.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("run %s: %v", b.name, err)
			}
		})
	}
	return p
}

func connect(t *testing.T, url string) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(bus.Config{URL: url, Name: t.Name()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// reply is what a call was answered.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// anonymous is the answer without its request id, headers included.
func (r reply) anonymous() string {
	id := r.header.Get("X-Request-Id")
	header := r.header.Clone()
	header.Del("X-Request-Id")
	return fmt.Sprintf("%d %v %s", r.status, header, strings.ReplaceAll(r.body, id, "…"))
}

// request is one call of an operation. Headers are name, value, name, value.
type request struct {
	address, credential string
	body                string
	headers             []string
	unmeasured          bool // the body comes without a Content-Length
}

// moneyPattern finds amounts that are not written as amounts are.
var moneyPattern = regexp.MustCompile(`"[a-z_]+_brl":(-?\d+(\.\d?|\.\d{3,})?[,}\]]|"|-?[\d.]+[eE])`)

// call makes one call and holds the answer against the document.
func (p *platform) call(s *running, o *operation, r request) reply {
	p.t.Helper()
	h := httptest.NewRequest(o.method, r.address, strings.NewReader(r.body))
	if r.body == "" && o.body == nil {
		h.Body = http.NoBody
	}
	if r.unmeasured {
		h.ContentLength = -1
	}
	if r.credential != "" {
		h.Header.Set("Authorization", "Bearer "+r.credential)
	}
	for i := 0; i < len(r.headers); i += 2 {
		h.Header.Add(r.headers[i], r.headers[i+1])
	}
	recorder := httptest.NewRecorder()
	var w http.ResponseWriter = recorder
	if o.streams() {
		ctx, leave := context.WithTimeout(h.Context(), patience)
		defer leave()
		w, h = &listening{recorder, leave}, h.WithContext(ctx)
	}
	s.handler.ServeHTTP(w, h)
	answer := recorder.Result()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	got := reply{answer.StatusCode, answer.Header, string(raw)}
	if err := o.checkBody(got.status, raw); err != nil {
		p.t.Errorf("%s answers %s, which is not what is documented: %v", o, got, err)
	}
	if err := o.checkHeaders(got.status, got.header); err != nil {
		p.t.Errorf("%s answers %s: %v", o, got, err)
	}
	if wrong := moneyPattern.FindString(got.body); wrong != "" {
		p.t.Errorf("%s answers the amount %s in %s", o, wrong, got)
	}
	p.seen[fmt.Sprint(o, " ", got.status)] = true
	return got
}

// listening is a caller who leaves with the first event.
type listening struct {
	*httptest.ResponseRecorder
	leave func()
}

func (l *listening) Flush() {
	if l.ResponseRecorder.Flush(); l.Body.Len() > 0 {
		l.leave()
	}
}

// every calls f for each operation of each service.
func (p *platform) every(f func(*running, *operation)) {
	for _, s := range p.services {
		for _, o := range s.doc.operations {
			f(s, o)
		}
	}
}
