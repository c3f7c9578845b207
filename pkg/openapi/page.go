package openapi

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

type page struct {
	Title, Version string
	Description    []block
	Groups         []*group
}

// A group is the operations of one tag.
type group struct {
	Name, Anchor string
	Description  []block
	Operations   []operation
}

type operation struct {
	Anchor, Method, Path, Summary string
	Deprecated                    bool
	Description                   []block
	Security                      []string // each one way to be allowed
	Parameters                    []field
	Body                          *content
	Responses                     []response
}

// content is a body of a request or a response.
type content struct {
	Description []block
	Media       string
	Type        string
	Required    bool
	Fields      []field
	Examples    []sample
}

type sample struct{ Name, Text string }

type response struct {
	Status      string
	Description []block
	Headers     []field
	Contents    []content
}

// renderPage writes the document as HTML.
func renderPage(doc *node) ([]byte, error) {
	p := page{
		Title: doc.str("info", "title"), Version: doc.str("info", "version"),
		Description: prose(doc.str("info", "description")), Groups: groups(doc),
	}
	var html bytes.Buffer
	if err := pageTemplate.Execute(&html, p); err != nil {
		return nil, fmt.Errorf("render page: %w", err)
	}
	return html.Bytes(), nil
}

// groups sorts the operations by their first tag: declared tags first and in their
// order, then all others as they come.
func groups(doc *node) []*group {
	var all []*group
	add := func(name, description string) *group {
		g := &group{Name: name, Anchor: fmt.Sprintf("tag-%d", len(all)+1), Description: prose(description)}
		all = append(all, g)
		return g
	}
	find := func(name string) *group {
		if i := slices.IndexFunc(all, func(g *group) bool { return g.Name == name }); i >= 0 {
			return all[i]
		}
		return add(name, "")
	}
	for _, tag := range doc.list("tags") {
		add(tag.str("name"), tag.str("description"))
	}
	taken := map[string]int{}
	for _, section := range []struct{ name, group string }{{"paths", "Other"}, {"webhooks", "Webhooks"}} {
		for _, path := range doc.each(section.name) {
			for _, method := range methods {
				op := path.value.get(method)
				if op == nil {
					continue
				}
				name := section.group
				if tags := op.list("tags"); len(tags) > 0 {
					name = tags[0].text
				}
				g := find(name)
				g.Operations = append(g.Operations, readOperation(doc, path, method, op, taken))
			}
		}
	}
	return slices.DeleteFunc(all, func(g *group) bool { return len(g.Operations) == 0 })
}

func readOperation(doc *node, path member, method string, op *node, taken map[string]int) operation {
	o := operation{
		Anchor: anchor(op.str("operationId"), method+path.name, taken),
		Method: strings.ToUpper(method), Path: path.name,
		Summary: op.str("summary"), Description: prose(op.str("description")), Deprecated: op.isTrue("deprecated"),
		Security: security(doc, op),
	}
	for _, p := range slices.Concat(path.value.list("parameters"), op.list("parameters")) {
		_, p = resolve(doc, "", p, "parameters")
		row := field{Type: "any"}
		if schema := p.get("schema"); schema != nil {
			row = describeField(doc, schema)
		}
		row.Name, row.In, row.Required = p.str("name"), p.str("in"), p.isTrue("required")
		if description := p.str("description"); description != "" {
			row.Description = prose(description)
		}
		if example := p.get("example"); example != nil {
			row.Example = plainText(example)
		}
		o.Parameters = append(o.Parameters, row)
	}
	if body := op.get("requestBody"); body != nil {
		_, body = resolve(doc, "", body, "requestBodies")
		if contents := readContents(doc, body); len(contents) > 0 {
			o.Body = &contents[0]
			o.Body.Description = prose(body.str("description"))
			o.Body.Required = body.isTrue("required")
		}
	}
	for _, r := range op.each("responses") {
		o.Responses = append(o.Responses, readResponse(doc, r))
	}
	return o
}

// anchor makes a name that is unique on the page out of an operation's id or place.
func anchor(id, place string, taken map[string]int) string {
	name := id
	if name == "" {
		name = place
	}
	name = "op-" + strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		default:
			return '-'
		}
	}, name), "-")
	taken[name]++
	if n := taken[name]; n > 1 {
		return fmt.Sprintf("%s-%d", name, n)
	}
	return name
}

// security names the ways in which a caller may be let in, with the scopes they ask for.
func security(doc, op *node) []string {
	requirements := op.get("security")
	if requirements == nil {
		requirements = doc.get("security")
	}
	var ways []string
	for _, requirement := range requirements.list() {
		var parts []string
		for _, scheme := range requirement.members {
			part := scheme.name
			for _, scope := range scheme.value.items {
				part += " " + scope.text
			}
			parts = append(parts, part)
		}
		if way := strings.Join(parts, " and "); way != "" {
			ways = append(ways, way)
		} else {
			ways = append(ways, "nobody needs a key")
		}
	}
	return ways
}

func readResponse(doc *node, r member) response {
	_, n := resolve(doc, "", r.value, "responses")
	out := response{Status: r.name, Description: prose(n.str("description")), Contents: readContents(doc, n)}
	for _, h := range n.each("headers") {
		_, header := resolve(doc, "", h.value, "headers")
		row := field{Type: "string"}
		if schema := header.get("schema"); schema != nil {
			row = describeField(doc, schema)
		}
		row.Name = h.name
		if description := header.str("description"); description != "" {
			row.Description = prose(description)
		}
		out.Headers = append(out.Headers, row)
	}
	return out
}

func readContents(doc, n *node) []content {
	var all []content
	for _, media := range n.each("content") {
		c := content{Media: media.name}
		if schema := media.value.get("schema"); schema != nil {
			c.Type = typeText(doc, schema, 0)
			c.Fields = fields(doc, schema, "", 0)
		}
		if example := media.value.get("example"); example != nil {
			c.Examples = append(c.Examples, sample{"Example", example.indented()})
		}
		for _, m := range media.value.each("examples") {
			_, example := resolve(doc, "", m.value, "examples")
			if value := example.get("value"); value != nil {
				name := m.name
				if summary := example.str("summary"); summary != "" {
					name = summary
				}
				c.Examples = append(c.Examples, sample{name, value.indented()})
			}
		}
		all = append(all, c)
	}
	return all
}
