package openapi_test

import (
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/openapi"
)

const goalsYAML = `
openapi: 3.1.0
info: {title: Goals, version: 9.0.0, description: About goals.}
tags: [{name: Goals}]
paths:
  /healthz:
    get: {responses: {200: {description: Alive.}}}
  /api/v1/goals:
    post:
      tags: [Goals]
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Goal'}}}}
      responses: {201: {description: Made.}}
components:
  schemas:
    Goal: {type: object, additionalProperties: false, properties: {name: {type: string}}}
    Owner:
      type: object
      required: [id]
      additionalProperties: false
      properties: {id: {type: string, format: uuid}, name: {type: string}}
`

func load(t *testing.T, source string) *openapi.Document {
	t.Helper()
	d, err := openapi.Load([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMergeSaysOnceWhatAllDocumentsSay(t *testing.T) {
	document := func(own string) *openapi.Document {
		return load(t, "openapi: 3.1.0\ninfo:\n  title: One\n  version: \"1\"\n  description: |\n    "+own+"\n\n    ## For all\n\n    The same rules.\npaths: {}\n")
	}
	merged, err := openapi.Merge("Both", document("About sales."), document("About goals."))
	if err != nil {
		t.Fatal(err)
	}
	want := `"description":"About sales.\n\nAbout goals.\n\n## For all\n\nThe same rules."`
	if !strings.Contains(string(merged.JSON()), want) {
		t.Errorf("the merged document lacks %s: %s", want, merged.JSON())
	}
	if !strings.Contains(string(merged.Docs()), "<h4>For all</h4>") {
		t.Error("the page does not show the heading as one")
	}
}

func TestMergeUnitesPathsTagsAndComponents(t *testing.T) {
	shop, goals := loadShop(t), load(t, goalsYAML)
	before := string(shop.JSON()) + string(goals.JSON())
	merged, err := openapi.Merge("Everything", shop, goals)
	if err != nil {
		t.Fatal(err)
	}
	text := string(merged.JSON())
	for _, want := range []string{
		`"title":"Everything"`, `"version":"1.2.0"`, "About goals.", `"/healthz"`, `"/api/v1/sales"`,
		`"Goal":{`, `"NewSale":{`, `"name":"Sales"`, `"name":"Goals"`, `"security":[{"key":["sales:write"]}]`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the merged document lacks %s", want)
		}
	}
	if strings.Contains(text, `"servers"`) || strings.Count(text, `"Owner":{`) != 1 {
		t.Error("servers were kept, or a component was doubled")
	}
	if before != string(shop.JSON())+string(goals.JSON()) {
		t.Error("merging changed its parts")
	}

	var in struct {
		Name string `json:"name"`
	}
	got := refusal(t, merged.Body("POST", "/api/v1/goals").Decode([]byte(`{"nick":1}`), &in))
	if !slices.Equal(got, []string{"/nick unknown_member"}) {
		t.Errorf("got %q", got)
	}
	if merged.Body("POST", "/api/v1/sales") == nil || len(merged.Docs()) <= len(goals.Docs()) {
		t.Error("the merged document does not work like a loaded one")
	}
}

func TestMergeSharesAPathWhoseOperationsDiffer(t *testing.T) {
	other := strings.Replace(goalsYAML, "  /healthz:\n    get:", "  /healthz:\n    head:", 1)
	first := load(t, goalsYAML)
	merged, err := openapi.Merge("Both", first, load(t, other))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(merged.JSON()); !strings.Contains(text, `"/healthz":{"get":{`) || !strings.Contains(text, `"head":{`) {
		t.Errorf("got %s", text)
	}
	alone, err := openapi.Merge("One", first)
	if err != nil || strings.Contains(string(alone.JSON()), `"head":{`) {
		t.Errorf("merging changed its first part: %v", err)
	}
}

func TestMergeRefusesWhatDiffers(t *testing.T) {
	for want, replacement := range map[string][2]string{
		"#/paths/~1healthz/get: differs":         {"Alive.", "Well."},
		"#/components/schemas/Goal: differs":     {"name: {type: string}}", "name: {type: string, maxLength: 9}}"},
		`the tag "Goals" differs`:                {"{name: Goals}", "{name: Goals, description: Other.}"},
		"#/components/schemas/Owner: differs":    {"required: [id]", "required: [id, name]"},
		"#/paths/~1api~1v1~1goals/post: differs": {"required: true", "required: false"},
	} {
		other := strings.Replace(goalsYAML, replacement[0], replacement[1], 1)
		_, err := openapi.Merge("Both", load(t, goalsYAML), load(t, other))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
}
