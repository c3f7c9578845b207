package webhooks

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestNewSecret(t *testing.T) {
	shape := regexp.MustCompile(`^whsec_[A-Za-z0-9_-]{43}$`)
	seen := map[string]bool{}
	for range 100 {
		secret, err := newSecret()
		if err != nil {
			t.Fatal(err)
		}
		if !shape.MatchString(secret) {
			t.Fatalf("secret of %d characters does not match %s", len(secret), shape)
		}
		if seen[secret] {
			t.Fatal("the same secret came twice")
		}
		seen[secret] = true
	}
}

func testSealer(t *testing.T, fill byte) *sealer {
	t.Helper()
	s, err := newSealer(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSealer(t *testing.T) {
	const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	endpoint := uuid.MustParse("01939f7a-0000-7000-8000-000000000001")
	s := testSealer(t, 1)
	seal := func(t *testing.T) []byte {
		t.Helper()
		sealed, err := s.seal(endpoint, secret)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	sealed := seal(t)

	t.Run("opens what it sealed for the same endpoint", func(t *testing.T) {
		if got, err := s.open(endpoint, sealed); err != nil || got != secret {
			t.Errorf("open = %q, %v", got, err)
		}
	})
	t.Run("shows nothing of the secret", func(t *testing.T) {
		if bytes.Contains(sealed, []byte("whsec_")) || bytes.Contains(sealed, []byte(secret[6:])) {
			t.Error("the secret can be read in the sealed bytes")
		}
	})
	t.Run("starts with a nonce that never comes twice", func(t *testing.T) {
		again := seal(t)
		if bytes.Equal(sealed[:12], again[:12]) || bytes.Equal(sealed[12:], again[12:]) {
			t.Error("sealing twice gave the same bytes")
		}
	})
	t.Run("does not open for another endpoint", func(t *testing.T) {
		other := endpoint
		other[15]++
		if _, err := s.open(other, sealed); err == nil {
			t.Error("a secret opened for an endpoint that it was not sealed for")
		}
	})
	t.Run("does not open under another key", func(t *testing.T) {
		if _, err := testSealer(t, 2).open(endpoint, sealed); err == nil {
			t.Error("a secret opened under another key")
		}
	})
	t.Run("does not open with any one byte changed", func(t *testing.T) {
		for i := range sealed {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1
			if _, err := s.open(endpoint, changed); err == nil {
				t.Errorf("opened with byte %d changed", i)
			}
		}
	})
	t.Run("does not open when cut short at any length", func(t *testing.T) {
		for length := range sealed {
			if _, err := s.open(endpoint, sealed[:length]); err == nil {
				t.Errorf("opened %d of %d bytes", length, len(sealed))
			}
		}
	})
}

func TestNewSealerRefusesEveryOtherKey(t *testing.T) {
	for name, key := range map[string]string{
		"none":       "",
		"not base64": "not a key, but words",
		"16 bytes":   base64.StdEncoding.EncodeToString(make([]byte, 16)),
		"33 bytes":   base64.StdEncoding.EncodeToString(make([]byte, 33)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSealer(key)
			if err == nil {
				t.Fatal("accepted")
			}
			if key != "" && strings.Contains(err.Error(), key) {
				t.Error("the error shows the key")
			}
		})
	}
}
