// Package openapi makes an OpenAPI 3.1 document the one source of truth of request bodies.
//
// A service embeds its document as YAML and loads it at start. The same text is then
// published as JSON, shown as a page for people, and enforced: a body is decoded only
// after it has passed the very schema that callers were shown.
//
// A document that is wrong in itself does not load. That covers its structure, every
// schema and reference in it, and its examples, which must satisfy the schemas beside
// them. Of JSON Schema (draft 2020-12) it may use the keywords that a caller can be told
// about in one sentence; any other keyword is refused rather than ignored.
package openapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Document is a loaded OpenAPI document. It never changes and may be used by many goroutines.
type Document struct {
	tree   *node
	json   []byte
	page   []byte
	bodies map[string]*Body // by method and path template
}

// Load parses the YAML text of an OpenAPI 3.1 document and compiles every schema in it.
//
// The error lists everything that is wrong, each with its place in the document; a
// service that gets one must not start. Nothing outside the text is ever read.
func Load(yaml []byte) (*Document, error) {
	tree, err := readYAML(yaml)
	if err != nil {
		return nil, fmt.Errorf("load OpenAPI document: %w", err)
	}
	d, err := newDocument(tree)
	if err != nil {
		return nil, fmt.Errorf("load OpenAPI document: %w", err)
	}
	return d, nil
}

func newDocument(tree *node) (*Document, error) {
	found, err := inspect(tree)
	if err != nil {
		return nil, err
	}
	d := &Document{tree: tree, json: tree.appendJSON(nil)}
	schemas, err := compile(d.json, found.schemas)
	if err != nil {
		return nil, err
	}
	d.bodies = make(map[string]*Body, len(found.bodies))
	for _, b := range found.bodies {
		d.bodies[bodyKey(b.method, b.path)] = newBody(schemas[b.schema], b.required)
	}
	if err := checkExamples(found.examples, schemas); err != nil {
		return nil, err
	}
	if d.page, err = renderPage(tree); err != nil {
		return nil, err
	}
	return d, nil
}

// JSON returns the document as compact JSON, its members in the order of the source.
func (d *Document) JSON() []byte { return slices.Clone(d.json) }

// Docs returns the document as an HTML page for people. It is complete in itself: it
// loads nothing, from this host or another, and needs no script.
func (d *Document) Docs() []byte { return slices.Clone(d.page) }

// Body returns the request body of an operation, or nil if it has none. The path is the
// document's template, for example "/api/v1/plans/{id}"; the method is in any case.
func (d *Document) Body(method, path string) *Body { return d.bodies[bodyKey(method, path)] }

// Describes tells whether the document has the operation; method and path are as for
// [Document.Body].
func (d *Document) Describes(method, path string) bool {
	method = strings.ToLower(method)
	return slices.Contains(methods, method) && d.tree.get("paths", path, method) != nil
}

// QueryNames are the names of the query parameters that the document describes for an
// operation, in their order; method and path are as for [Document.Body].
func (d *Document) QueryNames(method, path string) (names []string) {
	item := d.tree.get("paths", path)
	for _, p := range slices.Concat(item.list("parameters"), item.list(strings.ToLower(method), "parameters")) {
		if _, p = resolve(d.tree, "", p, "parameters"); p.str("in") == "query" {
			names = append(names, p.str("name"))
		}
	}
	return names
}

func bodyKey(method, path string) string { return strings.ToUpper(method) + " " + path }

// problems gathers what is wrong with a document, so that its author sees all of it at once.
type problems []error

func (p *problems) add(pointer, format string, args ...any) {
	*p = append(*p, fmt.Errorf("#%s: "+format, append([]any{pointer}, args...)...))
}

func (p problems) err() error { return errors.Join(p...) }
