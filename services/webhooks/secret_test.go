package webhooks

import (
	"bytes"
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

func testSealer(t *testing.T, keys string) *sealer {
	t.Helper()
	s, err := newSealer(keys)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASecretOpensForItsEndpointAlone(t *testing.T) {
	const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	endpoint, other := uuid.New(), uuid.New()
	s := testSealer(t, testKey)
	sealed, err := s.seal(endpoint, secret)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.open(endpoint, sealed); err != nil || got != secret {
		t.Errorf("open = %q, %v", got, err)
	}
	if bytes.Contains(sealed, []byte(secretPrefix)) || bytes.Contains(sealed, []byte(secret[len(secretPrefix):])) {
		t.Error("the secret can be read in the sealed bytes")
	}
	if got, err := s.open(other, sealed); err == nil || !strings.Contains(err.Error(), other.String()) {
		t.Errorf("for another endpoint open = %q, %v", got, err)
	}
	if got, err := testSealer(t, otherKey).open(endpoint, sealed); err == nil {
		t.Errorf("under another key open = %q", got)
	}
}
