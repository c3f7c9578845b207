// Package seal keeps what must be read again, and by nobody else, unreadable at rest.
//
// It is AES-256-GCM under a ring of configured keys, of which the first one seals and
// all of them open. So a key is replaced while everything runs: put the new one in
// front, seal again what [Ring.Current] does not recognise, and drop the old one.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// IDSize is how many bytes at the front of what is sealed name the key: they are the
// same exactly where the key is.
const IDSize = 4

const keySize = 32

// Ring is one or more keys. It is safe for concurrent use. Nonces are random, which
// bounds the use of one key to 2^32 seals.
type Ring struct {
	keys []key // the first one seals
}

type key struct {
	id   []byte
	aead cipher.AEAD
}

// NewRing takes keys as they are configured: each of them 32 bytes in padded base64,
// separated by commas, the one that seals in front. Blanks around a key are ignored.
// Its error says which key is wrong and in what, and never shows one.
func NewRing(encoded string) (*Ring, error) {
	r := &Ring{}
	for text := range strings.SplitSeq(encoded, ",") {
		k, err := newKey(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", len(r.keys)+1, err)
		}
		if r.find(k.id) != nil {
			return nil, fmt.Errorf("key %d: is there already", len(r.keys)+1)
		}
		r.keys = append(r.keys, k)
	}
	return r, nil
}

func newKey(encoded string) (key, error) {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return key{}, errors.New("not base64") // the decoder's error tells of the key
	}
	if len(raw) != keySize {
		return key{}, fmt.Errorf("%d bytes, want %d", len(raw), keySize)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return key{}, fmt.Errorf("prepare cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, fmt.Errorf("prepare cipher: %w", err)
	}
	return key{id: identify(raw), aead: aead}, nil
}

// identify names a key by what only its owner can compute and nobody can turn back.
func identify(raw []byte) []byte {
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte("id of a sealing key"))
	return mac.Sum(nil)[:IDSize]
}

func (r *Ring) find(id []byte) *key {
	for i := range r.keys {
		if bytes.Equal(r.keys[i].id, id) {
			return &r.keys[i]
		}
	}
	return nil
}

// Seal encrypts plaintext under the first key and binds it to associated, which is not
// part of the result: the id of the row that it belongs to, so that it opens nowhere
// else. Sealing the same again gives other bytes. What comes out is IDSize bytes, a nonce
// of 12, the ciphertext, as long as plaintext, and a tag of 16.
func (r *Ring) Seal(plaintext, associated []byte) ([]byte, error) {
	first := r.keys[0]
	sealed := make([]byte, IDSize, IDSize+len(plaintext)+first.aead.Overhead())
	copy(sealed, first.id)
	return first.aead.Seal(sealed, nil, plaintext, associated), nil
}

// Open decrypts what Seal made for the same associated bytes under a key of the ring.
// One changed byte, other associated bytes or a key that is not there is an error, never
// another plaintext.
func (r *Ring) Open(sealed, associated []byte) ([]byte, error) {
	if len(sealed) < IDSize {
		return nil, fmt.Errorf("open seal: only %d bytes", len(sealed))
	}
	k := r.find(sealed[:IDSize])
	if k == nil {
		return nil, errors.New("open seal: none of the keys has sealed this")
	}
	plaintext, err := k.aead.Open(nil, nil, sealed[IDSize:], associated)
	if err != nil {
		return nil, fmt.Errorf("open seal: %w", err)
	}
	return plaintext, nil
}

// Current tells whether sealed names the first key. What does not has to be sealed
// again before its key can be dropped.
func (r *Ring) Current(sealed []byte) bool { return bytes.HasPrefix(sealed, r.keys[0].id) }
