package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// sign returns the value of X-Service-Signature for a raw request body: "sha256="
// and the HMAC-SHA256 of the body in 64 lower-case hexadecimal digits.
//
// The key is the secret's text exactly as its owner was shown it, "whsec_" included,
// so that a receiver needs no decoding.
func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
