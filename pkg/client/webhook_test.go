package client_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/client"
)

const (
	secret  = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	webhook = `{"event":"commission.available","event_id":"evt_0123456789abcdef0123456789abcdef","created_at":"2026-07-14T13:06:10.504218Z",` +
		`"tenant_id":"019f60b1-3400-7e63-82b7-095b0bf32c26","data":{"commission_id":"019f60bb-3400-708f-8271-887ce94707da","amount_brl":32.42,"note":"ação"}}`

	// signature is that of the webhook as Python's hmac module makes it.
	signature = "sha256=8668ee1db2e1eb052a96ed38adc45826068c8bc5897912507cb77711caf535e6"
)

func TestAGenuineWebhookIsRead(t *testing.T) {
	told, err := client.VerifyWebhook(secret, signature, []byte(webhook))
	if err != nil {
		t.Fatal(err)
	}
	if told.Name != "commission.available" || told.ID.String() != "evt_0123456789abcdef0123456789abcdef" ||
		!told.CreatedAt.Equal(time.Date(2026, 7, 14, 13, 6, 10, 504218000, time.UTC)) ||
		told.TenantID.String() != "019f60b1-3400-7e63-82b7-095b0bf32c26" ||
		string(told.Data) != `{"commission_id":"019f60bb-3400-708f-8271-887ce94707da","amount_brl":32.42,"note":"ação"}` {
		t.Errorf("it is read as %+v", told)
	}
}

func TestAWebhookOfAnybodyElseIsRefused(t *testing.T) {
	for name, row := range map[string]struct{ secret, signature, body string }{
		"another secret":            {secret + "x", signature, webhook},
		"the secret without prefix": {strings.TrimPrefix(secret, "whsec_"), signature, webhook},
		"another body":              {secret, signature, strings.Replace(webhook, "32.42", "92.42", 1)},
		"a blank more":              {secret, signature, webhook + " "},
		"no body":                   {secret, signature, ""},
		"no signature":              {secret, "", webhook},
		"no name of the hash":       {secret, strings.TrimPrefix(signature, "sha256="), webhook},
		"another hash":              {secret, strings.Replace(signature, "sha256", "sha512", 1), webhook},
		"only the name of the hash": {secret, "sha256=", webhook},
		"one digit short":           {secret, signature[:len(signature)-1], webhook},
		"one digit more":            {secret, signature + "0", webhook},
		"one digit wrong":           {secret, signature[:len(signature)-1] + "7", webhook},
		"no hexadecimal digit":      {secret, signature[:len(signature)-1] + "g", webhook},
		"capitals":                  {secret, strings.ToUpper(signature), webhook},
		"a blank before":            {secret, " " + signature, webhook},
		"two signatures":            {secret, signature + "," + signature, webhook},
	} {
		t.Run(name, func(t *testing.T) {
			if told, err := client.VerifyWebhook(row.secret, row.signature, []byte(row.body)); !errors.Is(err, client.ErrSignature) || told.Name != "" {
				t.Errorf("it is read as %+v, %v", told, err)
			}
		})
	}
}

// TestWithoutASecretNothingIsBelieved has a signature that is right for the empty secret:
// a receiver whose configuration is missing must not believe everybody.
func TestWithoutASecretNothingIsBelieved(t *testing.T) {
	const forged = "sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
	if told, err := client.VerifyWebhook("", forged, nil); err == nil || !strings.Contains(err.Error(), "secret is empty") {
		t.Errorf("it is read as %+v, %v", told, err)
	}
}

func TestWhatIsSignedAndNoEventIsAnError(t *testing.T) {
	for body, signature := range map[string]string{ // by Python's hmac module too
		`{}`:       "sha256=fc9fa47ce1b1683e5c0ed52d6384a74aaa7fe90adc8eb0a39f2fe16f90e38edb",
		`<b>`:      "sha256=57ae7ff5d55eca499dd017cb6035b6fa9565d12d867d5992b4e733469dd75bfa",
		`{"event"`: "sha256=5d4ec893d7896d01bd698bb76f7470cd138354823c75542d29efa929ce166bb7",
	} {
		told, err := client.VerifyWebhook(secret, signature, []byte(body))
		if err == nil || errors.Is(err, client.ErrSignature) || told.Name != "" {
			t.Errorf("%s is read as %+v, %v", body, told, err)
		}
	}
}
