// Package webhook is for whoever receives Partilha's webhooks: it tells genuine ones from
// others and reads what they tell.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"partilha.dev/pkg/event"
)

// The headers of a webhook that have its signatures: by the endpoint's secret and, for a
// while after that was replaced, by the one before.
const (
	SignatureHeader = "X-Service-Signature"
	PreviousHeader  = "X-Service-Signature-Previous"
)

// ErrSignature is the error of a webhook that the owner of the secret did not send, or
// did not send like this.
var ErrSignature = errors.New("the signature is not that of this body and secret")

// Verify returns nil where a webhook is genuine. The secret is that of the endpoint,
// exactly as it was shown; body is the raw body, before any parsing; header is that of
// the request.
//
// While a secret is being replaced a webhook bears two signatures, and one of them is
// enough: it is genuine for a receiver that has the new secret already and for one that
// still has the old one. Whatever is not signed with the secret is [ErrSignature]; answer
// it with 401. Comparing takes the same time wherever a signature differs.
func Verify(secret string, body []byte, header http.Header) error {
	if secret == "" {
		return errors.New("verify webhook: the secret is empty, so anybody could sign")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	genuine := []byte("sha256=" + hex.EncodeToString(mac.Sum(nil)))
	for _, name := range []string{SignatureHeader, PreviousHeader} {
		if hmac.Equal(genuine, []byte(header.Get(name))) {
			return nil
		}
	}
	return fmt.Errorf("verify webhook: %w", ErrSignature)
}

// Event is what a webhook tells. Its Data is JSON, of which package event has the shape
// for each Name: [event.CommissionAvailable] and so on. Store the ID: it is the same
// should the event ever come again.
type Event = event.Event[jsontext.Value]

// Parse reads the event from the body of a webhook. Verify it first: Parse believes
// whatever it is given. It fails where a member of the envelope is missing or of another
// type, and ignores members that it does not know.
func Parse(body []byte) (Event, error) {
	told, err := event.Envelope(body)
	if err != nil {
		return Event{}, fmt.Errorf("parse webhook: %w", err)
	}
	return told, nil
}
