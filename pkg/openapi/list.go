package openapi

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"partilha.dev/pkg/fault"
)

// List is a request body whose elements are judged one by one: an object with a list in
// one of its members. It may be used by many goroutines.
type List struct {
	member  string
	most    int   // elements
	around  *Body // the same object with a list of anything
	element *Body
}

// maxAround is how many bytes the other members of such a body may have together, so that
// not even a body that lists nothing costs more to read than an ordinary one.
const maxAround = 64 << 10

// List returns the body as a list of what is in that member, or nil if the schema of the
// member is not that of a list with elements of one schema and a greatest length.
func (b *Body) List(member string) *List {
	outer := target(b.schema)
	if outer.Properties[member] == nil {
		return nil
	}
	list := target(outer.Properties[member])
	rule := listRuleOf(list)
	if rule == nil || rule.most == nil {
		return nil
	}
	anything, around := *list, *outer
	anything.Extensions = nil // what the elements must be is asked of each
	around.Properties = maps.Clone(outer.Properties)
	around.Properties[member] = &anything
	return &List{member: member, most: *rule.most, around: newBody(&around, true), element: newBody(rule.items, true)}
}

// target is what s stands for where it only refers to another schema.
func target(s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != nil {
		s = s.Ref
	}
	return s
}

// Elements splits raw into what it lists. Its error is that of [Body.Decode] for the
// object around the elements and for the length of the list. Whatever is wrong within an
// element, as long as one can tell where it ends, is left for Decode. The elements are
// parts of raw.
func (l *List) Elements(raw []byte) ([][]byte, error) {
	elements, around, broken := l.split(raw)
	if broken != nil {
		return nil, broken
	}
	var members map[string]jsontext.Value
	if err := l.around.Decode(around, &members); err != nil {
		return nil, err
	}
	return elements, nil
}

// Decode checks an element and decodes it as [Body.Decode] does with a body that is
// nothing else; so the paths of its issues begin at the element.
func (l *List) Decode(element []byte, into any) error { return l.element.Decode(element, into) }

// split returns the elements, and raw with each of them blanked. It reads loosely: what
// is wrong around the elements stays for whoever reads strictly.
func (l *List) split(raw []byte) (elements [][]byte, around []byte, broken *fault.Error) {
	around = slices.Clone(raw)
	others := 0 // bytes
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), allowDuplicates, jsontext.AllowInvalidUTF8(true))
	if first, err := dec.ReadToken(); err != nil {
		return nil, nil, syntaxFault(raw, err)
	} else if first.Kind() != '{' {
		return nil, nil, noObject()
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, nil, syntaxFault(raw, err)
		}
		name := token.String()
		if name == l.member && dec.PeekKind() == '[' {
			dec.ReadToken()
			for dec.PeekKind() != ']' {
				value, err := dec.ReadValue()
				if err != nil {
					return nil, nil, syntaxFault(raw, err)
				}
				if len(elements) == l.most {
					return nil, nil, fault.InvalidBody(fault.Detail{
						Path: pointer("", l.member), Code: "too_long", Message: "at most " + count(l.most, "item"),
					})
				}
				end := int(dec.InputOffset())
				elements = append(elements, raw[end-len(value):end:end])
				blank(around[end-len(value) : end])
			}
			dec.ReadToken()
			continue
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, nil, syntaxFault(raw, err)
		}
		if name == l.member {
			end := int(dec.InputOffset())
			blank(around[end-len(value) : end])
			continue
		}
		if others += len(name) + len(value); others > maxAround {
			return nil, nil, fault.InvalidBody(fault.Detail{
				Path: pointer("", name), Code: "too_long",
				Message: fmt.Sprintf("all members but %s have at most %d bytes together", l.member, maxAround),
			})
		}
	}
	return elements, around, nil
}

// blank leaves nothing of a value but its type, and spaces.
func blank(value []byte) {
	var kept string
	switch value[0] {
	case '{':
		kept = "{}"
	case '[':
		kept = "[]"
	case '"':
		kept = `""`
	case 't', 'f', 'n':
		return
	default:
		kept = "0"
	}
	for i := copy(value, kept); i < len(value); i++ {
		value[i] = ' '
	}
}
