package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
)

// maxBody is how many bytes a request's body may have, if it is no batch.
const maxBody = 64 << 10

// Call is one admitted request.
type Call struct {
	*http.Request
	Key        auth.Key        // whose request it is; zero for the operator's
	Credential auth.Credential // as it was presented

	caller    context.Context // ends when whoever calls has left
	timer     *time.Timer     // ends the call's own context; nil for a call that listens
	endpoint  *endpoint
	header    http.Header
	body      []byte
	listening *listening // nil for a call that is answered at once
}

// Tenant is whose request it is.
func (c *Call) Tenant() uuid.UUID { return c.Key.TenantID }

// Left tells whether err, with which the call failed, is only that its caller has left.
func (c *Call) Left(err error) bool {
	return c.caller.Err() != nil && (fault.KindOf(err) == fault.Unavailable || errors.Is(err, context.Canceled))
}

// Decode reads the body into into, after holding it against the schema that the
// document publishes. Its error names every issue at once.
func (c *Call) Decode(into any) error { return c.endpoint.body.Decode(c.body, into) }

// PathID is the path's parameter of that name, which must be a UUID.
func (c *Call) PathID(name string) (uuid.UUID, error) {
	return parseID(name, chi.URLParam(c.Request, name))
}

// Query checks that the query can be read and has no parameter but these, each at most
// once, so that a misspelt filter is seen instead of ignored. What QueryText returns
// afterwards is UTF-8 without U+0000. Of what the document describes every call has
// passed it; it is for a handler that takes less in some cases.
func (c *Call) Query(known ...string) error {
	if c.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		return fault.InvalidParameter("query", "must be name=value pairs joined by &, percent-encoded")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			return fault.InvalidParameter(strings.ToValidUTF8(name, "\ufffd"), "is not a parameter of this address; "+listed(known))
		case len(values[name]) != 1:
			return fault.InvalidParameter(name, "is given more than once")
		case !utf8.ValidString(values[name][0]) || strings.ContainsRune(values[name][0], 0):
			return fault.InvalidParameter(name, "must be UTF-8 without U+0000")
		}
	}
	return nil
}

func listed(known []string) string {
	if len(known) == 0 {
		return "it takes none"
	}
	return "it takes " + strings.Join(known, ", ")
}

// QueryText is the query's parameter of that name, which must have 1 to most Unicode
// code points; nil where it is absent.
func (c *Call) QueryText(name string, most int) (*string, error) {
	text := c.queryValue(name)
	if text == nil {
		return nil, nil
	}
	if n := utf8.RuneCountInString(*text); n < 1 || n > most {
		return nil, fault.InvalidParameter(name, fmt.Sprintf("must have 1 to %d characters", most))
	}
	return text, nil
}

// QueryID is the query's parameter of that name, which must be a UUID; nil where it
// is absent.
func (c *Call) QueryID(name string) (*uuid.UUID, error) {
	text := c.queryValue(name)
	if text == nil {
		return nil, nil
	}
	id, err := parseID(name, *text)
	return &id, err
}

// QueryChoice is the query's parameter of that name, which must be one of choices;
// nil where it is absent.
func (c *Call) QueryChoice(name string, choices ...string) (*string, error) {
	text := c.queryValue(name)
	if text != nil && !slices.Contains(choices, *text) {
		return nil, fault.InvalidParameter(name, "must be one of "+strings.Join(choices, ", "))
	}
	return text, nil
}

// QueryTime is the query's parameter of that name, which must be a date and time with
// an offset; nil where it is absent.
func (c *Call) QueryTime(name string) (*time.Time, error) {
	text := c.queryValue(name)
	if text == nil {
		return nil, nil
	}
	at, err := openapi.ParseTime(*text)
	if err != nil {
		return nil, fault.InvalidParameter(name, "must be a date and time with an offset, such as 2026-03-01T12:00:00Z")
	}
	return &at, nil
}

// queryValue is the query's parameter of that name, or nil where it is absent.
func (c *Call) queryValue(name string) *string {
	if values, ok := c.URL.Query()[name]; ok {
		return &values[0]
	}
	return nil
}

// Accepts tells whether the caller asks for answers of that type by its name: one of the
// Accept headers names it, and not with a quality of 0.
func (c *Call) Accepts(media string) bool {
	for _, header := range c.Header.Values("Accept") {
		for wanted := range strings.SplitSeq(header, ",") {
			name, parameters, err := mime.ParseMediaType(wanted)
			quality := parameters["q"]
			if err == nil && name == media && (quality == "" || strings.Trim(quality, "0.") != "") {
				return true
			}
		}
	}
	return false
}

func parseID(name, text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len("00000000-0000-0000-0000-000000000000") {
		return uuid.Nil, fault.InvalidParameter(name, "must be a UUID, written 8-4-4-4-12")
	}
	return id, nil
}

// bearer returns the token of the one Authorization header.
func bearer(header http.Header) (string, bool) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", false
	}
	return token, true
}

// holdsKey tells whether a key stands anywhere in a query, whatever the parameter is
// called: addresses are logged, so that whoever sends one must learn of it.
func holdsKey(query string) bool {
	if text, err := url.QueryUnescape(query); err == nil {
		query = text
	}
	for word := range strings.FieldsFuncSeq(query, func(r rune) bool { return strings.ContainsRune("=&; ", r) }) {
		if _, ok := auth.Parse(word); ok {
			return true
		}
	}
	return false
}

// admitOperator compares digests, so that the time it takes tells nothing of the
// token, not even its length.
func admitOperator(token, want string) error {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(want))
	if want == "" || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return fault.New(fault.Unauthorized, "unauthorized", "send the operator's token as: Authorization: Bearer <ADMIN_TOKEN>")
	}
	return nil
}

// isJSON tells whether a body of these Content-Type headers is read as JSON: one
// application/json with any parameters, or none at all.
func isJSON(types []string) bool {
	switch {
	case len(types) == 0 || len(types) == 1 && types[0] == "application/json":
		return true
	case len(types) > 1:
		return false
	}
	media, _, err := mime.ParseMediaType(types[0])
	return err == nil && media == "application/json"
}
