package openapi_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"partilha.dev/pkg/openapi"
)

func TestTheJSONKeepsOrderAndSpelling(t *testing.T) {
	d, err := openapi.Load([]byte(`
openapi: 3.1.0
info: {version: '1', title: &t Zoo, description: *t}
paths:
  /b:
    get: {responses: {200: {description: Fine.}}, x-note: {big: 123456789012345678901234567890.10, yes: true, no: null, day: 2026-03-01}}
  /a:
    get: {responses: {200: {description: "é \" \u2028"}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"openapi":"3.1.0","info":{"version":"1","title":"Zoo","description":"Zoo"},"paths":{` +
		`"/b":{"get":{"responses":{"200":{"description":"Fine."}},"x-note":{"big":123456789012345678901234567890.10,"yes":true,"no":null,"day":"2026-03-01"}}},` +
		`"/a":{"get":{"responses":{"200":{"description":"é \" ` + "\u2028" + `"}}}}}}`
	if got := string(d.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTheJSONIsValidAndTheCallersOwn(t *testing.T) {
	d := loadShop(t)
	first := d.JSON()
	if !json.Valid(first) {
		t.Fatal("not JSON")
	}
	first[0] = 'x'
	if bytes.Equal(first, d.JSON()) {
		t.Error("a caller can change the document")
	}
}

func TestBodyIsNilWhereThereIsNone(t *testing.T) {
	d := loadShop(t)
	for _, c := range [][2]string{
		{"GET", "/api/v1/sales"}, {"POST", "/api/v1/nothing"}, {"DELETE", "/api/v1/sales"}, {"POST", "/api/v1/sales/"}, {"", ""},
	} {
		if d.Body(c[0], c[1]) != nil {
			t.Errorf("%s %s has a body", c[0], c[1])
		}
	}
	if d.Body("post", "/api/v1/sales") == nil || d.Body("POST", "/api/v1/sales") == nil {
		t.Error("the method depends on its letter case")
	}
}

func TestADocumentDescribesItsOperationsAndNoOthers(t *testing.T) {
	d := loadShop(t)
	for operation, want := range map[[2]string]bool{
		{"GET", "/api/v1/sales"}: true, {"post", "/api/v1/sales"}: true, {"PATCH", "/api/v1/things/{id}"}: true,
		{"DELETE", "/api/v1/sales"}: false, {"GET", "/api/v1/sales/"}: false, {"PARAMETERS", "/api/v1/things/{id}"}: false, {"", ""}: false,
	} {
		if got := d.Describes(operation[0], operation[1]); got != want {
			t.Errorf("%s: %t", operation, got)
		}
	}
}

func TestABrokenDocumentDoesNotLoad(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"not YAML":                         {"openapi: 3.1.0", "openapi: [", "read YAML"},
		"two documents":                    {"openapi: 3.1.0", "a: 1\n---\nopenapi: 3.1.0", "more than one document"},
		"duplicate key":                    {"  title: Shop", "  title: Shop\n  title: Shop", `key "title" appears twice`},
		"merge key":                        {"  title: Shop", "  title: Shop\n  <<: {version: 2}", "a key must be plain text"},
		"infinity":                         {"  title: Shop", "  title: Shop\n  x-limit: .inf", "as JSON does"},
		"octal":                            {"  title: Shop", "  title: Shop\n  x-limit: 0o17", "as JSON does"},
		"an alias of itself":               {"  title: Shop", "  title: Shop\n  x-loop: &l [*l]", "read YAML"},
		"an older version":                 {"openapi: 3.1.0", "openapi: 3.0.3", "want the version 3.1.x"},
		"no title":                         {"  title: Shop", "", "#/info/title: is missing"},
		"an unknown member at the top":     {"components:", "component: {}\ncomponents:", `#/component: unknown member of a document`},
		"a misspelt member":                {"required: true", "requred: true", "requred: unknown member of a body"},
		"a relative path":                  {"  /api/v1/sales:", "  api/v1/sales:", "a path starts with a slash"},
		"an undeclared path parameter":     {"/api/v1/things/{id}", "/api/v1/things/{name}", `the path has the parameters ["name"] but declares ["id"]`},
		"a path parameter not required":    {"in: path, required: true", "in: path", "a path parameter is always required"},
		"a parameter that is nowhere":      {"in: query", "in: body", "where it is in"},
		"an operationId twice":             {"operationId: listSales", "operationId: recordSale", `operationId "recordSale" is also that of`},
		"no responses":                     {"      responses:\n        204: {description: Changed.}", "      responses: {}", "at least one response"},
		"a response without description":   {"204: {description: Changed.}", "204: {}", "a response needs a description"},
		"a status that is none":            {"204: {description: Changed.}", "ok: {description: Changed.}", "is not a status"},
		"an unknown security scheme":       {"      operationId: listSales", "      operationId: listSales\n      security: [{cookie: []}]", `there is no security scheme "cookie"`},
		"a body that is not JSON":          {"          application/json:\n            schema: {$ref: '#/components/schemas/Thing'}", "          text/xml: {schema: {}}", "there is no schema for application/json"},
		"a schema that does not exist":     {"#/components/schemas/Owner'", "#/components/schemas/Nobody'", "$ref must name something"},
		"a reference to another file":      {"'#/components/schemas/Owner'", "'owner.json'", "$ref must name something"},
		"a reference to another host":      {"'#/components/schemas/Owner'", "'https://example.com/owner.json'", "$ref must name something"},
		"a reference to the wrong section": {"{$ref: '#/components/responses/Invalid'}", "{$ref: '#/components/schemas/Sale'}", "under #/components/responses/"},
		"a misspelt keyword":               {"maxLength: 320", "maxLenght: 320", "#/components/schemas/NewSale/properties/customer_ref/maxLenght: the keyword is not supported"},
		"a keyword of OpenAPI 3.0":         {"maxLength: 320", "nullable: true", "the keyword is not supported"},
		"a bound that is no number":        {"maxLength: 320", "maxLength: many", "maxLength"},
		"an unknown type":                  {"{type: boolean}", "{type: bool}", "/properties/on/type"},
		"an unknown format":                {"format: email", "format: e-mail", `the format "e-mail" is not known`},
		"a pattern that does not compile":  {"'^[a-z]*$'", "'^[a-z'", "#/components/schemas/Thing"},
		"a required member misspelt":       {"required: [sale_id]", "required: [saleid]", `"saleid" is not among the properties`},
		"an example that is wrong":         {"amount_brl: 199.90", "amount_brl: 199.905", "the example breaks its schema: at \"/amount_brl\": at most 2 decimals"},
		"a response example that is wrong": {"value: {sale_id: 0197f0a2-1111-7abc-8def-0123456789ab}", "value: {}", "at \"/sale_id\": is required"},
		"a default that is wrong":          {"default: 25", "default: 101", "at most 100"},
	} {
		source := strings.Replace(string(shopYAML), c.old, c.new, 1)
		if source == string(shopYAML) {
			t.Errorf("%s: nothing was changed", name)
			continue
		}
		switch _, err := openapi.Load([]byte(source)); {
		case err == nil:
			t.Errorf("%s: loaded", name)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: got %q; want %q", name, err, c.want)
		}
	}
	for _, source := range []string{"", "null", "[]", "a", "openapi: 3.1.0"} {
		if _, err := openapi.Load([]byte(source)); err == nil {
			t.Errorf("%q: loaded", source)
		}
	}
}

func TestAllThatIsWrongWithADocumentIsReportedAtOnce(t *testing.T) {
	source := strings.NewReplacer("maxLength: 320", "maxLenght: 320", "operationId: listSales", "operationId: recordSale").Replace(string(shopYAML))
	_, err := openapi.Load([]byte(source))
	if err == nil || !strings.Contains(err.Error(), "maxLenght") || !strings.Contains(err.Error(), "recordSale") {
		t.Errorf("got %v", err)
	}
}
