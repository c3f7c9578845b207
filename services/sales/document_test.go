package sales

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/web"
)

// operation is as much of a documented operation as the tests look at.
type operation struct {
	Scope       string                `json:"x-scope"`
	Security    []map[string][]string `json:"security"`
	RequestBody struct {
		Content map[string]struct {
			Examples map[string]struct {
				Value json.RawMessage `json:"value"`
			} `json:"examples"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]json.RawMessage `json:"responses"`
}

// examples are the bodies that the document shows, by name.
func (o operation) examples() map[string]json.RawMessage {
	bodies := map[string]json.RawMessage{}
	for name, example := range o.RequestBody.Content["application/json"].Examples {
		bodies[name] = example.Value
	}
	return bodies
}

// documented are the operations of the document, by method and path.
func documented(t *testing.T) map[string]operation {
	t.Helper()
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	var published struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	if err := json.Unmarshal(doc.JSON(), &published); err != nil {
		t.Fatal(err)
	}
	operations := map[string]operation{}
	for path, methods := range published.Paths {
		for method, o := range methods {
			operations[strings.ToUpper(method)+" "+path] = o
		}
	}
	return operations
}

func TestTheDocumentNamesEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	var routes []string
	for _, route := range new(Service).routes() {
		routes = append(routes, route.Method+" "+route.Pattern)
	}
	slices.Sort(routes)
	if names := slices.Sorted(maps.Keys(documented(t))); !slices.Equal(routes, names) {
		t.Errorf("the routes are\n%s\nbut documented are\n%s", strings.Join(routes, "\n"), strings.Join(names, "\n"))
	}
}

func TestTheDocumentedScopeIsTheOneThatIsAskedFor(t *testing.T) {
	t.Parallel()
	operations := documented(t)
	for _, route := range new(Service).routes() {
		o := operations[route.Method+" "+route.Pattern]
		want, scheme := web.Scope(auth.Scope(o.Scope)), "apiKey"
		if strings.HasPrefix(route.Pattern, "/admin/") {
			want, scheme = web.Operator, "operator"
		}
		if route.Access != want {
			t.Errorf("%s %s is documented with the scope %q", route.Method, route.Pattern, o.Scope)
		}
		if len(o.Security) != 1 || o.Security[0][scheme] == nil {
			t.Errorf("%s %s is documented with the security %v, want %s", route.Method, route.Pattern, o.Security, scheme)
		}
	}
}

func TestAKeyThatHasEveryOtherScopeIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	keys := map[string]string{} // that lack a scope, by the scope
	operations := documented(t)
	for name, o := range operations {
		if o.Scope == "" {
			continue
		}
		if keys[o.Scope] == "" {
			others, err := json.Marshal(slices.DeleteFunc(slices.Clone(auth.AllScopes), func(s auth.Scope) bool { return string(s) == o.Scope }))
			if err != nil {
				t.Fatal(err)
			}
			keys[o.Scope] = f.post("/api/v1/api-keys", `{"name":"x","scopes":`+string(others)+`}`).want(201).text("api_key")
		}
		method, pattern, _ := strings.Cut(name, " ")
		address := strings.NewReplacer("{campaign_id}", f.campaign, "{partner_id}", f.partner, "{plan_id}", f.plan, "{sale_id}", f.plan, "{conversion_id}", f.plan, "{api_key_id}", f.plan).Replace(pattern)
		f.recordsNothing(func() { f.with(keys[o.Scope]).call(method, address, `{`).refused(403, "insufficient_scope") })
	}
}

func TestEveryDocumentedBodyIsAccepted(t *testing.T) {
	t.Parallel()
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for name, o := range documented(t) {
		method, path, _ := strings.Cut(name, " ")
		if takesBody := method == "POST" || method == "PATCH"; takesBody != (len(o.examples()) > 0) {
			t.Errorf("%s has %d examples of a body", name, len(o.examples()))
		}
		for example, body := range o.examples() {
			var members map[string]any
			if err := doc.Body(method, path).Decode(body, &members); err != nil {
				t.Errorf("%s, example %s: %v", name, example, err)
			}
			accepted++
		}
	}
	if accepted < 15 {
		t.Errorf("only %d examples were found", accepted)
	}
}

func TestTheDocumentIsServedWithoutAKey(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	if answer := f.send("GET", "/openapi.json", "").want(200); string(answer.raw) != string(doc.JSON()) {
		t.Error("/openapi.json is not the document")
	}
	for _, path := range []string{"/docs", "/healthz", "/metrics"} {
		f.send("GET", path, "").want(200)
	}
}
