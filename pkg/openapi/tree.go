package openapi

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A node is one value of a document. Unlike a map it keeps its members in the order in
// which they were written, and its numbers as they were spelled.
type node struct {
	kind    jsontext.Kind // one of { [ " 0 t f n
	text    string        // of a string: its characters; of a number, boolean or null: its token
	items   []*node
	members []member
}

type member struct {
	name  string
	value *node
}

// get follows names down from n. It is nil where one is missing, and for a nil n.
func (n *node) get(names ...string) *node {
	for _, name := range names {
		if n == nil {
			return nil
		}
		i := slices.IndexFunc(n.members, func(m member) bool { return m.name == name })
		if i < 0 {
			return nil
		}
		n = n.members[i].value
	}
	return n
}

// str is the text of the string that get finds, or "".
func (n *node) str(names ...string) string {
	if found := n.get(names...); found != nil && found.kind == '"' {
		return found.text
	}
	return ""
}

// isTrue tells whether get finds the boolean true.
func (n *node) isTrue(names ...string) bool {
	found := n.get(names...)
	return found != nil && found.kind == 't'
}

// each returns the members of the object that get finds, in their order; none where there is no object.
func (n *node) each(names ...string) []member {
	if found := n.get(names...); found != nil {
		return found.members
	}
	return nil
}

// list returns the items of the array that get finds; none where there is no array.
func (n *node) list(names ...string) []*node {
	if found := n.get(names...); found != nil {
		return found.items
	}
	return nil
}

// at resolves a JSON Pointer such as "/components/schemas/Sale"; nil where it leads nowhere.
func (n *node) at(pointer string) *node {
	for name := range jsontext.Pointer(pointer).Tokens() {
		if n = n.get(name); n == nil {
			return nil
		}
	}
	return n
}

// set replaces the member of that name, or adds it at the end.
func (n *node) set(name string, value *node) {
	for i := range n.members {
		if n.members[i].name == name {
			n.members[i].value = value
			return
		}
	}
	n.members = append(n.members, member{name, value})
}

// equal tells whether two values are the same, the order of members aside.
func (n *node) equal(other *node) bool {
	if n == nil || other == nil {
		return n == other
	}
	if n.kind != other.kind || n.text != other.text || len(n.members) != len(other.members) {
		return false
	}
	for _, m := range n.members {
		if !m.value.equal(other.get(m.name)) {
			return false
		}
	}
	return slices.EqualFunc(n.items, other.items, (*node).equal)
}

// appendJSON writes n as JSON without white space.
func (n *node) appendJSON(dst []byte) []byte {
	switch n.kind {
	case '{':
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendText(dst, m.name), ':')
			dst = m.value.appendJSON(dst)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst)
		}
		return append(dst, ']')
	case '"':
		return appendText(dst, n.text)
	default:
		return append(dst, n.text...)
	}
}

// appendText writes a JSON string. The YAML reader has already refused invalid UTF-8.
func appendText(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// indented writes n as JSON for people.
func (n *node) indented() string {
	text := jsontext.Value(n.appendJSON(nil))
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(text)
	}
	return string(text)
}

func object(members ...member) *node { return &node{kind: '{', members: members} }

func text(s string) *node { return &node{kind: '"', text: s} }

// pointer appends one name to a JSON Pointer.
func pointer(base string, names ...string) string {
	for _, name := range names {
		base = string(jsontext.Pointer(base).AppendToken(name))
	}
	return base
}

// localRef returns the pointer within the document that a $ref names.
func localRef(n *node) (target string, isRef bool) {
	ref := n.get("$ref")
	if ref == nil {
		return "", false
	}
	return strings.TrimPrefix(ref.text, "#"), true
}

// resolve follows the references from n, a few at most, since they might form a circle.
func resolve(doc *node, at string, n *node, section string) (string, *node) {
	for range 8 {
		target, isRef := localRef(n)
		if !isRef || !strings.HasPrefix(target, "/components/"+section+"/") {
			break
		}
		at, n = target, doc.at(target)
	}
	return at, n
}
