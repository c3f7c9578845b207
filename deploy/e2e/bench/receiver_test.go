package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
)

func TestAReceiverBelievesOnlyWhatIsSignedAndNoticesRepetitions(t *testing.T) {
	r, err := newReceiver()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.trust("whsec_right")
	sale, before := uuid.New(), time.Now()

	for _, call := range []struct {
		secret, event string
		status        int
	}{
		{"whsec_wrong", "commission.available", 401},
		{"whsec_right", "sale.recorded", 401},
		{"whsec_right", "commission.available", 204},
		{"whsec_right", "commission.available", 204},
	} {
		if got := sendWebhook(t, r.url(), call.secret, call.event, envelopeOf(t, sale)); got != call.status {
			t.Errorf("%s signed with %s is answered %d, want %d", call.event, call.secret, got, call.status)
		}
	}
	got := r.standing()
	if got.sales != 1 || got.repeated != 1 || got.refused != 2 {
		t.Errorf("it counts %d sales, %d repeated, %d refused", got.sales, got.repeated, got.refused)
	}
	if at, ok := r.when(sale); !ok || at.Before(before) || at != got.last {
		t.Errorf("it heard of the sale at %s, %t", at, ok)
	}
}

// envelopeOf is the event that tells of the sale's commission.
func envelopeOf(t *testing.T, sale uuid.UUID) string {
	t.Helper()
	e, err := event.Seal(uuid.New(), sale.String(), time.Now(), event.CommissionAvailable{SourceSaleID: &sale}, "")
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Body)
}

func sendWebhook(t *testing.T, url, secret, event, body string) (status int) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	request, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Service-Event", event)
	request.Header.Set("X-Service-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}
