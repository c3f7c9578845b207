package auth_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
)

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

var keyForm = regexp.MustCompile(`^ptl_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$`)

// sum is the checksum of a key, worked out another way than the package does.
func sum(body string) string {
	n := uint64(crc32.ChecksumIEEE([]byte(body)))
	text := ""
	for range 6 {
		text = string(digits[n%62]) + text
		n /= 62
	}
	return text
}

func newSecret(t testing.TB) (text, id string, hash [32]byte) {
	t.Helper()
	text, id, hash, err := auth.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	return text, id, hash
}

func TestAKeyHasItsPrefixItsNameItsSecretAndItsChecksum(t *testing.T) {
	text, id, hash := newSecret(t)
	if !keyForm.MatchString(text) {
		t.Errorf("%q has another form", text)
	}
	if text[4:12] != id {
		t.Errorf("the key %q is called %q", text, id)
	}
	if body, end := text[:45], text[45:]; end != sum(body) {
		t.Errorf("checksum %q, want %q", end, sum(body))
	}
	if hash != sha256.Sum256([]byte(text)) {
		t.Error("the hash is not that of the whole key")
	}
	if c, ok := auth.Parse(text); !ok || c.KeyID != id {
		t.Errorf("a new key is read as %q, %t", c.KeyID, ok)
	}
}

func TestTheFormOfAKeyNeverChanges(t *testing.T) {
	const issued = "ptl_Ab3dEf9h_0123456789ABCDEFGHIJKLMNOPQRSTUV"
	const key = issued + "3h7fym"
	if want := issued + sum(issued); key != want {
		t.Fatalf("the example is wrong: %s", want)
	}
	if c, ok := auth.Parse(key); !ok || c.KeyID != "Ab3dEf9h" {
		t.Errorf("a key of the first release is read as %q, %t", c.KeyID, ok)
	}
}

func TestEveryChangeOfOneCharacterIsNoticed(t *testing.T) {
	text, _, _ := newSecret(t)
	for at := range len(text) {
		for b := range 256 {
			if byte(b) == text[at] {
				continue
			}
			changed := text[:at] + string([]byte{byte(b)}) + text[at+1:]
			if _, ok := auth.Parse(changed); ok {
				t.Errorf("%q passes for %q", changed, text)
			}
		}
	}
}

func TestAKeyOfAnotherFormIsNone(t *testing.T) {
	text, _, _ := newSecret(t)
	body := text[:45]
	withSum := func(body string) string { return body + sum(body) }
	for name, bad := range map[string]string{
		"nothing":                     "",
		"the prefix alone":            "ptl_",
		"one character short":         text[:len(text)-1],
		"a character too many":        text + "0",
		"a blank before it":           " " + text,
		"a line break after it":       text + "\n",
		"without its prefix":          text[4:],
		"a prefix in capitals":        withSum("PTL_" + body[4:]),
		"another prefix":              withSum("pat_" + body[4:]),
		"another separator":           withSum(body[:12] + "-" + body[13:]),
		"a shorter secret":            withSum(body[:44]),
		"two neighbours changed over": text[:20] + text[21:22] + text[20:21] + text[22:],
		"8 KB":                        text + strings.Repeat("x", 8<<10),
		"a name that is no text":      withSum("ptl_\xff\xfe\x00aaaaa" + body[12:]),
		"a name with a line break":    withSum("ptl_aaaa\naaa" + body[12:]),
		"a secret with a blank":       withSum(body[:30] + " " + body[31:]),
		"a secret that is no text":    withSum(body[:30] + "\x80" + body[31:]),
	} {
		if name == "two neighbours changed over" && bad == text {
			continue
		}
		if _, ok := auth.Parse(bad); ok {
			t.Errorf("%s passes: %q", name, bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	text, _, _ := newSecret(f)
	f.Add(text)
	f.Add("")
	f.Add("ptl_")
	f.Add(text[:45] + "000000")
	f.Add("ptl_\x00\xff345678_0123456789ABCDEFGHIJKLMNOPQRSTUV" + sum("ptl_\x00\xff345678_0123456789ABCDEFGHIJKLMNOPQRSTUV"))
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := auth.Parse(text)
		good := keyForm.MatchString(text) && text[45:] == sum(text[:45])
		if ok != good {
			t.Fatalf("%q: accepted %t, want %t", text, ok, good)
		}
		if ok && c.KeyID != text[4:12] || !ok && c != (auth.Credential{}) {
			t.Fatalf("%q names %q", text, c.KeyID)
		}
	})
}

func TestKeysAreDrawnAtRandom(t *testing.T) {
	const keys = 2000
	seen := map[string]bool{}
	count := map[rune]int{}
	for range keys {
		text, id, _ := newSecret(t)
		secret := text[13:45]
		if seen[id] || seen[secret] {
			t.Fatalf("%q was drawn twice", text)
		}
		seen[id], seen[secret] = true, true
		for _, r := range id + secret {
			count[r]++
		}
	}
	if len(count) != len(digits) {
		t.Errorf("%d different characters, want %d", len(count), len(digits))
	}
	// 80,000 draws of 62 characters: 1,290 of each, with a standard deviation of 36. Taking
	// a byte modulo 62 would make eight of them a quarter more frequent than the others.
	mean := float64(keys*40) / float64(len(digits))
	for r, n := range count {
		if d := float64(n) - mean; d > 250 || d < -250 {
			t.Errorf("%q was drawn %d times, about %.0f are to be expected", r, n, mean)
		}
	}
}

func TestAKeyIsAdmittedOrRefusedForTheFirstReasonThatApplies(t *testing.T) {
	now := time.Date(2026, 7, 14, 12, 0, 0, 0, time.UTC)
	text, id, hash := newSecret(t)
	credential, _ := auth.Parse(text)
	otherText, _, _ := newSecret(t)
	other, _ := auth.Parse(otherText)
	base := auth.Key{ID: id, Hash: hash, TenantID: uuid.New(), Scopes: auth.Scopes{auth.SalesRead, auth.SalesWrite}, Version: 1}

	revoked := func(k *auth.Key) { k.RevokedAt = new(now.Add(-time.Second)) }
	suspended := func(k *auth.Key) { k.Suspended = true }
	unscoped := func(k *auth.Key) { k.Scopes = nil }
	expiresAt := func(at time.Time) func(*auth.Key) { return func(k *auth.Key) { k.ExpiresAt = &at } }

	for name, c := range map[string]struct {
		change     []func(*auth.Key)
		credential auth.Credential
		want       string
	}{
		"a good key":                             {nil, credential, ""},
		"another secret":                         {nil, other, "unauthorized"},
		"no secret at all":                       {nil, auth.Credential{KeyID: id}, "unauthorized"},
		"revoked":                                {[]func(*auth.Key){revoked}, credential, "unauthorized"},
		"a moment before it expires":             {[]func(*auth.Key){expiresAt(now.Add(time.Nanosecond))}, credential, ""},
		"at the very instant that it expires":    {[]func(*auth.Key){expiresAt(now)}, credential, "unauthorized"},
		"expired":                                {[]func(*auth.Key){expiresAt(now.Add(-time.Hour))}, credential, "unauthorized"},
		"a suspended tenant":                     {[]func(*auth.Key){suspended}, credential, "tenant_suspended"},
		"without the scope":                      {[]func(*auth.Key){unscoped}, credential, "insufficient_scope"},
		"another secret, suspended, no scope":    {[]func(*auth.Key){suspended, unscoped}, other, "unauthorized"},
		"revoked, suspended, no scope":           {[]func(*auth.Key){revoked, suspended, unscoped}, credential, "unauthorized"},
		"expired, suspended, no scope":           {[]func(*auth.Key){expiresAt(now), suspended, unscoped}, credential, "unauthorized"},
		"a suspended tenant's key without scope": {[]func(*auth.Key){suspended, unscoped}, credential, "tenant_suspended"},
	} {
		key := base
		for _, change := range c.change {
			change(&key)
		}
		err := key.Admit(c.credential, auth.SalesRead, now)
		if got := codeOf(err); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestNobodyCanTellWhyAKeyIsUnauthorized(t *testing.T) {
	now := time.Now()
	text, id, hash := newSecret(t)
	credential, _ := auth.Parse(text)
	revoked := auth.Key{ID: id, Hash: hash, RevokedAt: &now}.Admit(credential, auth.SalesRead, now)
	expired := auth.Key{ID: id, Hash: hash, ExpiresAt: &now}.Admit(credential, auth.SalesRead, now)
	for _, err := range []error{revoked, expired} {
		if err == nil || err.Error() != auth.Unauthorized().Error() {
			t.Errorf("%v differs from %v", err, auth.Unauthorized())
		}
	}
}

func TestNoTextOfACredentialShowsTheKey(t *testing.T) {
	text, _, _ := newSecret(t)
	credential, _ := auth.Parse(text)
	if shown := fmt.Sprintf("%v %+v %#v", credential, credential, credential); strings.Contains(shown, text[13:45]) {
		t.Errorf("%s shows the secret", shown)
	}
}

func codeOf(err error) string {
	var f *fault.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return f.Code
	default:
		return err.Error()
	}
}
