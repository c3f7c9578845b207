package openapi

import (
	"slices"
	"strings"
)

// maxFieldDepth is how far members inside members are listed on the page.
const maxFieldDepth = 6

// A field is one row of a table on the page: a member of a body or a parameter.
type field struct {
	Name        string // with its way from the top: "sales[].amount_brl"
	In          string // of a parameter: where it stands
	Type        string
	Bounds      []string
	Required    bool
	Deprecated  bool
	Description []block
	Default     string
	Example     string
}

// fields lists the members of an object schema, those of inner objects below their own.
func fields(doc, schema *node, prefix string, depth int) []field {
	if schema == nil || depth > maxFieldDepth {
		return nil
	}
	_, schema = resolve(doc, "", schema, "schemas")
	var rows []field
	required := requiredIn(schema)
	for _, m := range schema.each("properties") {
		row := describeField(doc, m.value)
		row.Name = prefix + m.name
		row.Required = slices.Contains(required, m.name)
		rows = append(rows, row)
		rows = append(rows, inside(doc, m.value, prefix+m.name, depth+1)...)
	}
	for _, name := range schemaListHolders {
		for _, form := range schema.list(name) {
			rows = append(rows, fields(doc, form, prefix, depth+1)...)
		}
	}
	if items := schema.get("items"); items != nil && prefix == "" {
		rows = append(rows, inside(doc, schema, "", depth)...)
	}
	return rows
}

// inside lists the members of an object, or of an array's items, that stands under a name.
func inside(doc, schema *node, name string, depth int) []field {
	_, schema = resolve(doc, "", schema, "schemas")
	if items := schema.get("items"); items != nil {
		return inside(doc, items, name+"[]", depth)
	}
	return fields(doc, schema, name+".", depth)
}

func requiredIn(schema *node) []string {
	var names []string
	for _, name := range schema.list("required") {
		names = append(names, name.text)
	}
	return names
}

// describeField fills all of a field that its schema says.
func describeField(doc, schema *node) field {
	f := field{Description: prose(schema.str("description")), Deprecated: schema.isTrue("deprecated")}
	_, target := resolve(doc, "", schema, "schemas")
	if f.Description == nil {
		f.Description = prose(target.str("description"))
	}
	f.Type = typeText(doc, target, 0)
	f.Bounds = bounds(target)
	f.Default = sampleText(schema, target, "default")
	f.Example = sampleText(schema, target, "example")
	if examples := target.list("examples"); f.Example == "" && len(examples) > 0 {
		f.Example = plainText(examples[0])
	}
	if items := target.get("items"); items != nil {
		_, items = resolve(doc, "", items, "schemas")
		for _, bound := range bounds(items) {
			f.Bounds = append(f.Bounds, "each "+bound)
		}
	}
	return f
}

func sampleText(schema, target *node, name string) string {
	if value := schema.get(name); value != nil {
		return plainText(value)
	}
	if value := target.get(name); value != nil {
		return plainText(value)
	}
	return ""
}

// typeText says what a value is: "string (uuid)", "array of string", "number or null".
func typeText(doc, schema *node, depth int) string {
	_, schema = resolve(doc, "", schema, "schemas")
	if depth > maxFieldDepth {
		return "any"
	}
	if items := schema.get("items"); items != nil {
		return "array of " + typeText(doc, items, depth+1)
	}
	var names []string
	switch t := schema.get("type"); {
	case t != nil && t.kind == '"':
		names = []string{t.text}
	case t != nil:
		for _, name := range t.items {
			names = append(names, name.text)
		}
	default:
		for _, holder := range schemaListHolders {
			for _, form := range schema.list(holder) {
				if name := typeText(doc, form, depth+1); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	if len(names) == 0 {
		return "any"
	}
	if format := schema.str("format"); format != "" {
		names[0] += " (" + format + ")"
	}
	return strings.Join(names, " or ")
}

// bounds puts the limits of one value into words.
func bounds(schema *node) []string {
	var words []string
	add := func(keyword, before, after string) {
		if limit := schema.get(keyword); limit != nil {
			words = append(words, before+plainText(limit)+after)
		}
	}
	add("minimum", "at least ", "")
	add("exclusiveMinimum", "more than ", "")
	add("maximum", "at most ", "")
	add("exclusiveMaximum", "less than ", "")
	add("multipleOf", "a multiple of ", "")
	add("minLength", "at least ", " characters")
	add("maxLength", "at most ", " characters")
	add("minItems", "at least ", " items")
	add("maxItems", "at most ", " items")
	add("pattern", "form ", "")
	add("const", "always ", "")
	if values := schema.list("enum"); len(values) > 0 {
		var names []string
		for _, value := range values {
			names = append(names, plainText(value))
		}
		words = append(words, "one of "+strings.Join(names, ", "))
	}
	if schema.isTrue("uniqueItems") {
		words = append(words, "no item twice")
	}
	return words
}

// plainText is a value as people read it: a string without quotes, all else as JSON.
func plainText(n *node) string {
	if n.kind == '"' {
		return n.text
	}
	return string(n.appendJSON(nil))
}
