package contract

import (
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// leastParameters is how many wrong parameters there are at least.
const leastParameters = 1_000

func TestEveryWrongParameterIsRefusedAndRecordsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(startPlatform(t, nil), "parameter")
	tried := 0
	w.every(func(s *running, o *operation) {
		body := ""
		if o.body != nil {
			body = written(w.body(o))
		}
		w.recordsNothing(o.String(), func() {
			for _, wrong := range w.wrongParameters(o) {
				tried++
				r := w.request(o, body)
				r.address = wrong.address
				got := w.call(s, o, r)
				named := strings.Contains(got.body, `"details":[{"path":`+quoted("/"+wrong.name)+`,`)
				if got.status != 400 || got.text("code") != "invalid_parameter" || !named {
					t.Errorf("%s %s answers %s, want an invalid_parameter at /%s", o.method, wrong.address, got, wrong.name)
				}
			}
		})
	})
	if tried < leastParameters {
		t.Errorf("only %d wrong parameters were tried", tried)
	}
	t.Logf("%d wrong parameters were refused", tried)
}

// wrongParameter is an address in which the parameter of that name is wrong.
type wrongParameter struct{ name, address string }

// wrongParameters are the operation's address with each parameter in turn wrong in each
// way that its schema implies.
func (w *world) wrongParameters(o *operation) (all []wrongParameter) {
	w.t.Helper()
	ask := func(name, query string) {
		needed, _ := url.ParseQuery(strings.TrimPrefix(w.query(o, w.known), "?"))
		needed.Del(name)
		address, _, _ := strings.Cut(w.address(o), "?")
		all = append(all, wrongParameter{name, address + "?" + strings.TrimPrefix(needed.Encode()+"&"+query, "&")})
	}
	for _, p := range o.parameters() {
		s, err := o.doc.shape(p.schema)
		if err != nil {
			w.t.Fatalf("%s: %s: %v", o, p.name, err)
		}
		values, err := wrongTexts(s, p.name)
		if err != nil {
			w.t.Fatalf("%s: %s: %v", o, p.name, err)
		}
		for _, value := range values {
			switch p.in {
			case "query":
				ask(p.name, url.Values{p.name: {value}}.Encode())
			case "path":
				if value == "" || strings.Contains(value, "/") {
					continue // that is another address
				}
				ids := maps.Clone(w.known)
				ids[p.name] = url.PathEscape(value)
				all = append(all, wrongParameter{p.name, w.addressWith(o, ids)})
			case "header": // what is none of ours is as good as none
			default:
				w.t.Fatalf("%s: no wrong values are known for %s, which is in the %s", o, p.name, p.in)
			}
		}
		if p.in == "query" && p.required {
			ask(p.name, "")
		}
		if p.in == "query" {
			ask(p.name, p.name+"=%ff")
			ask(p.name, p.name+"=a%00b")
			ask(p.name, p.name+"=a&"+p.name+"=a")
			ask(strings.ToUpper(p.name), strings.ToUpper(p.name)+"=a")
		}
	}
	if w.lenient(o) {
		return all
	}
	ask("unknown", "unknown=1")
	ask("unknown", "unknown")
	ask("query", "limit=%zz")
	ask("query", "a=1;b=2")
	return all
}

// lenient tells whether an operation lets members of its body pass that nobody knows, and
// so parameters as well.
func (w *world) lenient(o *operation) bool {
	w.t.Helper()
	if o.body == nil {
		return false
	}
	s, err := o.doc.shape(o.bodySchema())
	if err != nil {
		w.t.Fatalf("%s: %v", o, err)
	}
	return !s.closed
}

// wrongTexts are values of a parameter that its schema does not allow.
func wrongTexts(s *shape, name string) (all []string, err error) {
	switch {
	case s.types["integer"]:
		all = []string{"", "x", "1.5", "1e1", " 1", "1 ", "0x1", "1_0", "١", "NaN", "null", "99999999999999999999", "1e1000000000"}
		if s.minimum != nil {
			all = append(all, plain(new(big.Rat).Sub(s.minimum, big.NewRat(1, 1))), "-1")
		}
		if s.maximum != nil {
			all = append(all, plain(new(big.Rat).Add(s.maximum, big.NewRat(1, 1))))
		}
		return all, nil
	case !s.types["string"] || s.kinds() != 1:
		return nil, fmt.Errorf("no wrong values are known for its types")
	}
	if s.format != "" {
		known := false
		if all, known = wrongFormats[s.format]; !known {
			return nil, fmt.Errorf("no wrong values are known for the format %s", s.format)
		}
		all = slices.Clone(all)
	}
	if len(s.enum) > 0 {
		all = append(all, "no-such-value", "", strings.ToUpper(fmt.Sprint(s.enum[0])), fmt.Sprint(s.enum[0], " "), fmt.Sprint(s.enum[0], ",", s.enum[0]))
	}
	if s.minLength != nil && *s.minLength > 0 {
		all = append(all, strings.Repeat("x", *s.minLength-1))
	}
	if s.maxLength != nil {
		all = append(all, strings.Repeat("é", *s.maxLength+1))
	}
	if name == "cursor" { // its form is nobody's business, but an invented one is refused
		all = append(all, "", "x", "null", "AAAA", never, "MDE4OTAwMDA", strings.Repeat("A", 1000), "é")
	}
	return all, nil
}
