package webhooks

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// secretPrefix lets secret scanners recognise a leaked signing secret.
const secretPrefix = "whsec_"

// newSecret returns a signing secret: "whsec_" and 32 random bytes in 43 characters
// of unpadded base64url.
func newSecret() (string, error) {
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return secretPrefix + base64.RawURLEncoding.EncodeToString(random[:]), nil
}

// sealer keeps signing secrets unreadable at rest: AES-256-GCM under one key of the
// service, bound to the endpoint that the secret belongs to. It is safe for
// concurrent use. Random nonces bound the use of one key to 2^32 secrets.
type sealer struct {
	aead cipher.AEAD
}

// newSealer takes the key as configured: 32 bytes in padded base64. Its error names
// what is wrong and never the key.
func newSealer(encodedKey string) (*sealer, error) {
	key, err := base64.StdEncoding.DecodeString(encodedKey)
	if err != nil {
		return nil, errors.New("decode key of secrets: not base64")
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("decode key of secrets: %d bytes, want 32", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("prepare key of secrets: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("prepare key of secrets: %w", err)
	}
	return &sealer{aead: aead}, nil
}

// seal encrypts the secret of one endpoint: a random nonce of 12 bytes, the
// ciphertext, a tag of 16 bytes. Sealing the same secret again gives other bytes.
func (s *sealer) seal(endpointID uuid.UUID, secret string) ([]byte, error) {
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	return s.aead.Seal(nonce, nonce, []byte(secret), endpointID[:]), nil
}

// open decrypts what seal made for the same endpoint under the same key. One changed
// byte, another endpoint or another key is an error, never a wrong secret.
func (s *sealer) open(endpointID uuid.UUID, sealed []byte) (string, error) {
	size := s.aead.NonceSize()
	if len(sealed) < size {
		return "", fmt.Errorf("open secret of endpoint %s: only %d bytes", endpointID, len(sealed))
	}
	secret, err := s.aead.Open(nil, sealed[:size], sealed[size:], endpointID[:])
	if err != nil {
		return "", fmt.Errorf("open secret of endpoint %s: %w", endpointID, err)
	}
	return string(secret), nil
}
