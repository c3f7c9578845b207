package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hostile is one body that must be refused, and why.
type hostile struct {
	name string
	body string
	path []string // of the member that is wrong
	code string   // of the detail that names it; "syntax" names the body as a whole
}

// fair is one body that no check of its shape may refuse with that code at that member.
type fair struct {
	name  string
	body  string
	path  []string
	never string
}

// generator makes bodies of one operation, each with one thing wrong.
type generator struct {
	doc     *document
	right   object
	hostile []hostile
	fair    []fair
}

// generate returns the bodies that are wrong in one member, and those at the very
// bounds of what is right.
func (o *operation) generate(right object) (*generator, error) {
	g := &generator{doc: o.doc, right: right}
	s, err := o.doc.shape(o.bodySchema())
	if err != nil {
		return nil, err
	}
	return g, g.object(s, nil)
}

func (g *generator) wrong(name string, path []string, code string, tree any) {
	g.hostile = append(g.hostile, hostile{name, written(tree), path, code})
}

// value adds a body for a wrong value of the member at the path.
func (g *generator) value(name string, path []string, code string, value any) {
	g.wrong(name, path, code, with(g.right, path, value))
}

func (g *generator) bound(name string, path []string, never string, value any) {
	g.fair = append(g.fair, fair{name, written(with(g.right, path, value)), path, never})
}

func below(path []string, name string) []string { return append(slices.Clone(path), name) }

// object adds what can be wrong with the members of the object at the path.
func (g *generator) object(s *shape, path []string) error {
	if s.minProperties != nil {
		g.value("no member", path, "too_short", object{})
	}
	if s.closed {
		g.wrong("an unknown member", below(path, "unknown"), "unknown_member", with(g.right, below(path, "unknown"), token("1")))
		g.wrong("an unknown null", below(path, "unknown"), "unknown_member", with(g.right, below(path, "unknown"), token("null")))
		g.wrong("a member with no name", below(path, ""), "unknown_member", with(g.right, below(path, ""), token("1")))
	}
	for _, name := range slices.Sorted(maps.Keys(s.members)) {
		if err := g.member(s, path, name); err != nil {
			return fmt.Errorf("%s: %w", pointer(below(path, name)...), err)
		}
	}
	return nil
}

// member adds what can be wrong with one member of the object at the path.
func (g *generator) member(parent *shape, path []string, name string) error {
	s, err := g.doc.shape(parent.members[name])
	if err != nil {
		return err
	}
	here := below(path, name)
	if at(g.right, here) == nil || at(g.right, here) == token("null") {
		value, err := g.doc.right(s)
		if err != nil {
			return err
		}
		without := g.right
		g.right = with(g.right, here, value).(object)
		defer func() { g.right = without }()
	}
	value := at(g.right, here)
	required := slices.Contains(parent.required, name)
	if required {
		g.wrong("missing", here, "required", inside(g.right, path, func(o object) object {
			i := o.index(name)
			return slices.Delete(o, i, i+1)
		}))
	}
	if required && !s.types["null"] {
		g.value("null", here, "type", token("null"))
	} else {
		g.bound("null", here, "required", token("null"))
	}
	g.names(parent, path, name, value)
	return g.values(s, here)
}

// names adds what can be wrong with the name of a member.
func (g *generator) names(parent *shape, path []string, name string, value any) {
	here := below(path, name)
	for spelling, again := range map[string]string{"twice": quoted(name), "twice, once escaped": escaped(name)} {
		g.wrong(spelling, here, "duplicate_member", inside(g.right, path, func(o object) object {
			return append(o, member{again, value})
		}))
	}
	first, size := utf8.DecodeRuneInString(name)
	for _, other := range []string{string(unicode.ToUpper(first)) + name[size:], strings.ToUpper(name)} {
		renamed := inside(g.right, path, func(o object) object {
			o[o.index(name)].name = quoted(other)
			return o
		})
		if parent.closed {
			g.wrong("written "+other, below(path, other), "unknown_member", renamed)
		}
		if slices.Contains(parent.required, name) {
			g.wrong("only as "+other, here, "required", renamed)
		}
	}
}

// escaped is a name whose first letter is written as an escape.
func escaped(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	rest := quoted(name[size:])
	return fmt.Sprintf(`"\u%04x%s`, first, rest[1:])
}

// others are values of each type.
var others = []struct {
	kind  string
	value any
}{
	{"string", text("text")}, {"string", text("1")}, {"number", token("7")}, {"number", token("1.5")}, {"boolean", token("true")}, {"boolean", token("false")},
	{"array", []any{}}, {"array", []any{text("text")}}, {"object", object{}}, {"object", object{{quoted("value"), token("1")}}},
}

// values adds wrong values of every kind that the shape of the value at the path implies.
func (g *generator) values(s *shape, path []string) error {
	if n := s.kinds(); n != 1 {
		return fmt.Errorf("the value may be of %d types; wrong values are known for one", n)
	}
	for _, other := range others {
		fits := s.types[other.kind] || other.kind == "number" && s.types["integer"]
		if fraction := other.value == token("1.5"); !fits || fraction && s.types["integer"] && !s.types["number"] {
			g.value("a "+other.kind+" "+written(other.value), path, "type", other.value)
		}
	}
	for _, broken := range []string{"NaN", "Infinity", "undefined", "True", "nul", "'text'", "text", ",", `"text`, "1 2", "// paid\n1", "/* paid */ 1", "[1,]", `{"a":1,}`} {
		g.value("the token "+broken, path, "syntax", token(broken))
	}
	if len(s.enum) > 0 {
		g.enum(s, path)
	}
	switch {
	case s.types["string"]:
		return g.text(s, path)
	case s.types["number"] || s.types["integer"]:
		g.number(s, path)
	case s.types["array"]:
		return g.array(s, path)
	case s.types["object"]:
		return g.object(s, path)
	}
	return nil
}

func (g *generator) enum(s *shape, path []string) {
	g.value("none of the values", path, "not_allowed", text("no-such-value"))
	for _, value := range s.enum {
		name, isText := value.(string)
		if !isText {
			continue
		}
		if upper := strings.ToUpper(name); upper != name {
			g.value("the value in capitals", path, "not_allowed", text(upper))
		}
		g.value("the value and a space", path, "not_allowed", text(name+" "))
		g.value("a space and the value", path, "not_allowed", text(" "+name))
		break
	}
}

// array adds what can be wrong with a list and with its first item.
func (g *generator) array(s *shape, path []string) error {
	items, ok := at(g.right, path).([]any)
	if !ok || len(items) == 0 {
		return fmt.Errorf("the example shows no item")
	}
	inner, err := g.doc.shape(s.items)
	if err != nil {
		return err
	}
	if s.minItems != nil && *s.minItems > 0 {
		g.value("too few items", path, "too_short", slices.Clone(items[:0]))
	}
	if s.maxItems != nil {
		g.value("too many items", path, "too_long", slices.Repeat(items[:1], *s.maxItems+1))
	}
	if s.unique {
		g.wrong("an item twice", below(path, "1"), "not_allowed", with(g.right, path, []any{items[0], items[0]}))
	}
	first := below(path, "0")
	if !inner.types["null"] {
		g.value("null among the items", first, "type", token("null"))
	}
	return g.values(inner, first)
}
