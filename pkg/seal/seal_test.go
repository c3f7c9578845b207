package seal_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"strings"
	"testing"

	"partilha.dev/pkg/seal"
)

var (
	oldKey = encode(bytes.Repeat([]byte{1}, 32))
	newKey = encode(bytes.Repeat([]byte{2}, 32))
)

var (
	plaintext = []byte("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")
	owner     = []byte("owner")
)

func encode(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

func ring(t *testing.T, keys ...string) *seal.Ring {
	t.Helper()
	r, err := seal.NewRing(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sealed(t *testing.T, r *seal.Ring) []byte {
	t.Helper()
	made, err := r.Seal(plaintext, owner)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func mustOpen(t *testing.T, r *seal.Ring, made []byte) {
	t.Helper()
	if got, err := r.Open(made, owner); err != nil || !bytes.Equal(got, plaintext) {
		t.Errorf("opened %q, %v", got, err)
	}
}

func TestWhatIsSealedOpensForItsOwnerAlone(t *testing.T) {
	r := ring(t, oldKey)
	made := sealed(t, r)
	mustOpen(t, r, made)
	if bytes.Contains(made, plaintext[6:]) || len(made) != seal.IDSize+12+len(plaintext)+16 {
		t.Errorf("it is sealed as %q", made)
	}
	for _, other := range [][]byte{nil, []byte("other"), []byte("owner ")} {
		if _, err := r.Open(made, other); err == nil {
			t.Errorf("it opened for %q", other)
		}
	}
	if _, err := ring(t, newKey).Open(made, owner); err == nil {
		t.Error("it opened under another key")
	}
}

func TestSealingTheSameTwiceGivesOtherBytes(t *testing.T) {
	r := ring(t, oldKey)
	one, two := sealed(t, r), sealed(t, r)
	if bytes.Equal(one[seal.IDSize:seal.IDSize+12], two[seal.IDSize:seal.IDSize+12]) || bytes.Equal(one[16:], two[16:]) {
		t.Error("the nonce came twice")
	}
}

func TestNothingOpensThatWasChangedOrCutShort(t *testing.T) {
	r := ring(t, oldKey, newKey)
	made := sealed(t, r)
	for i := range made {
		for bit := range 8 {
			changed := bytes.Clone(made)
			changed[i] ^= 1 << bit
			if _, err := r.Open(changed, owner); err == nil {
				t.Errorf("it opened with bit %d of byte %d changed", bit, i)
			}
		}
		if _, err := r.Open(made[:i], owner); err == nil {
			t.Errorf("%d of %d bytes opened", i, len(made))
		}
	}
	if _, err := r.Open(append(bytes.Clone(made), 0), owner); err == nil {
		t.Error("it opened with a byte more")
	}
}

func TestTheFirstKeySealsAndAllOfThemOpen(t *testing.T) {
	before := sealed(t, ring(t, oldKey))
	both := ring(t, newKey, oldKey)
	after := sealed(t, both)
	mustOpen(t, both, before)
	mustOpen(t, both, after)
	mustOpen(t, ring(t, newKey), after)
	if _, err := ring(t, oldKey).Open(after, owner); err == nil {
		t.Error("the second key has sealed")
	}
	if both.Current(before) || !both.Current(after) || both.Current(nil) {
		t.Errorf("of the old seal current is %t, of the new one %t, of nothing %t", both.Current(before), both.Current(after), both.Current(nil))
	}
	if bytes.Equal(before[:seal.IDSize], after[:seal.IDSize]) {
		t.Error("both keys have the same id")
	}
}

// TestASealIsPlainAESGCM opens one by hand: an id, a nonce, and what the mode gives.
func TestASealIsPlainAESGCM(t *testing.T) {
	block, err := aes.NewCipher(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	made := sealed(t, ring(t, oldKey))[seal.IDSize:]
	if got, err := gcm.Open(nil, made[:12], made[12:], owner); err != nil || !bytes.Equal(got, plaintext) {
		t.Errorf("opened %q, %v", got, err)
	}
}

func TestBlanksAroundAKeyAreIgnored(t *testing.T) {
	mustOpen(t, ring(t, "\t"+newKey+" ", " \n"+oldKey+"\r\n"), sealed(t, ring(t, oldKey)))
}

func TestARingThatIsNotOfWholeKeysIsRefusedWithoutShowingOne(t *testing.T) {
	for name, row := range map[string]struct{ keys, want string }{
		"none":             {"", "key 1: 0 bytes, want 32"},
		"words":            {"not a key, but words", "key 1: not base64"},
		"16 bytes":         {encode(bytes.Repeat([]byte{7}, 16)), "key 1: 16 bytes, want 32"},
		"33 bytes":         {encode(bytes.Repeat([]byte{7}, 33)), "key 1: 33 bytes, want 32"},
		"unpadded":         {strings.TrimRight(oldKey, "="), "key 1: not base64"},
		"a short second":   {oldKey + "," + oldKey[:20], "key 2: 15 bytes, want 32"},
		"a comma too many": {oldKey + ",", "key 2: 0 bytes, want 32"},
		"one key twice":    {oldKey + "," + newKey + "," + oldKey, "key 3: is there already"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := seal.NewRing(row.keys); err == nil || err.Error() != row.want {
				t.Errorf("%v, want %s", err, row.want)
			}
		})
	}
}
