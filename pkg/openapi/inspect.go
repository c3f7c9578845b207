package openapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const mediaJSON = "application/json"

// methods are the members of a path item that are operations, in the order of the page.
var methods = []string{"get", "post", "put", "patch", "delete", "head", "options"}

// allowed are the members of each kind of object; a misspelt one would change the
// contract in silence. Members that start with "x-" are allowed everywhere.
var allowed = map[string][]string{
	"document": {"openapi", "info", "jsonSchemaDialect", "servers", "paths", "webhooks", "components", "security", "tags", "externalDocs"},
	"info":     {"title", "summary", "description", "termsOfService", "contact", "license", "version"},
	"components": {"schemas", "responses", "parameters", "examples", "requestBodies", "headers",
		"securitySchemes"},
	"path":      append([]string{"summary", "description", "parameters"}, methods...),
	"operation": {"tags", "summary", "description", "externalDocs", "operationId", "parameters", "requestBody", "responses", "deprecated", "security"},
	"parameter": {"$ref", "name", "in", "description", "required", "deprecated", "style", "explode", "schema", "example", "examples"},
	"header":    {"$ref", "description", "required", "deprecated", "schema", "example", "examples"},
	"body":      {"$ref", "description", "content", "required"},
	"response":  {"$ref", "description", "headers", "content"},
	"media":     {"schema", "example", "examples"},
	"tag":       {"name", "description", "externalDocs"},
}

var (
	templateNames = regexp.MustCompile(`\{([^{}]*)\}`)
	statusShape   = regexp.MustCompile(`^([1-5]([0-9]{2}|XX)|default)$`)
)

// findings are the parts of a document that the rest of the package works on.
type findings struct {
	schemas  []string // pointers of all schemas that stand alone
	bodies   []bodySite
	examples []exampleSite
}

// A bodySite is a request body in JSON; schema is the pointer of its schema.
type bodySite struct {
	method, path, schema string
	required             bool
}

// An exampleSite is a value that must satisfy the schema at a pointer.
type exampleSite struct {
	pointer, schema string
	value           *node
}

type inspector struct {
	problems
	findings
	doc        *node
	operations map[string]string // pointer by operationId
}

// inspect walks the whole document, checks its structure and returns what it found.
// What is referred to is visited where it stands, under components.
func inspect(doc *node) (findings, error) {
	in := inspector{doc: doc, operations: map[string]string{}}
	in.members("", doc, "document")
	if !strings.HasPrefix(doc.str("openapi"), "3.1.") {
		in.add("/openapi", "want the version 3.1.x")
	}
	in.members("/info", doc.get("info"), "info")
	for _, name := range []string{"title", "version"} {
		if doc.str("info", name) == "" {
			in.add("/info/"+name, "is missing")
		}
	}
	for i, tag := range doc.list("tags") {
		in.members(fmt.Sprintf("/tags/%d", i), tag, "tag")
	}
	if doc.get("paths") == nil && doc.get("webhooks") == nil {
		in.add("/paths", "is missing")
	}
	for _, m := range doc.each("paths") {
		if !strings.HasPrefix(m.name, "/") {
			in.add(pointer("/paths", m.name), "a path starts with a slash")
		}
		in.path(pointer("/paths", m.name), m.name, m.value)
	}
	for _, m := range doc.each("webhooks") {
		in.path(pointer("/webhooks", m.name), "", m.value)
	}
	in.components()
	return in.findings, in.err()
}

func (in *inspector) components() {
	in.members("/components", in.doc.get("components"), "components")
	visit := map[string]func(at string, n *node){
		"schemas":       func(at string, n *node) { in.standalone(at, n) },
		"parameters":    in.parameter,
		"headers":       in.header,
		"responses":     in.response,
		"requestBodies": func(at string, n *node) { in.body(at, n) },
	}
	for _, section := range in.doc.each("components") {
		for _, m := range section.value.members {
			if f := visit[section.name]; f != nil {
				f(pointer("/components", section.name, m.name), m.value)
			}
		}
	}
}

// path checks one path item. A webhook has no template.
func (in *inspector) path(at, template string, item *node) {
	in.members(at, item, "path")
	for i, p := range item.list("parameters") {
		in.parameter(fmt.Sprintf("%s/parameters/%d", at, i), p)
	}
	for _, method := range methods {
		op := item.get(method)
		if op == nil {
			continue
		}
		in.operation(at+"/"+method, op)
		if template == "" {
			continue
		}
		in.templateNames(at+"/"+method, template, slices.Concat(item.list("parameters"), op.list("parameters")))
		if body := op.get("requestBody"); body != nil {
			in.requestBody(at+"/"+method+"/requestBody", method, template, body)
		}
	}
}

func (in *inspector) operation(at string, op *node) {
	in.members(at, op, "operation")
	if id := op.str("operationId"); id != "" {
		if other, taken := in.operations[id]; taken {
			in.add(at, "operationId %q is also that of #%s", id, other)
		}
		in.operations[id] = at
	}
	for i, p := range op.list("parameters") {
		in.parameter(fmt.Sprintf("%s/parameters/%d", at, i), p)
	}
	if body := op.get("requestBody"); body != nil {
		in.body(at+"/requestBody", body)
	}
	if len(op.each("responses")) == 0 {
		in.add(at, "an operation needs at least one response")
	}
	for _, r := range op.each("responses") {
		if !statusShape.MatchString(r.name) {
			in.add(pointer(at, "responses", r.name), "is not a status")
		}
		in.response(pointer(at, "responses", r.name), r.value)
	}
	for _, requirement := range op.list("security") {
		for _, scheme := range requirement.members {
			if in.doc.get("components", "securitySchemes", scheme.name) == nil {
				in.add(at+"/security", "there is no security scheme %q", scheme.name)
			}
		}
	}
}

// templateNames checks that the path's {names} and its declared path parameters are the same.
func (in *inspector) templateNames(at, template string, parameters []*node) {
	var want, have []string
	for _, match := range templateNames.FindAllStringSubmatch(template, -1) {
		want = append(want, match[1])
	}
	for _, p := range parameters {
		if _, p = in.resolve("", p, "parameters"); p.str("in") == "path" {
			have = append(have, p.str("name"))
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if have = slices.Compact(have); !slices.Equal(want, have) {
		in.add(at, "the path has the parameters %q but declares %q", want, have)
	}
}

// requestBody records the JSON body of an operation for Document.Body.
func (in *inspector) requestBody(at, method, template string, body *node) {
	at, body = in.resolve(at, body, "requestBodies")
	if body.get("content", mediaJSON, "schema") == nil {
		in.add(at, "there is no schema for %s", mediaJSON)
		return
	}
	in.bodies = append(in.bodies, bodySite{
		method: method, path: template, required: body.isTrue("required"),
		schema: pointer(at, "content", mediaJSON, "schema"),
	})
}

func (in *inspector) parameter(at string, p *node) {
	if in.reference(at, p, "parameters") {
		return
	}
	in.members(at, p, "parameter")
	if p.str("name") == "" || !slices.Contains([]string{"path", "query", "header", "cookie"}, p.str("in")) {
		in.add(at, "a parameter needs a name, and where it is in")
	}
	if p.str("in") == "path" && !p.isTrue("required") {
		in.add(at, "a path parameter is always required")
	}
	in.typed(at, p)
}

func (in *inspector) header(at string, h *node) {
	if in.reference(at, h, "headers") {
		return
	}
	in.members(at, h, "header")
	in.typed(at, h)
}

func (in *inspector) body(at string, b *node) {
	if in.reference(at, b, "requestBodies") {
		return
	}
	in.members(at, b, "body")
	in.content(at, b)
}

func (in *inspector) response(at string, r *node) {
	if in.reference(at, r, "responses") {
		return
	}
	in.members(at, r, "response")
	if r.str("description") == "" {
		in.add(at, "a response needs a description")
	}
	for _, h := range r.each("headers") {
		in.header(pointer(at, "headers", h.name), h.value)
	}
	in.content(at, r)
}

func (in *inspector) content(at string, n *node) {
	for _, media := range n.each("content") {
		here := pointer(at, "content", media.name)
		in.members(here, media.value, "media")
		in.typed(here, media.value)
	}
}

// typed visits the schema of n, which is a parameter, header or media type, and its examples.
func (in *inspector) typed(at string, n *node) {
	schema := n.get("schema")
	if schema == nil {
		return
	}
	in.standalone(at+"/schema", schema)
	if example := n.get("example"); example != nil {
		in.examples = append(in.examples, exampleSite{at + "/example", at + "/schema", example})
	}
	for _, m := range n.each("examples") {
		here, example := in.resolve(pointer(at, "examples", m.name), m.value, "examples")
		if value := example.get("value"); value != nil {
			in.examples = append(in.examples, exampleSite{here + "/value", at + "/schema", value})
		}
	}
}

// standalone visits a schema that is compiled by itself.
func (in *inspector) standalone(at string, schema *node) {
	in.findings.schemas = append(in.findings.schemas, at)
	in.schema(at, schema)
}

// reference checks n if it is a $ref, and tells whether it is.
func (in *inspector) reference(at string, n *node, section string) bool {
	target, isRef := localRef(n)
	if isRef && (!strings.HasPrefix(target, "/components/"+section+"/") || in.doc.at(target) == nil) {
		in.add(at, "$ref must name something under #/components/%s/ that exists", section)
	}
	return isRef
}

// resolve follows a $ref to what it names, and returns its pointer and value.
func (in *inspector) resolve(at string, n *node, section string) (string, *node) {
	return resolve(in.doc, at, n, section)
}

// members checks that n is an object of that kind and has no member that the kind lacks.
func (in *inspector) members(at string, n *node, kind string) {
	if n == nil {
		return
	}
	if n.kind != '{' {
		in.add(at, "must be an object")
		return
	}
	for _, m := range n.members {
		if !strings.HasPrefix(m.name, "x-") && !slices.Contains(allowed[kind], m.name) {
			in.add(pointer(at, m.name), "unknown member of a %s", kind)
		}
	}
}
