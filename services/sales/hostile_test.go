package sales

import (
	"bufio"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/web"
)

// sealed adds the checksum that every key ends in.
func sealed(key string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := crc32.ChecksumIEEE([]byte(key))
	var tail string
	for range 6 {
		tail = string(digits[sum%62]) + tail
		sum /= 62
	}
	return key + tail
}

func TestACallWithoutAValidKeyIsRefusedAndTellsNothing(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	revoked := f.post("/api/v1/api-keys", `{"name":"revoked"}`).want(201)
	f.call("DELETE", "/api/v1/api-keys/"+revoked.text("api_key_id"), "").want(204)
	expired := f.post("/api/v1/api-keys", `{"name":"expired","expires_at":"2099-01-01T00:00:00Z"}`).want(201)
	if _, err := f.deps.Pool.Exec(t.Context(), `update api_keys set expires_at = now() where api_key_id = $1`, expired.text("api_key_id")); err != nil {
		t.Fatal(err)
	}
	unknown, _, _, err := auth.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	unused := f.post("/api/v1/api-keys", `{"name":"unused"}`).want(201)
	if sealed(f.key[:len(f.key)-6]) != f.key {
		t.Fatalf("the checksum of %s is not what the contract says", f.key)
	}
	wrongSum := f.key[:len(f.key)-1] + "0"
	if wrongSum == f.key {
		wrongSum = f.key[:len(f.key)-1] + "1"
	}
	bearer := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	var first string
	f.recordsNothing(func() {
		for name, row := range map[string]struct {
			headers []string
			query   string
		}{
			"none":                      {},
			"empty":                     {headers: []string{"Authorization", ""}},
			"another scheme":            {headers: []string{"Authorization", "Basic " + f.key}},
			"no scheme":                 {headers: []string{"Authorization", f.key}},
			"the scheme alone":          {headers: []string{"Authorization", "Bearer"}},
			"the scheme and a space":    {headers: []string{"Authorization", "Bearer "}},
			"a wrong checksum":          {headers: bearer(wrongSum)},
			"unknown":                   {headers: bearer(unknown)},
			"a forged secret":           {headers: bearer(sealed(unused.text("prefix") + "_" + strings.Repeat("a", 32)))},
			"revoked":                   {headers: bearer(revoked.text("api_key"))},
			"expired":                   {headers: bearer(expired.text("api_key"))},
			"a character short":         {headers: bearer(f.key[:len(f.key)-1])},
			"a character long":          {headers: bearer(f.key + "0")},
			"something after it":        {headers: bearer(f.key + " x")},
			"two keys in one header":    {headers: bearer(f.key + ", Bearer " + f.key)},
			"two headers":               {headers: append(bearer(f.key), bearer(f.key)...)},
			"in the query":              {query: "?api_key=" + f.key + "&access_token=" + f.key},
			"in another header":         {headers: []string{"X-Api-Key", f.key}},
			"8 KB":                      {headers: bearer("ptl_" + strings.Repeat("a", 8<<10))},
			"the operator's token":      {headers: bearer(operatorToken)},
			"capitals instead of small": {headers: bearer(strings.ToUpper(f.key))},
		} {
			t.Run(name, func(t *testing.T) {
				f := f.in(t)
				answer := f.send("POST", "/api/v1/sales"+row.query, f.sale("refused"), row.headers...).refused(401, "unauthorized")
				if got := answer.Header.Get("WWW-Authenticate"); got != "Bearer" {
					t.Errorf("WWW-Authenticate: %s", got)
				}
				if first == "" {
					first = answer.anonymous()
				}
				if got := answer.anonymous(); got != first {
					t.Errorf("answered %s, but to somebody else %s", got, first)
				}
			})
		}
	})
	shown := f.get("/api/v1/api-keys?limit=100").want(200)
	for _, key := range shown.object()["data"].([]any) {
		if key := key.(map[string]any); key["name"] == "unused" && key["last_used_at"] != nil {
			t.Errorf("a forged secret counts as a use of the key: %v", key)
		}
	}
	f.send("POST", "/api/v1/sales", f.sale("accepted"), "Authorization", "bEARER "+f.key).want(201)
}

func TestTheOperatorsAddressesTakeNoTenantsKey(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.recordsNothing(func() {
		for _, key := range []string{f.key, "", operatorToken + "x", operatorToken[1:]} {
			f.send("POST", "/admin/v1/tenants", `{"name":"x"}`, "Authorization", "Bearer "+key).refused(401, "unauthorized")
			f.send("PATCH", "/admin/v1/tenants/"+f.tenant, `{"status":"suspended"}`, "Authorization", "Bearer "+key).refused(401, "unauthorized")
		}
	})
}

func TestWithoutATokenNobodyIsTheOperator(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	s, err := New(t.Context(), Config{}, f.deps)
	if err != nil {
		t.Fatal(err)
	}
	f.url = serve(t, s.Handler())
	for _, token := range []string{"", " ", operatorToken} {
		f.send("GET", "/admin/v1/tenants", "", "Authorization", "Bearer "+token).refused(401, "unauthorized")
	}
}

func TestASuspendedTenantIsRefusedUntilItIsActiveAgain(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.post("/api/v1/sales", f.sale("before")).want(201)
	f.admin("PATCH", "/admin/v1/tenants/"+f.tenant, `{"status":"suspended"}`).want(200)
	f.recordsNothing(func() {
		f.post("/api/v1/sales", f.sale("during")).refused(403, "tenant_suspended")
		f.post("/api/v1/sales", f.sale("before")).refused(403, "tenant_suspended")
		f.get("/api/v1/sales").refused(403, "tenant_suspended")
	})
	f.admin("PATCH", "/admin/v1/tenants/"+f.tenant, `{"status":"active"}`).want(200)
	f.post("/api/v1/sales", f.sale("during")).want(201)
}

// endless hides the length of a body, so that it is sent in chunks.
type endless struct{ io.Reader }

func TestWhatHTTPItselfForbidsIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	valid := f.sale("refused")
	long := func(size int) string { return valid + strings.Repeat(" ", size-len(valid)) }
	f.recordsNothing(func() {
		for name, row := range map[string]struct {
			method, path, body string
			headers            []string
			chunked            bool
			status             int
			code, allow        string
		}{
			"a method that a list has not":     {method: "DELETE", path: "/api/v1/sales", status: 405, code: "method_not_allowed", allow: "GET, POST"},
			"a method that a sale has not":     {method: "PATCH", path: "/api/v1/sales/" + f.plan, status: 405, code: "method_not_allowed", allow: "GET"},
			"a method that refunds have not":   {method: "DELETE", path: "/api/v1/sales/" + f.plan + "/refunds", status: 405, code: "method_not_allowed", allow: "GET, POST"},
			"a method that a link has not":     {method: "POST", path: f.link, status: 405, code: "method_not_allowed", allow: "PUT, DELETE"},
			"an unknown path":                  {path: "/api/v1/nothing", status: 404, code: "not_found"},
			"the root":                         {path: "/", status: 404, code: "not_found"},
			"a slash at the end":               {path: "/api/v1/sales/", status: 404, code: "not_found"},
			"another version":                  {path: "/api/v2/sales", status: 404, code: "not_found"},
			"XML":                              {headers: []string{"Content-Type", "text/xml"}, status: 415, code: "unsupported_media_type"},
			"a form":                           {headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 415, code: "unsupported_media_type"},
			"a type that only begins right":    {headers: []string{"Content-Type", "application/jsonp"}, status: 415, code: "unsupported_media_type"},
			"two types":                        {headers: []string{"Content-Type", "application/json", "Content-Type", "application/json"}, status: 415, code: "unsupported_media_type"},
			"compressed":                       {headers: []string{"Content-Encoding", "gzip"}, status: 415, code: "unsupported_media_type"},
			"64 KiB and one":                   {body: long(64<<10 + 1), status: 413, code: "payload_too_large"},
			"64 KiB and one of unknown length": {body: long(64<<10 + 1), chunked: true, status: 413, code: "payload_too_large"},
			"a megabyte of unknown length":     {body: long(1 << 20), chunked: true, status: 413, code: "payload_too_large"},
		} {
			t.Run(name, func(t *testing.T) {
				if row.method == "" {
					row.method = "POST"
				}
				if row.path == "" {
					row.path = "/api/v1/sales"
				}
				if row.body == "" {
					row.body = valid
				}
				var body io.Reader = strings.NewReader(row.body)
				if row.chunked {
					body = endless{body}
				}
				answer, err := f.try(row.method, row.path, body, append(row.headers, "Authorization", "Bearer "+f.key)...)
				if err != nil {
					t.Fatal(err)
				}
				answer.t = t
				answer.refused(row.status, row.code)
				if got := answer.Header.Get("Allow"); got != row.allow {
					t.Errorf("Allow is %q, want %q", got, row.allow)
				}
			})
		}
	})
}

func TestWhatHTTPAllowsIsAccepted(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	bearer := []string{"Authorization", "Bearer " + f.key}
	for i, header := range [][]string{
		nil, {"Content-Type", "application/json"}, {"Content-Type", "application/json;charset=utf-8"},
		{"Content-Type", `Application/JSON; charset="UTF-8"; v=1`}, {"Content-Type", "application/json; charset=utf-8"},
	} {
		f.send("POST", "/api/v1/sales", f.sale(fmt.Sprint("type-", i)), append(header, bearer...)...).want(201)
	}
	body := f.sale("full")
	body += strings.Repeat(" ", 64<<10-len(body))
	f.send("POST", "/api/v1/sales", body, bearer...).want(201)
	answer, err := f.try("POST", "/api/v1/sales", endless{strings.NewReader(body)}, bearer...)
	if err != nil {
		t.Fatal(err)
	}
	answer.want(200).shows("idempotent", "true")
}

func TestTheCallersRequestIDIsKeptIfItCanBe(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for given, kept := range map[string]bool{
		"order 17/a": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "pedido-é": false, "tab\there": false,
	} {
		answer := f.send("GET", "/api/v1/sales", "", "X-Request-Id", given).refused(401, "unauthorized")
		if got := answer.Header.Get("X-Request-Id"); (got == given) != kept {
			t.Errorf("%q came back as %q", given, got)
		}
	}
}

func TestWhileTheDatabaseIsDownNothingIsAcknowledged(t *testing.T) {
	t.Parallel()
	f, server := startOnOwnServer(t)
	known := f.post("/api/v1/sales", f.sale("known")).want(201)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.post("/api/v1/sales", f.sale("new")).refused(503, "unavailable")
		f.post("/api/v1/sales", f.sale("known")).refused(503, "unavailable")
		f.get("/api/v1/sales").refused(503, "unavailable")
		f.get("/api/v1/sales/"+known.text("sale_id")).refused(503, "unavailable")
		f.post("/api/v1/conversions", f.conversion("new")).refused(503, "unavailable")
		f.get("/api/v1/conversions").refused(503, "unavailable")
		f.post("/api/v1/partners", `{"name":"Rui","referral_code":"rui"}`).refused(503, "unavailable")
		f.patch("/api/v1/campaigns/"+f.campaign, `{"status":"paused"}`).refused(503, "unavailable")
		f.call("PUT", f.link, "").refused(503, "unavailable")
		f.admin("GET", "/admin/v1/tenants", "").refused(503, "unavailable")
	}
	f.get("/readyz").want(503).shows("status", "unavailable")
	f.get("/healthz").want(200)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.post("/api/v1/sales", f.sale("known")).want(200).shows("sale_id", known.text("sale_id"))
	f.post("/api/v1/sales", f.sale("new")).want(201)
	f.get("/readyz").want(200).shows("status", "degraded") // there is no NATS
	if n := f.rows("sales"); n != 2 {
		t.Errorf("%d sales are recorded, want 2", n)
	}
}

// serve answers as a program does, with all limits, and returns the base URL.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- web.Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		client.CloseIdleConnections()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func TestHeadersOver16KiBAreRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.url = serve(t, f.service.Handler())
	f.send("POST", "/api/v1/sales", f.sale("large"), "Authorization", "Bearer "+f.key, "X-Large", strings.Repeat("x", 15<<10)).want(201)
	f.recordsNothing(func() {
		for _, header := range [][]string{{"X-Large", strings.Repeat("x", 16<<10)}, {"Authorization", "Bearer " + strings.Repeat("x", 17<<10)}} {
			client.CloseIdleConnections() // net/http grants a connection that it has used before some more
			f.send("POST", "/api/v1/sales", f.sale("too large"), append(header, "Authorization", "Bearer "+f.key)...).want(431)
		}
	})
}

// The two limits take their real time, so they are waited for together.
func TestASlowCallerIsCutOff(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.url = serve(t, f.service.Handler())
	head := "POST /api/v1/sales HTTP/1.1\r\nHost: partilha\r\nAuthorization: Bearer " + f.key + "\r\n"
	body := f.sale("slow")
	var both errgroup.Group
	f.recordsNothing(func() {
		both.Go(func() error {
			_, took, err := f.drip("", head+"X-Slow: "+strings.Repeat("x", 100))
			if err == nil && (took < 4*time.Second || took > 9*time.Second) {
				err = fmt.Errorf("a slow head is cut off after %s, want 5 s", took)
			}
			return err
		})
		both.Go(func() error {
			answer, took, err := f.drip(head+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)), body)
			if err == nil && (took < 9*time.Second || took > 14*time.Second) {
				err = fmt.Errorf("a slow body is cut off after %s, want 10 s", took)
			}
			if answer != nil {
				answer.refused(408, "request_timeout")
			}
			return err
		})
		if err := both.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// drip sends a text at once and another at a byte a second, until the server answers
// or closes the connection. It returns the answer, if there is one, and when it came.
func (f *fixture) drip(atOnce, slowly string) (*response, time.Duration, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	began := time.Now()
	if _, err := io.WriteString(conn, atOnce); err != nil {
		return nil, 0, err
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for i := range slowly {
			if _, err := io.WriteString(conn, slowly[i:i+1]); err != nil {
				return
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	if err := conn.SetReadDeadline(began.Add(20 * time.Second)); err != nil {
		return nil, 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	took := time.Since(began)
	if err != nil {
		return nil, took, nil // closed without a word
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, took, nil // closed on the next byte, before the answer was read
	}
	return &response{t: f.t, Response: answer, raw: raw, about: "a slow call"}, took, nil
}
