package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"partilha.dev/pkg/webhook"

	"partilha.dev/deploy/e2e/stage"
)

// standardSecret is a secret as the libraries of Standard Webhooks take it: in standard
// base64, which the document says how to write.
var standardSecret = strings.NewReplacer("-", "+", "_", "/")

// TestTheLibraryOfStandardWebhooksBelievesWhatIsSentToWhoAsksForIt goes through a
// rotation: both secrets verify during its overlap, by the library and by our own package.
func TestTheLibraryOfStandardWebhooksBelievesWhatIsSentToWhoAsksForIt(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	tenant := stage.NewTenant(t, p)
	tenant.AwaitKey(t)
	type request struct {
		header http.Header
		body   []byte
	}
	arrived := make(chan request, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			arrived <- request{r.Header, body}
		}
	}))
	t.Cleanup(receiver.Close)
	next := func() request {
		t.Helper()
		select {
		case r := <-arrived:
			return r
		case <-time.After(stage.Soon):
			t.Fatal("no webhook comes")
			return request{}
		}
	}
	// believed tells whether the library believes it, and whether our own package does.
	believed := func(secret string, r request) (byLibrary, byPackage bool) {
		t.Helper()
		library, err := standard.NewWebhook("whsec_" + standardSecret.Replace(strings.TrimPrefix(secret, "whsec_")) + "=")
		if err != nil {
			t.Fatal(err)
		}
		return library.Verify(r.body, r.header) == nil, webhook.Verify(secret, r.body, r.header) == nil
	}

	endpoint := tenant.Must(t, 201, "POST", "/api/v1/webhook-endpoints", stage.Object{"url": receiver.URL, "events": []string{"*"}, "standard_webhooks": true})
	first, address := endpoint.Text("secret"), "/api/v1/webhook-endpoints/"+endpoint.Text("endpoint_id")
	tenant.Must(t, 200, "POST", address+"/test", stage.Object{})
	tested := next()
	tenant.Must(t, 201, "POST", "/api/v1/partners", stage.Object{"name": "Ana", "referral_code": stage.ReferralCode})
	told := next()
	second := tenant.Must(t, 200, "POST", address+"/rotate-secret", stage.Object{}).Text("secret")
	tenant.Must(t, 201, "POST", "/api/v1/partners", stage.Object{"name": "Bia", "referral_code": "bia"})
	rotated := next()
	changed := request{rotated.header, append([]byte(" "), rotated.body...)}

	for name, row := range map[string]struct {
		secret string
		sent   request
		want   bool
	}{
		"a sample":                             {first, tested, true},
		"an event":                             {first, told, true},
		"the new secret":                       {second, rotated, true},
		"the old secret, during the overlap":   {first, rotated, true},
		"the new secret, before the rotation":  {second, told, false},
		"a body that was changed":              {second, changed, false},
		"a body that was changed, the old way": {first, changed, false},
	} {
		byLibrary, byPackage := believed(row.secret, row.sent)
		if byLibrary != row.want || byPackage != row.want {
			t.Errorf("%s: the library believes it: %t, our package: %t, want %t", name, byLibrary, byPackage, row.want)
		}
	}
}
