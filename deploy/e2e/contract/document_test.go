package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"partilha.dev/pkg/openapi"
)

// document is a published document as a reader finds it, who knows nothing of the code
// that enforces it.
type document struct {
	tree       map[string]any
	compiler   *jsonschema.Compiler
	operations []*operation // in the order of their names
}

// operation is one documented operation.
type operation struct {
	doc          *document
	method, path string
	node         map[string]any
	body         *openapi.Body // nil: it takes none
}

func (o *operation) String() string { return o.method + " " + o.path }

const documentURL = "openapi:///published.json"

func readDocument(t *testing.T, published *openapi.Document) *document {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(published.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	d := &document{tree: value.(map[string]any), compiler: jsonschema.NewCompiler()}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(documentURL, value); err != nil {
		t.Fatal(err)
	}
	paths := d.tree["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(item)) {
			node, ok := item[method].(map[string]any)
			if !ok {
				t.Fatalf("%s has parameters of its own, which these tests do not look at", path)
			}
			o := &operation{doc: d, method: strings.ToUpper(method), path: path, node: node}
			if o.body = published.Body(method, path); (o.body == nil) != (node["requestBody"] == nil) {
				t.Fatalf("%s has a body that is not JSON", o)
			}
			d.operations = append(d.operations, o)
		}
	}
	return d
}

// follow returns what a node stands for, be it a reference or the thing itself, and
// where in the document that is.
func (d *document) follow(at string, node any) (string, map[string]any) {
	object, _ := node.(map[string]any)
	ref, isRef := object["$ref"].(string)
	if !isRef {
		return at, object
	}
	at = strings.TrimPrefix(ref, "#")
	var target any = d.tree
	for _, name := range strings.Split(at, "/")[1:] {
		target = target.(map[string]any)[unescape(name)]
	}
	return d.follow(at, target)
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1").Replace
	unescape = strings.NewReplacer("~1", "/", "~0", "~").Replace
)

// pointer is the JSON Pointer of these names.
func pointer(names ...string) string {
	var p strings.Builder
	for _, name := range names {
		p.WriteString("/" + escape(name))
	}
	return p.String()
}

// bodySchema is the schema of the operation's body.
func (o *operation) bodySchema() map[string]any {
	_, body := o.doc.follow("", o.node["requestBody"])
	_, media := o.doc.follow("", body["content"].(map[string]any)["application/json"])
	_, schema := o.doc.follow("", media["schema"])
	return schema
}

// example is the largest body that the document shows for the operation.
func (o *operation) example(t *testing.T) object {
	t.Helper()
	_, body := o.doc.follow("", o.node["requestBody"])
	_, media := o.doc.follow("", body["content"].(map[string]any)["application/json"])
	shown, _ := media["examples"].(map[string]any)
	var largest object
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		_, example := o.doc.follow("", shown[name])
		if members, ok := treeOf(example["value"]).(object); ok && (largest == nil || len(members) > len(largest)) {
			largest = append(object{}, members...)
		}
	}
	if largest == nil {
		t.Fatalf("%s shows no example of its body", o)
	}
	return largest
}

// needsBody tells whether the operation must be sent a body, be it an empty object.
func (o *operation) needsBody() bool {
	_, body := o.doc.follow("", o.node["requestBody"])
	return body["required"] == true
}

// parameter is a documented parameter.
type parameter struct {
	name, in, format string
	required         bool
	schema           any
}

func (o *operation) parameters() (all []parameter) {
	list, _ := o.node["parameters"].([]any)
	for _, node := range list {
		_, p := o.doc.follow("", node)
		_, schema := o.doc.follow("", p["schema"])
		format, _ := schema["format"].(string)
		required, _ := p["required"].(bool)
		all = append(all, parameter{p["name"].(string), p["in"].(string), format, required, schema})
	}
	return all
}

// streams tells whether the operation is answered by events that do not end.
func (o *operation) streams() bool {
	_, response := o.response(200)
	content, _ := response["content"].(map[string]any)
	return content[mediaEvents] != nil
}

const mediaEvents = "text/event-stream"

// byOperator tells whether the operation is for whoever runs the platform.
func (o *operation) byOperator() bool {
	for _, requirement := range o.node["security"].([]any) {
		if _, ok := requirement.(map[string]any)["operator"]; ok {
			return true
		}
	}
	return false
}

func (o *operation) scope() string {
	scope, _ := o.node["x-scope"].(string)
	return scope
}

// statuses are the documented ones, in their order.
func (o *operation) statuses() (all []int) {
	for _, name := range slices.Sorted(maps.Keys(o.node["responses"].(map[string]any))) {
		status, err := strconv.Atoi(name)
		if err == nil {
			all = append(all, status)
		}
	}
	return all
}

// response is the documented answer with that status, and where it stands.
func (o *operation) response(status int) (at string, node map[string]any) {
	name := strconv.Itoa(status)
	return o.doc.follow(pointer("paths", o.path, strings.ToLower(o.method), "responses", name), o.node["responses"].(map[string]any)[name])
}

// eachElementAlone tells whether the body lists elements that are judged and answered
// one by one, so that a wrong one is no error of the call.
func (o *operation) eachElementAlone() bool {
	at, response := o.response(200)
	if response == nil || response["content"] == nil {
		return false
	}
	_, media := o.doc.follow(at, response["content"].(map[string]any)["application/json"])
	_, schema := o.doc.follow("", media["schema"])
	properties, _ := schema["properties"].(map[string]any)
	return properties["results"] != nil
}

var limitPattern = regexp.MustCompile(`more than (\d+) (KiB|MiB)`)

// maxBody is how many bytes the document lets the body have.
func (o *operation) maxBody(t *testing.T) int {
	t.Helper()
	_, response := o.response(413)
	said := limitPattern.FindStringSubmatch(fmt.Sprint(response["description"]))
	if said == nil {
		t.Fatalf("%s does not say with its 413 how many KiB or MiB its body may have", o)
	}
	n, _ := strconv.Atoi(said[1])
	if said[2] == "MiB" {
		n <<= 10
	}
	return n << 10
}

// checkBody holds the body of an answer against its documented schema.
func (o *operation) checkBody(status int, body []byte) error {
	at, response := o.response(status)
	if response == nil {
		return fmt.Errorf("the status %d is not documented", status)
	}
	content, _ := response["content"].(map[string]any)
	if content[mediaEvents] != nil {
		if !eventPattern.Match(body) {
			return fmt.Errorf("these are no events: %s", body)
		}
		return nil
	}
	if content["application/json"] == nil {
		if len(body) > 0 {
			return fmt.Errorf("a %d has no documented body, and is answered %s", status, body)
		}
		return nil
	}
	schema, err := o.doc.compiler.Compile(documentURL + "#" + fragment(at) + "/content/application~1json/schema")
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// eventPattern is what a stream of events is: blocks of lines, each with data of JSON.
var eventPattern = regexp.MustCompile(`^((id: [\w-]+\n)?event: [a-z]+\ndata: \{.*\}\n\n)+$`)

// fragment writes a pointer as part of a URL.
func fragment(pointer string) string {
	return strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(pointer)
}

// checkHeaders holds the headers of an answer against the documented ones. Only
// Idempotency-Mismatch may be absent.
func (o *operation) checkHeaders(status int, header http.Header) error {
	_, response := o.response(status)
	documented, _ := response["headers"].(map[string]any)
	known := []string{"Content-Type", "Content-Length", "Connection"} // what HTTP itself has
	for name, node := range documented {
		known = append(known, http.CanonicalHeaderKey(name))
		values := header.Values(name)
		if len(values) == 0 && name == "Idempotency-Mismatch" {
			continue
		}
		if len(values) != 1 {
			return fmt.Errorf("the header %s is %q", name, values)
		}
		at, _ := o.doc.follow("", node)
		schema, err := o.doc.compiler.Compile(documentURL + "#" + fragment(at) + "/schema")
		if err != nil {
			return err
		}
		var value any = values[0]
		if schema.Types != nil && slices.Equal(schema.Types.ToStrings(), []string{"integer"}) {
			value = json.Number(values[0])
		}
		if err := schema.Validate(value); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	for name := range header {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the header %s is not documented", name)
		}
	}
	return nil
}
