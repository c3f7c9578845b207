package webhook_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/webhook"
)

const (
	secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	body   = `{"event":"commission.available","event_id":"evt_0123456789abcdef0123456789abcdef","created_at":"2026-07-14T13:06:10.504218Z",` +
		`"tenant_id":"019f60b1-3400-7e63-82b7-095b0bf32c26","data":{"commission_id":"019f60bb-3400-708f-8271-887ce94707da","amount_brl":32.42,"note":"ação"}}`

	// signature is that of the body as Python's hmac module makes it.
	signature = "sha256=8668ee1db2e1eb052a96ed38adc45826068c8bc5897912507cb77711caf535e6"
	another   = "sha256=0000000000000000000000000000000000000000000000000000000000000000"
)

func signed(current, previous string) http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	if current != "" {
		header.Set("X-Service-Signature", current)
	}
	if previous != "" {
		header.Set("X-Service-Signature-Previous", previous)
	}
	return header
}

func TestAWebhookIsGenuineByEitherSignature(t *testing.T) {
	for name, header := range map[string]http.Header{
		"the only signature":                     signed(signature, ""),
		"the new secret, during its overlap":     signed(signature, another),
		"the old secret, during its overlap":     signed(another, signature),
		"a name that HTTP/2 wrote in lower case": func() http.Header { h := http.Header{}; h.Add("x-service-signature", signature); return h }(),
	} {
		if err := webhook.Verify(secret, []byte(body), header); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAWebhookOfAnybodyElseIsRefused(t *testing.T) {
	for name, row := range map[string]struct{ secret, signature, body string }{
		"another secret":            {secret + "x", signature, body},
		"the secret without prefix": {strings.TrimPrefix(secret, "whsec_"), signature, body},
		"another body":              {secret, signature, strings.Replace(body, "32.42", "92.42", 1)},
		"a blank more":              {secret, signature, body + " "},
		"no body":                   {secret, signature, ""},
		"no signature":              {secret, "", body},
		"no name of the hash":       {secret, strings.TrimPrefix(signature, "sha256="), body},
		"another hash":              {secret, strings.Replace(signature, "sha256", "sha512", 1), body},
		"only the name of the hash": {secret, "sha256=", body},
		"one digit short":           {secret, signature[:len(signature)-1], body},
		"one digit more":            {secret, signature + "0", body},
		"one digit wrong":           {secret, signature[:len(signature)-1] + "7", body},
		"no hexadecimal digit":      {secret, signature[:len(signature)-1] + "g", body},
		"capitals":                  {secret, strings.ToUpper(signature), body},
		"a blank before":            {secret, " " + signature, body},
		"two signatures in one":     {secret, signature + "," + signature, body},
	} {
		t.Run(name, func(t *testing.T) {
			for _, header := range []http.Header{signed(row.signature, ""), signed("", row.signature), signed(row.signature, another), signed(another, row.signature)} {
				if err := webhook.Verify(row.secret, []byte(row.body), header); !errors.Is(err, webhook.ErrSignature) {
					t.Errorf("with %v: %v", header, err)
				}
			}
		})
	}
}

// TestWithoutASecretNothingIsBelieved has a signature that is right for the empty secret:
// a receiver whose configuration is missing must not believe everybody.
func TestWithoutASecretNothingIsBelieved(t *testing.T) {
	const forged = "sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
	if err := webhook.Verify("", nil, signed(forged, forged)); err == nil || !strings.Contains(err.Error(), "secret is empty") {
		t.Errorf("it is believed: %v", err)
	}
}

func TestAnEventIsReadFromItsBody(t *testing.T) {
	told, err := webhook.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if told.Name != "commission.available" || told.ID.String() != "evt_0123456789abcdef0123456789abcdef" ||
		!told.CreatedAt.Equal(time.Date(2026, 7, 14, 13, 6, 10, 504218000, time.UTC)) ||
		told.TenantID.String() != "019f60b1-3400-7e63-82b7-095b0bf32c26" ||
		string(told.Data) != `{"commission_id":"019f60bb-3400-708f-8271-887ce94707da","amount_brl":32.42,"note":"ação"}` {
		t.Errorf("it is read as %+v", told)
	}
	for _, other := range []string{``, `{}`, `<b>`, `{"event"`, `null`, `[]`, body + "x", strings.Replace(body, `"event_id":"evt_`, `"event_id":"`, 1)} {
		if told, err := webhook.Parse([]byte(other)); err == nil || told.Name != "" {
			t.Errorf("%s is read as %+v", other, told)
		}
	}
}
