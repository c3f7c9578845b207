package openapi

import (
	"errors"
	"net/mail"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ownFormats replace the validator's own idea of these formats.
var ownFormats = []*jsonschema.Format{
	{Name: "uuid", Validate: onStrings(validateUUID)},
	{Name: "date-time", Validate: onStrings(validateTime)},
	{Name: "email", Validate: onStrings(validateEmail)},
}

// knownFormats are the formats that a document may name, each with what a caller is
// told who breaks it. An empty text marks a format that only informs: nothing checks it.
var knownFormats = map[string]string{
	"uuid":          "must be a UUID: 8-4-4-4-12 hexadecimal digits",
	"date-time":     "must be an ISO 8601 date and time with an offset, from the year 2000 on, such as 2026-03-01T12:00:00-03:00",
	"date":          "must be a date such as 2026-03-01",
	"email":         "must be an e-mail address",
	"uri":           "must be an absolute URL",
	"uri-reference": "must be a URL",
	"hostname":      "must be a host name",
	"ipv4":          "must be an IPv4 address",
	"ipv6":          "must be an IPv6 address",
	"json-pointer":  "must be a JSON Pointer",
	"int32":         "",
	"int64":         "",
	"password":      "",
}

var errNotUUID = errors.New("not a UUID")

// onStrings makes a format check of one that reads text; other types pass, as they do
// with every format.
func onStrings(check func(string) error) func(any) error {
	return func(v any) error {
		if s, ok := v.(string); ok {
			return check(s)
		}
		return nil
	}
}

// validateUUID takes 8-4-4-4-12 hexadecimal digits of either case and nothing else.
func validateUUID(s string) error {
	if len(s) != len("00000000-0000-0000-0000-000000000000") {
		return errNotUUID
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return errNotUUID
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return errNotUUID
		}
	}
	return nil
}

func validateTime(s string) error {
	_, err := ParseTime(s)
	return err
}

var (
	errNotEmail = errors.New("not an e-mail address")
	// Both cases are written out: without regard to case, letters beyond ASCII would fit too.
	hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
)

// validateEmail takes one bare address of a host that is given by name.
func validateEmail(s string) error {
	address, err := mail.ParseAddress(s)
	if err != nil || address.Name != "" || address.Address != s {
		return errNotEmail
	}
	if !hostName.MatchString(s[strings.LastIndexByte(s, '@')+1:]) {
		return errNotEmail
	}
	return nil
}
