package webhooks

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
)

const endpointsPath = "/api/v1/webhook-endpoints"

func TestASecretIsShownOnceAndStoredSealed(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(Config{SecretKey: testKey})

	first := k.ask(s, who, "POST", endpointsPath, `{"url":"https://example.com/hooks?a=1","events":["*","sale.recorded"],"description":"Bookkeeping"}`)
	var created wire
	first.must(201, &created)
	if !regexp.MustCompile(`^whsec_[A-Za-z0-9_-]{43}$`).MatchString(created.Secret) {
		t.Errorf("secret %q", created.Secret)
	}
	if created.URL != "https://example.com/hooks?a=1" || !slices.Equal(created.Events, []string{"*", "sale.recorded"}) ||
		created.Description == nil || *created.Description != "Bookkeeping" || created.Status != "enabled" || created.DisabledReason != nil {
		t.Errorf("created %s", first.Body)
	}

	one := k.ask(s, who, "GET", endpointsPath+"/"+strings.ToUpper(created.EndpointID), "")
	var read wire
	one.must(200, &read)
	withoutSecret := strings.Replace(first.Body.String(), `,"secret":"`+created.Secret+`"`, "", 1)
	if one.Body.String() != withoutSecret {
		t.Errorf("read %s, want %s", one.Body, withoutSecret)
	}
	list := k.ask(s, who, "GET", endpointsPath, "")
	if want := `{"data":[` + withoutSecret + `],"next_cursor":null}`; list.Body.String() != want {
		t.Errorf("list %s, want %s", list.Body, want)
	}

	var sealed []byte
	if err := k.pool.QueryRow(t.Context(), "select secret from endpoints").Scan(&sealed); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(sealed), created.Secret[len(secretPrefix):]) {
		t.Error("the secret is stored in clear")
	}
	if secret, err := s.sealer.open(uuid.MustParse(created.EndpointID), sealed); err != nil || secret != created.Secret {
		t.Errorf("the stored secret opens to %q, %v", secret, err)
	}
}

func TestEveryEventOfTheCatalogueCanBeChosen(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(Config{SecretKey: testKey})
	k.register(s, who, "https://example.com/", append([]string{usual}, deliverable...)...)
	k.ask(s, who, "POST", endpointsPath, `{"url":"https://example.com/","events":["partner.changed"]}`).refused(400, "invalid_body")
}

func TestARegistrationThatIsNotValidRecordsNothing(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(Config{SecretKey: testKey})
	for _, body := range []string{
		`{}`, `null`, `[]`, `{"url":"https://example.com/"}`, `{"events":["*"]}`,
		`{"url":"https://example.com/","events":[]}`,
		`{"url":"https://example.com/","events":["*","*"]}`,
		`{"url":"https://example.com/","events":["sale.sold"]}`,
		`{"url":"https://example.com/","events":"*"}`,
		`{"url":"","events":["*"]}`,
		`{"url":"http://example.com/","events":["*"]}`,
		`{"url":"https://example.com:22/","events":["*"]}`,
		`{"url":"https://127.0.0.1/","events":["*"]}`,
		`{"url":"https://127.1/","events":["*"]}`,
		`{"url":"https://2130706433/","events":["*"]}`,
		`{"url":"https://[::ffff:169.254.169.254]/","events":["*"]}`,
		`{"url":"https://localhost/","events":["*"]}`,
		`{"url":"https://user@example.com/","events":["*"]}`,
		`{"url":"file:///etc/passwd","events":["*"]}`,
		`{"url":"https://example.com/","events":["*"],"descripton":"typo"}`,
		fmt.Sprintf(`{"url":"https://example.com/","events":["*"],"description":%q}`, strings.Repeat("ã", 501)),
		`{"url":"https://example.com/","events":["*"],"max_attempts":0}`,
		`{"url":"https://example.com/","events":["*"],"max_attempts":21}`,
		`{"url":"https://example.com/","events":["*"],"max_attempts":1.5}`,
		`{"url":"https://example.com/","events":["*"],"standard_webhooks":"yes"}`,
		`{"url":"https://example.com/","events":["*"],"filter":[]}`,
		`{"url":"https://example.com/","events":["*"],"filter":{"partner_id":"01939f7a-0000-7000-8000-000000000001"}}`,
		`{"url":"https://example.com/","events":["*"],"filter":{"partner_ids":[]}}`,
		`{"url":"https://example.com/","events":["*"],"filter":{"partner_ids":["ana"]}}`,
		`{"url":"https://example.com/","events":["*"],"filter":{"campaign_ids":"01939f7a-0000-7000-8000-000000000001"}}`,
		`{"url":"https://example.com/","events":["*"],"filter":{"min_amount_brl":0}}`,
		`{"url":"https://example.com/","events":["*"],"filter":{"min_amount_brl":"10"}}`,
		`{"url":"https://example.com/","events":["*"],"filter":{"min_amount_brl":10.555}}`,
		`{"url":"https://example.com/","events":["*"],"filter":{"min_amount_brl":1E1000000000}}`,
	} {
		a := k.ask(s, who, "POST", endpointsPath, body)
		a.refused(400, "invalid_body")
		if !strings.Contains(a.Body.String(), `"details":[{"path":"`) {
			t.Errorf("%s: no details in %s", body, a.Body)
		}
	}
	k.ask(s, who, "POST", endpointsPath, fmt.Sprintf(`{"url":"https://example.com/%s","events":["*"]}`, strings.Repeat("a", 64<<10))).refused(413, "payload_too_large")
	if n := k.count("select count(*) from endpoints"); n != 0 {
		t.Errorf("%d endpoints were recorded", n)
	}
	k.ask(s, who, "POST", endpointsPath, fmt.Sprintf(`{"url":"https://example.com/","events":["*"],"description":%q}`, strings.Repeat("ã", 500))).must(201, nil)
}

func TestEndpointsNeedAKeyWithTheScope(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	tenant := uuid.New()
	reader, writer := k.member(tenant, auth.WebhooksRead), k.member(tenant, auth.WebhooksWrite)
	s := k.service(Config{SecretKey: testKey})
	id := uuid.NewString()
	for _, row := range []struct {
		method, path string
		lacks        member
	}{
		{"POST", endpointsPath, reader},
		{"DELETE", endpointsPath + "/" + id, reader},
		{"PATCH", endpointsPath + "/" + id, reader},
		{"POST", endpointsPath + "/" + id + "/rotate-secret", reader},
		{"POST", endpointsPath + "/" + id + "/test", reader},
		{"POST", endpointsPath + "/preview", reader},
		{"POST", endpointsPath + "/verify-signature", writer},
		{"GET", endpointsPath, writer},
		{"GET", endpointsPath + "/" + id, writer},
		{"GET", "/api/v1/webhook-deliveries", writer},
		{"GET", "/api/v1/webhook-deliveries/" + id, writer},
	} {
		k.ask(s, row.lacks, row.method, row.path, "").refused(403, "insufficient_scope")
		k.ask(s, member{}, row.method, row.path, "").refused(401, "unauthorized")
	}
	put := k.ask(s, writer, "PUT", endpointsPath, "")
	put.refused(405, "method_not_allowed")
	if allow := put.Header().Get("Allow"); allow != "GET, POST" {
		t.Errorf("Allow: %s", allow)
	}
}

func TestEndpointsAreListedNewestFirstPageByPage(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(Config{SecretKey: testKey})
	var want []string
	for range 5 {
		want = append(want, k.register(s, who, "https://example.com/", "*").EndpointID)
	}
	slices.Reverse(want)
	k.ask(s, who, "DELETE", endpointsPath+"/"+want[1], "").must(204, nil)
	want = slices.Delete(want, 1, 2)

	var got []string
	for path := endpointsPath + "?limit=2"; path != ""; {
		var page wirePage
		k.ask(s, who, "GET", path, "").must(200, &page)
		for _, e := range page.Data {
			got = append(got, e.EndpointID)
		}
		path = ""
		if page.NextCursor != nil {
			path = endpointsPath + "?limit=2&cursor=" + *page.NextCursor
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?cursor=", "?cursor=abc", "?unknown=1", "?limit=1&limit=2"} {
		k.ask(s, who, "GET", endpointsPath+query, "").refused(400, "invalid_parameter")
	}
}

func TestADeletedEndpointIsGone(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(Config{SecretKey: testKey})
	path := endpointsPath + "/" + k.register(s, who, "https://example.com/", "*").EndpointID
	k.ask(s, who, "POST", path+"/rotate-secret", "{}").must(200, nil)
	k.ask(s, who, "DELETE", path, "").must(204, nil)
	k.ask(s, who, "DELETE", path, "").refused(404, "not_found")
	k.ask(s, who, "GET", path, "").refused(404, "not_found")
	k.ask(s, who, "PATCH", path, `{"status":"enabled"}`).refused(404, "not_found")
	k.ask(s, who, "POST", path+"/rotate-secret", "{}").refused(404, "not_found")
	k.ask(s, who, "POST", path+"/test", "{}").refused(404, "not_found")
	if n := k.count("select count(*) from endpoints where secret is not null or previous_secret is not null"); n != 0 {
		t.Error("its secret is still stored")
	}
	k.ask(s, who, "GET", endpointsPath+"/not-an-id", "").refused(400, "invalid_parameter")
}

func TestAnotherTenantsEndpointReadsLikeNone(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	owner, stranger := k.member(uuid.New()), k.member(uuid.New())
	s := k.service(Config{SecretKey: testKey})
	theirs := k.register(s, owner, "https://example.com/", "*").EndpointID
	none := uuid.NewString()
	for _, row := range []struct{ method, under, body string }{
		{"GET", "", ""}, {"DELETE", "", ""}, {"PATCH", "", `{"status":"disabled"}`}, {"POST", "/rotate-secret", "{}"}, {"POST", "/test", "{}"},
	} {
		a := k.ask(s, stranger, row.method, endpointsPath+"/"+theirs+row.under, row.body)
		b := k.ask(s, stranger, row.method, endpointsPath+"/"+none+row.under, row.body)
		mustBeAlike(t, a, b)
	}
	var page wirePage
	k.ask(s, stranger, "GET", endpointsPath, "").must(200, &page)
	if len(page.Data) != 0 {
		t.Errorf("the stranger sees %v", page.Data)
	}
	k.ask(s, stranger, "POST", endpointsPath+"/preview", `{"event":"partner.created"}`).must(200, &page)
	if len(page.Endpoints) != 0 {
		t.Errorf("the stranger previews %v", page.Endpoints)
	}
	var still wire
	k.ask(s, owner, "GET", endpointsPath+"/"+theirs, "").must(200, &still)
	if still.Status != "enabled" {
		t.Error("the stranger has disabled it")
	}
}

// mustBeAlike fails the test unless both are the same 404 but for the request id.
func mustBeAlike(t *testing.T, a, b answer) {
	t.Helper()
	a.refused(404, "not_found")
	b.refused(404, "not_found")
	hide := regexp.MustCompile(`"request_id":"[^"]*"`)
	if x, y := hide.ReplaceAllString(a.Body.String(), ""), hide.ReplaceAllString(b.Body.String(), ""); x != y {
		t.Errorf("the answers differ: %s and %s", x, y)
	}
	a.Header().Del("X-Request-Id")
	b.Header().Del("X-Request-Id")
	if x, y := fmt.Sprint(a.Header()), fmt.Sprint(b.Header()); x != y {
		t.Errorf("the headers differ: %s and %s", x, y)
	}
}

func TestATenantHasFiftyEndpointsHoweverManyAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, other := k.member(uuid.New()), k.member(uuid.New())
	one, two := k.service(Config{SecretKey: testKey}), k.service(Config{SecretKey: testKey})

	// race makes so many endpoints at once, on both instances, and counts the successes.
	race := func(calls int) (created int) {
		statuses := make([]int, calls)
		var all sync.WaitGroup
		for i := range calls {
			s := []*Service{one, two}[i%2]
			all.Go(func() {
				statuses[i] = k.ask(s, who, "POST", endpointsPath, `{"url":"https://example.com/","events":["*"]}`).Code
			})
		}
		all.Wait()
		for _, status := range statuses {
			switch status {
			case 201:
				created++
			case 422:
			default:
				t.Errorf("status %d", status)
			}
		}
		return created
	}
	if created := race(64); created != maxEndpoints {
		t.Errorf("%d were answered 201, want %d", created, maxEndpoints)
	}
	for range 5 {
		var page wirePage
		k.ask(one, who, "GET", endpointsPath+"?limit=1", "").must(200, &page)
		k.ask(one, who, "DELETE", endpointsPath+"/"+page.Data[0].EndpointID, "").must(204, nil)
		if created := race(16); created != 1 {
			t.Errorf("%d took the place of one that was deleted", created)
		}
	}
	if stored := k.count("select count(*) from endpoints where deleted_at is null"); stored != maxEndpoints {
		t.Errorf("%d are stored, want %d", stored, maxEndpoints)
	}
	k.ask(one, who, "POST", endpointsPath, `{"url":"https://example.com/","events":["*"]}`).refused(422, "rule_violated")
	k.register(one, other, "https://example.com/", "*")
}

func TestAServiceWithTheWrongSecretKeyDoesNotStart(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	k.register(k.service(Config{SecretKey: testKey}), who, "https://example.com/", "*")
	for _, row := range []struct {
		config Config
		want   string
	}{
		{Config{SecretKey: base64.StdEncoding.EncodeToString(make([]byte, 32))}, "WEBHOOKS_SECRET_KEY"},
		{Config{SecretKey: "short"}, "WEBHOOKS_SECRET_KEY"},
		{Config{SecretKey: testKey, Ports: "https"}, "WEBHOOKS_PORTS"},
		{Config{SecretKey: testKey, AllowNets: "10.0.0.0"}, "WEBHOOKS_ALLOW_NETS"},
		{Config{SecretKey: testKey, Timeout: 20e9, Lease: 30e9}, "WEBHOOKS_LEASE"},
	} {
		if _, err := New(t.Context(), row.config, k.deps()); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("started with %+v: %v, want %s", row.config, err, row.want)
		}
	}
}

func TestNoAddressTakesAParameterThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	id := k.register(s, who, "https://example.com/", "*").EndpointID
	template := regexp.MustCompile(`\{[a-z_]+\}`)
	for _, route := range s.routes() {
		path, body := template.ReplaceAllString(route.Pattern, id), ""
		if route.Method == http.MethodPost || route.Method == http.MethodPatch {
			body = `{}`
		}
		a := k.ask(s, who, route.Method, path+"?nothing=1", body)
		a.refused(400, "invalid_parameter")
		if !strings.Contains(a.Body.String(), "nothing") {
			t.Errorf("%s %s: %s", route.Method, route.Pattern, a.Body)
		}
	}
}
