package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documentURL names the document to the compiler. Nothing can be fetched from it.
const documentURL = "openapi:///document.json"

// noLoader keeps the compiler from reading files or the network.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema may only refer to its own document")
}

// compile compiles the schemas at these pointers of the document, and returns them by pointer.
func compile(document []byte, pointers []string) (map[string]*jsonschema.Schema, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("read own JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.AssertFormat()
	for _, format := range ownFormats {
		compiler.RegisterFormat(format)
	}
	if err := compiler.AddResource(documentURL, value); err != nil {
		return nil, fmt.Errorf("add document: %w", err)
	}

	var found problems
	schemas := make(map[string]*jsonschema.Schema, len(pointers))
	hardened := map[*jsonschema.Schema]bool{}
	for _, pointer := range pointers {
		fragment := url.URL{Fragment: pointer}
		schema, err := compiler.Compile(documentURL + fragment.String())
		if err != nil {
			found.add(pointer, "%w", err)
			continue
		}
		schemas[pointer] = schema
	}
	for _, schema := range schemas {
		harden(schema, hardened)
	}
	return schemas, found.err()
}

// harden replaces checks of a compiled schema, and of all schemas that it reaches, by
// the rules of this package; done names those that have been seen.
func harden(s *jsonschema.Schema, done map[*jsonschema.Schema]bool) {
	if s == nil || done[s] {
		return
	}
	done[s] = true
	takeNumberRule(s)
	takeFormatRule(s)
	for _, inner := range subschemas(s) {
		harden(inner, done)
	}
	takeListRule(s)
}

// subschemas returns what s refers to or contains, by the keywords that a document may use.
func subschemas(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else, s.Items2020}
	all = append(all, s.AllOf...)
	all = append(all, s.AnyOf...)
	all = append(all, s.OneOf...)
	for _, inner := range s.Properties {
		all = append(all, inner)
	}
	for _, inner := range s.PatternProperties {
		all = append(all, inner)
	}
	if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		all = append(all, additional)
	}
	return all
}

// checkExamples validates every example as a request or response is validated.
func checkExamples(examples []exampleSite, schemas map[string]*jsonschema.Schema) error {
	var found problems
	for _, example := range examples {
		read, fault := parse(example.value.appendJSON(nil))
		if fault != nil {
			found.add(example.pointer, "%s", fault.Message)
			continue
		}
		for _, issue := range append(read.issues, issues(schemas[example.schema].Validate(read.tree))...) {
			found.add(example.pointer, "the example breaks its schema: at %q: %s", issue.Path, issue.Message)
		}
	}
	return found.err()
}
