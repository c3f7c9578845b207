// Package auth is who may ask: the format of API keys, what a key may do, and the
// copy of all keys that every service holds, so that it can judge a request while
// every other service is down.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
)

// A key is `ptl_` + 8 characters that name it + `_` + 32 random characters + 6
// characters of CRC-32 over all that stands before them. The prefix and the
// checksum let a secret scanner recognise a leaked key, and let us refuse a mistyped
// one without a look-up.
const (
	keyPrefix    = "ptl_"
	keyIDLength  = 8
	secretLength = 32
	sumLength    = 6
	keyLength    = len(keyPrefix) + keyIDLength + 1 + secretLength + sumLength

	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Credential is a well-formed key as a caller presented it.
type Credential struct {
	KeyID string
	hash  [sha256.Size]byte
}

// NewSecret makes a key: text is shown to its owner once, the rest is stored.
func NewSecret() (text, keyID string, hash [sha256.Size]byte, err error) {
	random, err := randomText(keyIDLength + secretLength)
	if err != nil {
		return "", "", hash, err
	}
	keyID = random[:keyIDLength]
	text = keyPrefix + keyID + "_" + random[keyIDLength:]
	text += checksum(text)
	return text, keyID, sha256.Sum256([]byte(text)), nil
}

// Parse checks the form and the checksum of a key; it needs no look-up.
func Parse(text string) (Credential, bool) {
	named, ok := strings.CutPrefix(text, keyPrefix)
	if !ok || len(text) != keyLength || named[keyIDLength] != '_' {
		return Credential{}, false
	}
	keyID, secret := named[:keyIDLength], named[keyIDLength+1:]
	if !plain(keyID) || !plain(secret) {
		return Credential{}, false
	}
	body, sum := text[:keyLength-sumLength], text[keyLength-sumLength:]
	if subtle.ConstantTimeCompare([]byte(checksum(body)), []byte(sum)) != 1 {
		return Credential{}, false
	}
	return Credential{KeyID: keyID, hash: sha256.Sum256([]byte(text))}, true
}

// plain tells whether text has no character but those of the alphabet. Anybody can
// compute a checksum: it does not keep strange bytes from a database.
func plain(text string) bool {
	for i := range len(text) {
		if strings.IndexByte(alphabet, text[i]) < 0 {
			return false
		}
	}
	return true
}

func checksum(text string) string {
	n := crc32.ChecksumIEEE([]byte(text))
	var digits [sumLength]byte
	for i := sumLength - 1; i >= 0; i-- {
		digits[i] = alphabet[n%62]
		n /= 62
	}
	return string(digits[:])
}

func randomText(n int) (string, error) {
	text := make([]byte, n)
	for i := range text {
		digit, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			return "", fmt.Errorf("draw a random key: %w", err)
		}
		text[i] = alphabet[digit.Int64()]
	}
	return string(text), nil
}

// Key is what a service knows of an API key. The clear text is not part of it.
type Key struct {
	ID        string            `json:"key_id"`
	Hash      [sha256.Size]byte `json:"hash"`
	TenantID  uuid.UUID         `json:"tenant_id"`
	Suspended bool              `json:"suspended"` // the tenant is
	Scopes    Scopes            `json:"scopes"`
	ExpiresAt *time.Time        `json:"expires_at"`
	RevokedAt *time.Time        `json:"revoked_at"`
	Version   int64             `json:"version"` // grows with every change; the highest holds
}

// errUnauthorized is one text for every reason, so that nobody can tell a key that
// never was from one that was revoked.
var errUnauthorized = fault.New(fault.Unauthorized, "unauthorized", "send a valid API key as: Authorization: Bearer <API_KEY>")

// Unauthorized is the answer to whoever shows no valid key.
func Unauthorized() error { return errUnauthorized }

// Admit decides whether the credential may use scope at the instant now. Its error
// is a fault: unauthorized, tenant_suspended or insufficient_scope, in that order.
func (k Key) Admit(c Credential, scope Scope, now time.Time) error {
	genuine := subtle.ConstantTimeCompare(k.Hash[:], c.hash[:]) == 1
	switch {
	case !genuine, k.RevokedAt != nil, k.ExpiresAt != nil && !now.Before(*k.ExpiresAt):
		return errUnauthorized
	case k.Suspended:
		return fault.New(fault.Forbidden, "tenant_suspended", "this tenant is suspended; ask the operator")
	case !k.Scopes.Has(scope):
		return fault.Newf(fault.Forbidden, "insufficient_scope", "this key lacks the scope %s", scope)
	default:
		return nil
	}
}
