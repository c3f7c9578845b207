package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

// Body is the request body of one operation. It may be used by many goroutines.
type Body struct {
	schema    *jsonschema.Schema
	quick     *acceptor // nil where the schema is not plain enough
	required  bool
	droppable map[string]bool // members whose null is as good as their absence
}

func newBody(schema *jsonschema.Schema, required bool) *Body {
	return &Body{
		schema: schema, quick: newAcceptor(schema),
		required: required, droppable: optionalMembers(schema),
	}
}

// Decode checks raw and decodes it into the struct that into points to, whose fields
// have json tags; names are compared exactly.
//
// A body that breaks a rule gives a [*fault.Error] of kind Invalid and code
// "invalid_body" with every issue, sorted by path. The rules are those of the schema and
// of JSON read strictly: one object, in UTF-8, nested at most 32 deep, no duplicate
// member, no U+0000 in a string. A null counts as absent where the member is optional
// and its schema does not take null; into then keeps what it held. Members that the
// schema leaves open are ignored. An operation that does not require a body reads none,
// zero bytes, as an empty object.
//
// Any other error is a mismatch between the struct and its schema. The size of raw is
// bounded by whoever read it. After an error into may be partly filled.
func (b *Body) Decode(raw []byte, into any) error {
	if len(raw) == 0 && !b.required {
		raw = []byte("{}")
	}
	read, broken := parse(raw)
	if broken != nil {
		return broken
	}
	members, ok := read.tree.(map[string]any)
	if !ok {
		return noObject()
	}
	dropped := read.nulls && b.dropNulls(members)
	if found := append(read.issues, b.check(members)...); len(found) > 0 {
		return fault.InvalidBody(sorted(found)...)
	}
	if dropped {
		raw = b.withoutNulls(raw)
	}
	return decode(raw, into)
}

func noObject() *fault.Error {
	return fault.InvalidBody(fault.Detail{Code: "type", Message: "must be a JSON object"})
}

// check returns what in an object breaks the schema.
func (b *Body) check(members map[string]any) []fault.Detail {
	if b.quick.accepts(members) {
		return nil
	}
	return issues(b.schema.Validate(members))
}

// dropNulls removes the nulls that count as absent and tells whether there were any.
func (b *Body) dropNulls(members map[string]any) bool {
	before := len(members)
	for name, value := range members {
		if value == nil && b.droppable[name] {
			delete(members, name)
		}
	}
	return len(members) < before
}

// withoutNulls writes the same object without the members that dropNulls removes. The
// input has been parsed before, so that reading it again cannot fail.
func (b *Body) withoutNulls(raw []byte) []byte {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), allowDuplicates)
	kept := []byte{'{'}
	dec.ReadToken()
	for dec.PeekKind() == '"' {
		name, _ := dec.ReadToken()
		text := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return raw
		}
		if value.Kind() == 'n' && b.droppable[text] {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(appendText(kept, text), ':')
		kept = append(kept, value...)
	}
	return append(kept, '}')
}

// decode fills a struct from a body that satisfies its schema.
func decode(raw []byte, into any) error {
	err := json.Unmarshal(raw, into, allowDuplicates)
	if err == nil {
		return nil
	}
	// To a schema 1e1 and 10.0 are integers; Go's integers want to see 10.
	if plain, changed := plainIntegers(raw); changed {
		if err = json.Unmarshal(plain, into, allowDuplicates); err == nil {
			return nil
		}
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) || semantic.JSONPointer == "" {
		return fmt.Errorf("decode body into %T: %w", into, err)
	}
	detail := fault.Detail{Path: string(semantic.JSONPointer), Code: "format", Message: "has a value that cannot be used here"}
	switch {
	case errors.Is(err, money.ErrTooManyDecimals):
		detail.Code, detail.Message = "too_many_decimals", "has too many decimals"
	case errors.Is(err, money.ErrOutOfRange):
		detail.Code, detail.Message = "too_large", "is out of range"
	}
	return fault.InvalidBody(detail).Because(err)
}

// plainIntegers writes raw with every whole number of an ordinary size in plain digits,
// and tells whether that changed anything.
func plainIntegers(raw []byte) (plain []byte, changed bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), allowDuplicates)
	from := 0
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return append(plain, raw[from:]...), changed
		}
		if token.Kind() != '0' {
			continue
		}
		spelling := token.String()
		if bytes.ContainsAny([]byte(spelling), ".eE") && money.Bound(spelling) == spelling {
			if n, ok := new(big.Rat).SetString(spelling); ok && n.IsInt() {
				end := int(dec.InputOffset())
				plain = append(plain, raw[from:end-len(spelling)]...)
				plain = n.Num().Append(plain, 10)
				from, changed = end, true
			}
		}
	}
}

// optionalMembers are the declared members that are not required by every form of the
// schema and whose own schemas do not take null.
func optionalMembers(schema *jsonschema.Schema) map[string]bool {
	declared := map[string][]*jsonschema.Schema{}
	required := map[string]bool{}
	seen := map[*jsonschema.Schema]bool{}
	var collect func(s *jsonschema.Schema, always bool)
	collect = func(s *jsonschema.Schema, always bool) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		for name, inner := range s.Properties {
			declared[name] = append(declared[name], inner)
		}
		for _, name := range s.Required {
			required[name] = required[name] || always
		}
		collect(s.Ref, always)
		for _, inner := range s.AllOf {
			collect(inner, always)
		}
		for _, forms := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf, {s.Then, s.Else}} {
			for _, inner := range forms {
				collect(inner, false)
			}
		}
	}
	collect(schema, true)

	optional := map[string]bool{}
	for name, schemas := range declared {
		takesNull := true
		for _, inner := range schemas {
			takesNull = takesNull && inner.Validate(nil) == nil
		}
		optional[name] = !required[name] && !takesNull
	}
	return optional
}
