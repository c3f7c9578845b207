package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestAVerificationSaysWhichPartIsWrong(t *testing.T) {
	t.Parallel()
	const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	const body = `{"event":"partner.created","data":{"name":"São João"}}`
	key, err := base64.RawURLEncoding.DecodeString(secret[len(secretPrefix):])
	if err != nil {
		t.Fatal(err)
	}
	genuine := sign(secret, []byte(body))
	digest := strings.TrimPrefix(genuine, "sha256=")
	raw, err := hex.DecodeString(digest)
	if err != nil {
		t.Fatal(err)
	}
	sha512 := strings.Repeat("0", 128)
	decoded := hmac.New(sha256.New, key)
	decoded.Write([]byte(body))
	type said struct{ part, text string }
	for name, row := range map[string]struct {
		secret, signature, body string
		want                    []said
	}{
		"it matches": {secret, genuine, body, nil},

		"the signature's prefix is missing":      {secret, digest, body, []said{{"signature", "prefix sha256= is missing"}}},
		"the signature is in capitals":           {secret, "sha256=" + strings.ToUpper(digest), body, []said{{"signature", "capitals"}}},
		"its prefix is in capitals":              {secret, "SHA256=" + digest, body, []said{{"signature", "sha256= in lower case"}}},
		"the signature has white space":          {secret, genuine + "\n", body, []said{{"signature", "white space"}}},
		"the header's name is in front":          {secret, "X-Service-Signature: " + genuine, body, []said{{"signature", "header's name"}}},
		"the signature is in base64":             {secret, "sha256=" + base64.StdEncoding.EncodeToString(raw), body, []said{{"signature", "base64"}}},
		"the signature is in base64, bare":       {secret, base64.StdEncoding.EncodeToString(raw), body, []said{{"signature", "prefix"}, {"signature", "base64"}}},
		"the signature is short":                 {secret, genuine[:len(genuine)-1], body, []said{{"signature", "64 hexadecimal digits"}}},
		"the signature is long":                  {secret, genuine + "0", body, []said{{"signature", "64 hexadecimal digits"}}},
		"the signature is not hexadecimal":       {secret, genuine[:len(genuine)-1] + "g", body, []said{{"signature", "other than hexadecimal"}}},
		"another hash":                           {secret, "sha512=" + sha512, body, []said{{"signature", "sha512"}, {"signature", "64 hexadecimal"}}},
		"two signatures":                         {secret, genuine + "," + genuine, body, []said{{"signature", "more than one"}}},
		"no signature":                           {secret, "", body, []said{{"signature", "prefix"}, {"signature", "64 hexadecimal"}}},
		"the secret without its prefix":          {secret[6:], genuine, body, []said{{"secret", "with whsec_ in front"}}},
		"the secret with a line end":             {secret + "\n", genuine, body, []said{{"secret", "white space"}}},
		"the key was without the prefix":         {secret, sign(secret[6:], []byte(body)), body, []said{{"secret", "prefix is part of the key"}}},
		"the key was the decoded secret":         {secret, "sha256=" + hex.EncodeToString(decoded.Sum(nil)), body, []said{{"secret", "decoded bytes"}}},
		"the body has a line end more":           {secret, genuine, body + "\n", []said{{"body", "without the white space"}}},
		"the body has lost its line end":         {secret, sign(secret, []byte(body+"\n")), body, []said{{"body", "line end after it"}}},
		"the body has other line ends":           {secret, sign(secret, []byte("{\n}")), "{\r\n}", []said{{"body", "(LF)"}}},
		"the body has other line ends, reversed": {secret, sign(secret, []byte("{\r\n}")), "{\n}", []said{{"body", "(CR LF)"}}},
		"the body has a byte-order mark":         {secret, genuine, "\uFEFF" + body, []said{{"body", "byte-order mark"}}},
		"the body was written anew":              {secret, genuine, strings.ReplaceAll(strings.ReplaceAll(body, ":", ": "), ",", ", "), []said{{"body", "parsed and written anew"}}},
		"the body was quoted":                    {secret, genuine, string(quote(t, body)), []said{{"body", "quoted"}}},
		"both secret and body":                   {secret[6:], genuine, body + " ", []said{{"secret", "whsec_ in front"}, {"body", "without the white space"}}},
		"another body":                           {secret, genuine, `{}`, []said{{"body", "another body, or made with another secret"}}},
		"another secret":                         {strings.ToLower(secret), genuine, body, []said{{"body", "another body, or made with another secret"}}},
		"a secret that is cut":                   {secret[:20], genuine, body, []said{{"secret", "43 characters"}, {"body", "another secret"}}},
		"nothing at all":                         {"", "", "", []said{{"signature", "prefix"}, {"signature", "64"}, {"secret", "whsec_"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := examine(row.secret, row.signature, row.body)
			if got.Valid != (row.want == nil) || got.Expected != sign(row.secret, []byte(row.body)) || len(got.Problems) != len(row.want) {
				t.Fatalf("%+v, want %v", got, row.want)
			}
			for i, want := range row.want {
				if p := got.Problems[i]; p.Part != want.part || !strings.Contains(p.Message, want.text) {
					t.Errorf("problem %d is %+v, want %v", i, p, want)
				}
			}
		})
	}
}

func quote(t *testing.T, text string) []byte {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return quoted
}

func TestAVerificationIsNeitherKeptNorLogged(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	core, logged := observer.New(zap.DebugLevel)
	deps := k.deps()
	deps.Log = zap.New(core)
	s, err := New(t.Context(), Config{SecretKey: testKey}, deps)
	if err != nil {
		t.Fatal(err)
	}
	before := k.dump()
	secret := "whsec_" + strings.Repeat("Q", 43)
	var got verdict
	k.ask(s, who, "POST", endpointsPath+"/verify-signature", `{"secret":"`+secret+`","signature":"`+sign(secret, []byte("{}"))+`","body":"{}"}`).must(200, &got)
	if !got.Valid || len(got.Problems) != 0 {
		t.Errorf("it answers %+v", got)
	}
	for _, body := range []string{`{}`, `{"secret":"` + secret + `","signature":"x"}`, `{"secret":1,"signature":"x","body":"y"}`} {
		k.ask(s, who, "POST", endpointsPath+"/verify-signature", body).refused(400, "invalid_body")
	}
	if after := k.dump(); after != before {
		t.Errorf("it has changed\n%s\nto\n%s", before, after)
	}
	for _, line := range logged.All() {
		fields, err := json.Marshal(line.ContextMap())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line.Message+string(fields), "QQQQ") {
			t.Errorf("the log has %s %s", line.Message, fields)
		}
	}
}
