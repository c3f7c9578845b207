package webhooks

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"partilha.dev/pkg/web"
)

// verdict says whether a signature is that of a body and, if not, which part is wrong.
type verdict struct {
	Valid    bool      `json:"valid"`
	Expected string    `json:"expected_signature"` // of the body as it was given, by the secret as it was given
	Problems []problem `json:"problems"`
}

// problem is one thing to put right.
type problem struct {
	Part    string `json:"part"` // secret, signature or body
	Message string `json:"message"`
}

const (
	partSecret    = "secret"
	partSignature = "signature"
	partBody      = "body"
)

// verifySignature answers POST /api/v1/webhook-endpoints/verify-signature. It looks at
// nothing but what it is given, and keeps and logs none of it.
func (s *Service) verifySignature(call *web.Call) (web.Answer, error) {
	var given struct {
		Secret    string `json:"secret"`
		Signature string `json:"signature"`
		Body      string `json:"body"`
	}
	if err := call.Decode(&given); err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: examine(given.Secret, given.Signature, given.Body)}, nil
}

// examine compares as a receiver should and, where that fails, looks for the mistake: in
// how the secret and the signature are written, and by trying what integrators do to
// secrets and bodies on their way.
func examine(secret, signature, body string) verdict {
	v := verdict{Expected: sign(secret, []byte(body)), Problems: []problem{}}
	if v.Valid = hmac.Equal([]byte(v.Expected), []byte(signature)); v.Valid {
		return v
	}
	digest, problems := readDigest(signature)
	v.Problems = append(v.Problems, problems...)
	if digest == "" {
		v.Problems = append(v.Problems, secretProblems(secret)...)
		return v
	}
	found, explained := origin(secret, body, signaturePrefix+digest)
	v.Problems = append(v.Problems, found...)
	if !explained {
		v.Problems = append(v.Problems, secretProblems(secret)...)
		v.Problems = append(v.Problems, problem{partBody, "no variant of this body and this secret gives the signature: it is of another body, or made with another secret; " +
			"compare byte for byte what arrived with what was verified, before any parsing"})
	}
	return v
}

var secretPattern = regexp.MustCompile(`^whsec_[A-Za-z0-9_-]{43}$`)

// secretProblems are what can be seen of a secret without trying it.
func secretProblems(secret string) []problem {
	if secretPattern.MatchString(secret) {
		return nil
	}
	trimmed := strings.TrimSpace(secret)
	switch {
	case trimmed != secret:
		return []problem{{partSecret, "there is white space around the secret; a line end from a file or a variable is a common cause"}}
	case !strings.HasPrefix(secret, secretPrefix):
		return []problem{{partSecret, "it does not begin with whsec_; use the whole text that was shown, prefix included"}}
	default:
		return []problem{{partSecret, "it is not whsec_ and 43 characters of A-Z a-z 0-9 - _; it may be cut, quoted or another endpoint's"}}
	}
}

// readDigest returns the 64 hexadecimal digits that a signature was meant to be, and what
// is wrong with how they are written; "" where they cannot be made out.
func readDigest(signature string) (digest string, problems []problem) {
	say := func(message string) { problems = append(problems, problem{partSignature, message}) }
	text := strings.TrimSpace(signature)
	if text != signature {
		say("there is white space around the signature")
	}
	if name, value, ok := strings.Cut(text, ":"); ok && strings.HasPrefix(strings.ToLower(name), "x-service-signature") {
		say("the header's name stands before its value")
		text = strings.TrimSpace(value)
	}
	if strings.Contains(text, ",") {
		say("there is more than one signature; compare with each of them alone")
		return "", problems
	}
	if prefix, value, ok := strings.Cut(text, "="); ok && value != "" && prefix == strings.TrimSuffix(signaturePrefix, "=") {
		text = value
	} else if ok && strings.HasPrefix(strings.ToLower(prefix), "sha") && value != "" {
		say("it names " + strings.ToLower(prefix) + "; the value begins with sha256= in lower case")
		text = value
	} else {
		say("the prefix sha256= is missing")
	}
	if raw, err := base64.StdEncoding.DecodeString(text); err == nil && len(raw) == 32 {
		say("the digest is written in base64; write it in lower-case hexadecimal digits")
		return hex.EncodeToString(raw), problems
	}
	if lower := strings.ToLower(text); lower != text {
		say("the hexadecimal digits are in capitals; they are in lower case")
		text = lower
	}
	switch raw, err := hex.DecodeString(text); {
	case len(text) != 64:
		say("there must be 64 hexadecimal digits after sha256=")
	case err != nil || len(raw) != 32:
		say("there is something other than hexadecimal digits after sha256=")
	default:
		return text, problems
	}
	return "", problems
}

// variant is what somebody may have signed or verified instead, and how to tell them.
type variant struct {
	text    string
	problem *problem // nil: as it was given
}

// origin looks for the secret and the body that give the signature, and returns what is
// wrong with those that were given. explained is false where it finds none.
func origin(secret, body, signature string) (problems []problem, explained bool) {
	for _, key := range secretVariants(secret) {
		for _, told := range bodyVariants(body) {
			if !hmac.Equal([]byte(sign(key.text, []byte(told.text))), []byte(signature)) {
				continue
			}
			for _, p := range []*problem{key.problem, told.problem} {
				if p != nil {
					problems = append(problems, *p)
				}
			}
			return problems, true
		}
	}
	return nil, false
}

func secretVariants(secret string) []variant {
	all := []variant{{text: secret}}
	add := func(text, message string) {
		if text != secret {
			all = append(all, variant{text, &problem{partSecret, message}})
		}
	}
	trimmed := strings.TrimSpace(secret)
	bare := strings.TrimPrefix(trimmed, secretPrefix)
	add(trimmed, "the signature is right for the secret without the white space around it")
	add(secretPrefix+bare, "the signature is right for the secret with whsec_ in front")
	add(bare, "the signature was made with the secret without whsec_; the prefix is part of the key")
	if raw, err := base64.RawURLEncoding.DecodeString(bare); err == nil {
		add(string(raw), "the signature was made with the decoded bytes of the secret; the key is its text as it was shown")
	}
	return all
}

func bodyVariants(body string) []variant {
	all := []variant{{text: body}}
	add := func(text, message string) {
		if text != body {
			all = append(all, variant{text, &problem{partBody, message}})
		}
	}
	add(strings.TrimSpace(body), "the signature is of the body without the white space around it")
	add(body+"\n", "the signature is of the body with a line end after it, which was lost here")
	add(strings.ReplaceAll(body, "\r\n", "\n"), "the signature is of the body with other line ends (LF)")
	add(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\n", "\r\n"), "the signature is of the body with other line ends (CR LF)")
	add(strings.TrimPrefix(body, "\uFEFF"), "the signature is of the body without the byte-order mark in front")
	compact := jsontext.Value(body)
	if compact.Compact() == nil {
		add(string(compact), "the body was parsed and written anew with blanks; verify the raw bytes before any parsing")
	}
	if text, err := jsontext.AppendUnquote(nil, body); err == nil {
		add(string(text), "the body is quoted as a JSON text; verify what is inside the quotes")
	}
	return all
}
