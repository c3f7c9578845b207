package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/webhook"
)

const signaturePrefix = "sha256="

// sign returns the value of X-Service-Signature for a raw request body: signaturePrefix
// and the HMAC-SHA256 of the body in 64 lower-case hexadecimal digits.
//
// The key is the secret's text exactly as its owner was shown it, "whsec_" included,
// so that a receiver needs no decoding.
func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return signaturePrefix + hex.EncodeToString(mac.Sum(nil))
}

// signStandard returns one signature of webhook-signature as Standard Webhooks 1.0.0 has
// it: "v1," and the HMAC-SHA256 of id, timestamp and body, joined by points, in base64.
//
// The key is the 32 bytes that the secret's 43 characters after "whsec_" encode.
func signStandard(secret, id, timestamp string, body []byte) (string, error) {
	key, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return "", fmt.Errorf("decode secret: it is not %s and base64url", secretPrefix)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// The headers that sign a request as Standard Webhooks 1.0.0 has it.
const (
	standardIDHeader        = "Webhook-Id"        // the event's id
	standardTimestampHeader = "Webhook-Timestamp" // of the attempt, in seconds since 1970
	standardSignatureHeader = "Webhook-Signature" // by each secret, separated by blanks
)

// sealedSecrets are what the requests of one endpoint are signed with.
type sealedSecrets struct {
	secret   []byte // nil once the endpoint is deleted
	previous []byte // nil but for the overlap after a rotation
	standard bool   // sign as Standard Webhooks as well
}

// signingColumns are what sealedSecrets.columns takes, in its order.
const signingColumns = `secret, case when previous_until > now() then previous_secret end as previous_secret, standard_webhooks`

func (k *sealedSecrets) columns() []any { return []any{&k.secret, &k.previous, &k.standard} }

// signatures are what proves that a request is ours.
type signatures struct {
	value string      // of X-Service-Signature
	extra http.Header // the headers that the endpoint has beside it; nil by default
}

// sign signs a request of the endpoint that tells body at a moment, by all secrets that
// are valid then.
func (s *sealer) sign(endpointID uuid.UUID, keys sealedSecrets, id event.ID, at time.Time, body []byte) (signatures, error) {
	secret, err := s.open(endpointID, keys.secret)
	if err != nil {
		return signatures{}, err
	}
	secrets := []string{secret}
	signed := signatures{value: sign(secret, body)}
	if keys.previous == nil && !keys.standard {
		return signed, nil
	}
	signed.extra = http.Header{}
	if keys.previous != nil {
		previous, err := s.open(endpointID, keys.previous)
		if err != nil {
			return signatures{}, err
		}
		secrets = append(secrets, previous)
		signed.extra.Set(webhook.PreviousHeader, sign(previous, body))
	}
	if keys.standard {
		timestamp := strconv.FormatInt(at.Unix(), 10)
		list := make([]string, len(secrets))
		for i, secret := range secrets {
			if list[i], err = signStandard(secret, id.String(), timestamp, body); err != nil {
				return signatures{}, err
			}
		}
		signed.extra.Set(standardIDHeader, id.String())
		signed.extra.Set(standardTimestampHeader, timestamp)
		signed.extra.Set(standardSignatureHeader, strings.Join(list, " "))
	}
	return signed, nil
}

// text is how the signatures are kept: the value, and each extra header on a line of its
// own.
func (g signatures) text() string {
	lines := []string{g.value}
	for _, name := range slices.Sorted(maps.Keys(g.extra)) {
		lines = append(lines, name+": "+g.extra.Get(name))
	}
	return strings.Join(lines, "\n")
}

// readSignatures reads what text has written.
func readSignatures(text string) signatures {
	value, rest, _ := strings.Cut(text, "\n")
	signed := signatures{value: value}
	for line := range strings.Lines(rest) {
		if signed.extra == nil {
			signed.extra = http.Header{}
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		signed.extra.Set(name, value)
	}
	return signed
}
