// Package pix knows the keys by which Brazilians are paid: what makes one valid, how it
// is spelt, and what of it may be shown.
package pix

import (
	"strings"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
)

// Type is what kind of key a key is. It is always told apart by whoever gives the key:
// 11 digits alone could be a CPF or a telephone number.
type Type string

// The types of keys.
const (
	CPF   Type = "cpf"   // a person's tax number: 11 digits
	CNPJ  Type = "cnpj"  // a company's: 12 digits or capitals, and 2 digits
	Phone Type = "phone" // E.164: + and the number with its country
	Email Type = "email" // in small letters
	EVP   Type = "evp"   // a random UUID, in small letters
)

// Key is a valid key in the one spelling in which it is stored and compared.
type Key struct {
	kind Type
	text string
}

// Parse reads a key of that type. It drops the punctuation of a CPF or CNPJ and the
// difference between capitals and small letters; everything else must be as it is
// registered. Its error is the refusal of a body whose member pix_key holds the text.
func Parse(kind Type, text string) (Key, error) {
	read, known := readers[kind]
	if !known {
		return Key{}, refused("pix_key_type", "not_allowed", "must be one of cpf, cnpj, phone, email, evp")
	}
	canonical, complaint := read(text)
	if complaint != "" {
		return Key{}, refused("pix_key", "format", complaint)
	}
	return Key{kind, canonical}, nil
}

// An ASCII letter of the other case is the same key. Other characters are never folded:
// some, such as the sign of the kelvin, would become an ASCII letter, and the key another's.
var (
	lower = folder('A', 'Z', 'a')
	upper = folder('a', 'z', 'A')
)

// folder moves the characters from first to last to where the others begin.
func folder(first, last, others rune) func(text string) string {
	return func(text string) string {
		return strings.Map(func(r rune) rune {
			if first <= r && r <= last {
				return r - first + others
			}
			return r
		}, text)
	}
}

func refused(member, code, message string) error {
	return fault.InvalidBody(fault.Detail{Path: "/" + member, Code: code, Message: message})
}

// Type is the key's type.
func (k Key) Type() Type { return k.kind }

// Reveal is the whole key. Only who pays out needs it.
func (k Key) Reveal() string { return k.text }

// String is the key as anybody may see it, so that none gets into a log by mistake.
func (k Key) String() string { return k.Masked() }

// readers read a key of each type. They return its one spelling, or what is wrong with it
// in words that do not repeat it.
var readers = map[Type]func(text string) (canonical, complaint string){
	CPF: readCPF, CNPJ: readCNPJ, Phone: readPhone, Email: readEmail, EVP: readEVP,
}

func readEVP(text string) (string, string) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len("00000000-0000-0000-0000-000000000000") {
		return "", "an evp is a UUID, written 8-4-4-4-12"
	}
	return id.String(), ""
}

// Masked is the key with most of it hidden: enough for its owner to recognise it, and
// not enough to pay to it.
func (k Key) Masked() string {
	switch t := k.text; k.kind {
	case CPF:
		return "***." + t[3:6] + "." + t[6:9] + "-**"
	case CNPJ:
		return t[:2] + ".***.***/" + t[8:12] + "-**"
	case Phone:
		return t[:3] + strings.Repeat("*", len(t)-6) + t[len(t)-3:]
	case Email:
		return t[:1] + "***" + t[strings.LastIndexByte(t, '@'):]
	case EVP:
		return t[:8] + "-****-****-****-************"
	default:
		return ""
	}
}
