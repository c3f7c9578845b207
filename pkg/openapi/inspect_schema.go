package openapi

import (
	"fmt"
	"slices"
	"strings"
)

// Keywords of JSON Schema that a document may use, by what they hold.
var (
	assertions = []string{
		"type", "enum", "const", "format", "pattern", "minLength", "maxLength",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"required", "dependentRequired", "minProperties", "maxProperties",
		"minItems", "maxItems", "uniqueItems",
	}
	annotations = []string{
		"title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly",
		"discriminator", "externalDocs", "$comment",
	}
	schemaHolders     = []string{"items", "additionalProperties", "not", "if", "then", "else"}
	schemaListHolders = []string{"allOf", "anyOf", "oneOf"}
	schemaMapHolders  = []string{"properties", "patternProperties"}

	keywords = slices.Concat([]string{"$ref"}, assertions, annotations, schemaHolders, schemaListHolders, schemaMapHolders)
)

// schema checks one schema and all inside it for what the compiler would let pass:
// unknown keywords and formats, references out of the document, required members that
// are not declared.
func (in *inspector) schema(at string, s *node) {
	if s.kind == 't' || s.kind == 'f' {
		return
	}
	if s.kind != '{' {
		in.add(at, "a schema is an object or a boolean")
		return
	}
	in.reference(at, s, "schemas")
	for _, m := range s.members {
		if !strings.HasPrefix(m.name, "x-") && !slices.Contains(keywords, m.name) {
			in.add(pointer(at, m.name), "the keyword is not supported")
		}
	}
	if format := s.str("format"); format != "" {
		if _, known := knownFormats[format]; !known {
			in.add(at+"/format", "the format %q is not known", format)
		}
	}
	for _, name := range []string{"default", "example"} {
		in.sample(pointer(at, name), at, s.get(name))
	}
	for i, example := range s.list("examples") {
		in.sample(fmt.Sprintf("%s/examples/%d", at, i), at, example)
	}
	in.requiredNames(at, s)
	in.subschemas(at, s)
}

// sample records a value that stands inside the schema which it must satisfy.
func (in *inspector) sample(at, schema string, value *node) {
	if value != nil {
		in.examples = append(in.examples, exampleSite{at, schema, value})
		in.findings.schemas = append(in.findings.schemas, schema)
	}
}

func (in *inspector) subschemas(at string, s *node) {
	for _, name := range schemaHolders {
		if inner := s.get(name); inner != nil {
			in.schema(at+"/"+name, inner)
		}
	}
	for _, name := range schemaListHolders {
		for i, inner := range s.list(name) {
			in.schema(fmt.Sprintf("%s/%s/%d", at, name, i), inner)
		}
	}
	for _, name := range schemaMapHolders {
		for _, m := range s.each(name) {
			in.schema(pointer(at, name, m.name), m.value)
		}
	}
}

// requiredNames catches a misspelt name in required, where one schema declares all members.
func (in *inspector) requiredNames(at string, s *node) {
	if s.get("properties") == nil || s.get("$ref") != nil || s.get("allOf") != nil {
		return
	}
	for _, name := range s.list("required") {
		if s.get("properties", name.text) == nil {
			in.add(at+"/required", "%q is not among the properties", name.text)
		}
	}
}
