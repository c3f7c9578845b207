package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"partilha.dev/pkg/event"
)

// SignatureHeader is the header of a webhook that has its signature.
const SignatureHeader = "X-Service-Signature"

// Event is what a webhook tells. Its Data is JSON, of which package event has the shape
// for each Name: [event.CommissionAvailable] and so on. Store the ID: it is the same
// should the event ever come again.
type Event = event.Event[jsontext.Value]

// ErrSignature is the error of a webhook that the owner of the secret did not send, or
// did not send like this.
var ErrSignature = errors.New("the signature is not that of this body and secret")

// VerifyWebhook returns the event that a webhook tells of. The secret is that of the
// endpoint, exactly as it was shown; the signature is the request's [SignatureHeader];
// body is the raw body, before any parsing.
//
// It fails with [ErrSignature] for whatever is not signed with the secret; answer 401.
// Comparing takes the same time wherever a signature differs.
func VerifyWebhook(secret, signature string, body []byte) (Event, error) {
	if secret == "" {
		return Event{}, errors.New("verify webhook: the secret is empty, so anybody could sign")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	genuine := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	if !hmac.Equal([]byte(genuine), []byte(signature)) {
		return Event{}, fmt.Errorf("verify webhook: %w", ErrSignature)
	}
	told, err := event.Envelope(body)
	if err != nil {
		return Event{}, fmt.Errorf("verify webhook: %w", err)
	}
	return told, nil
}
