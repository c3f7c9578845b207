package openapi

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// An acceptor recognises valid values quickly, without an allocation. It knows the plain
// part of a schema and only ever says "surely valid"; in all other cases the validator
// decides and explains. So it can spare work but never word an error.
//
// The validator allocates several times for each member. On the path that takes every
// sale, that would be nearly half of the whole cost of reading a body.
type acceptor struct {
	types    map[string]bool // nil: any
	all      []*acceptor     // $ref and allOf
	enum     map[string]bool // of strings; nil: any
	format   *jsonschema.Format
	number   *numberRule
	pattern  jsonschema.Regexp
	required []string
	members  map[string]*acceptor
	closed   bool // other members are refused
	items    *acceptor

	minLength, maxLength, minItems, maxItems *int
}

// newAcceptor returns the acceptor of a hardened schema, or nil if the schema has a part
// that only the validator knows. The path holds the schemas around s: a schema that
// contains itself has no acceptor.
func newAcceptor(s *jsonschema.Schema, path ...*jsonschema.Schema) *acceptor {
	for _, outer := range path {
		if outer == s {
			return nil
		}
	}
	path = append(path[:len(path):len(path)], s)
	if s.Bool != nil || s.Not != nil || s.AnyOf != nil || s.OneOf != nil || s.If != nil || s.Const != nil ||
		s.MinProperties != nil || s.MaxProperties != nil || s.DependentRequired != nil || s.PatternProperties != nil || s.UniqueItems {
		return nil
	}
	a := &acceptor{
		pattern: s.Pattern, required: s.Required,
		minLength: s.MinLength, maxLength: s.MaxLength, minItems: s.MinItems, maxItems: s.MaxItems,
	}
	if s.Types != nil {
		a.types = map[string]bool{}
		for _, name := range s.Types.ToStrings() {
			a.types[name] = true
		}
	}
	for _, extension := range s.Extensions {
		switch rule := extension.(type) {
		case formatRule:
			a.format = rule.format
		case *numberRule:
			a.number = rule
		}
	}
	if closed, isBool := s.AdditionalProperties.(bool); isBool {
		a.closed = !closed
	} else if s.AdditionalProperties != nil {
		return nil
	}
	if !a.addEnum(s.Enum) || !a.addInner(s, path) {
		return nil
	}
	return a
}

func (a *acceptor) addEnum(enum *jsonschema.Enum) bool {
	if enum == nil {
		return true
	}
	a.enum = map[string]bool{}
	for _, value := range enum.Values {
		text, ok := value.(string)
		if !ok {
			return false
		}
		a.enum[text] = true
	}
	return true
}

func (a *acceptor) addInner(s *jsonschema.Schema, path []*jsonschema.Schema) bool {
	whole := s.AllOf
	if s.Ref != nil {
		whole = append(whole[:len(whole):len(whole)], s.Ref)
	}
	for _, inner := range whole {
		part := newAcceptor(inner, path...)
		if part == nil {
			return false
		}
		a.all = append(a.all, part)
	}
	if rule := listRuleOf(s); rule != nil {
		if a.items = newAcceptor(rule.items, path...); a.items == nil || rule.unique {
			return false
		}
		a.maxItems = rule.most
	}
	a.members = make(map[string]*acceptor, len(s.Properties))
	for name, inner := range s.Properties {
		// A member that only the validator knows may be absent, and then nobody need ask it.
		a.members[name] = newAcceptor(inner, path...)
	}
	return true
}

// accepts tells that v is surely valid. False means nothing.
func (a *acceptor) accepts(v any) bool {
	if a == nil {
		return false
	}
	for _, part := range a.all {
		if !part.accepts(v) {
			return false
		}
	}
	if text, isString := v.(string); a.enum != nil && !(isString && a.enum[text]) {
		return false
	}
	switch v := v.(type) {
	case string:
		return a.hasType("string") && a.acceptsText(v)
	case json.Number:
		typed := a.hasType("number") || (a.hasType("integer") && isPlainInteger(string(v)))
		return typed && (a.number == nil || a.number.passesQuickly(string(v)))
	case map[string]any:
		return a.hasType("object") && a.acceptsObject(v)
	case []any:
		return a.hasType("array") && a.acceptsArray(v)
	case bool:
		return a.hasType("boolean")
	default:
		return a.hasType("null")
	}
}

func (a *acceptor) hasType(name string) bool { return a.types == nil || a.types[name] }

func (a *acceptor) acceptsText(s string) bool {
	if a.minLength != nil || a.maxLength != nil {
		length := utf8.RuneCountInString(s)
		if a.minLength != nil && length < *a.minLength || a.maxLength != nil && length > *a.maxLength {
			return false
		}
	}
	if a.pattern != nil && !a.pattern.MatchString(s) {
		return false
	}
	return a.format == nil || a.format.Validate(s) == nil
}

func (a *acceptor) acceptsObject(members map[string]any) bool {
	for _, name := range a.required {
		if _, ok := members[name]; !ok {
			return false
		}
	}
	for name, value := range members {
		inner, known := a.members[name]
		if known && !inner.accepts(value) || !known && a.closed {
			return false
		}
	}
	return true
}

func (a *acceptor) acceptsArray(items []any) bool {
	if a.minItems != nil && len(items) < *a.minItems || a.maxItems != nil && len(items) > *a.maxItems {
		return false
	}
	for _, item := range items {
		if a.items != nil && !a.items.accepts(item) {
			return false
		}
	}
	return true
}

func isPlainInteger(token string) bool {
	for i := range len(token) {
		if c := token[i]; (c < '0' || c > '9') && !(c == '-' && i == 0) {
			return false
		}
	}
	return true
}
