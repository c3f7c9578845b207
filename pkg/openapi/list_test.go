package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/openapi"
)

const listYAML = `
openapi: 3.1.0
info: {title: Lists, version: "1"}
paths:
  /lists:
    post:
      operationId: makeList
      requestBody:
        required: true
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Outer"}
      responses: {200: {description: Done.}}
components:
  schemas:
    Outer:
      type: object
      additionalProperties: false
      required: [rows]
      properties:
        rows: {$ref: "#/components/schemas/Rows"}
        dry: {type: boolean}
        free: {type: array, items: {type: string}}
        any: {type: array, maxItems: 3}
    Rows: {type: array, minItems: 1, maxItems: 3, items: {$ref: "#/components/schemas/Row"}}
    Row:
      type: object
      required: [name]
      additionalProperties: false
      properties:
        name: {type: string, minLength: 1}
        size: {type: integer}
`

type row struct {
	Name string `json:"name"`
	Size *int   `json:"size"`
}

func rows(t testing.TB) (*openapi.Body, *openapi.List) {
	t.Helper()
	d, err := openapi.Load([]byte(listYAML))
	if err != nil {
		t.Fatal(err)
	}
	body := d.Body("POST", "/lists")
	list := body.List("rows")
	if list == nil {
		t.Fatal("rows is no list")
	}
	return body, list
}

func TestAListIsSplitIntoWhatWasSent(t *testing.T) {
	_, list := rows(t)
	elements, err := list.Elements([]byte(` { "dry" : true , "rows" : [ {"name" : "a"} ,{"n\u0061me":"]}"},` + "{\"name\":\"\xff\"}" + ` ] } `))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%q", elements), `["{\"name\" : \"a\"}" "{\"n\\u0061me\":\"]}\"}" "{\"name\":\"\xff\"}"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAnElementIsJudgedAloneWithPathsOfItsOwn(t *testing.T) {
	_, list := rows(t)
	var got row
	if err := list.Decode([]byte(`{"name":"a","size":null}`), &got); err != nil || got.Name != "a" || got.Size != nil {
		t.Errorf("%+v %v", got, err)
	}
	for raw, want := range map[string][]string{
		`{"nam":"a"}`:              {"/nam unknown_member", "/name required"},
		`{"name":"","size":1.5}`:   {"/name too_short", "/size type"},
		`{"name":"a","name":"b"}`:  {"/name duplicate_member"},
		`[{"name":"a"}]`:           {" type"},
		"{\"name\":\"\xff\"}":      {" syntax"},
		`{"name":"a","size":1e99}`: {"/size format"},
	} {
		if issues := refusal(t, list.Decode([]byte(raw), &got)); !slices.Equal(issues, want) {
			t.Errorf("%s: %q, want %q", raw, issues, want)
		}
	}
}

func TestOnlyAMemberThatIsABoundedListOfOneSchemaCanBeSplit(t *testing.T) {
	body, _ := rows(t)
	for _, member := range []string{"", "dry", "free", "any", "nothing"} {
		if body.List(member) != nil {
			t.Errorf("%q is a list", member)
		}
	}
}

func TestTheWholeBodyIsStillHeldAgainstItsSchema(t *testing.T) {
	body, list := rows(t)
	var members map[string]any
	if issues := refusal(t, body.Decode([]byte(`{"rows":[{}]}`), &members)); !slices.Equal(issues, []string{"/rows/0/name required"}) {
		t.Errorf("splitting a body changed how it is judged as a whole: %q", issues)
	}
	if _, err := list.Elements([]byte(`{"rows":[{}]}`)); err != nil {
		t.Error(err)
	}
	if issues := refusal(t, second(list.Elements([]byte(`{"rows":[0],"dry":1}`)))); !slices.Equal(issues, []string{"/dry type"}) {
		t.Errorf("%q", issues)
	}
}

func second(_ [][]byte, err error) error { return err }

func TestWhereTheTextBreaksIsToldAsItWasSent(t *testing.T) {
	_, list := rows(t)
	raw := `{"rows":[{"name":"a"}],"free":["` + "\xff" + `"]}`
	err := second(list.Elements([]byte(raw)))
	if want := fmt.Sprintf("not valid UTF-8 at byte %d", strings.IndexByte(raw, 0xff)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// FuzzListIsSplitAsAnotherReaderWould holds the elements against those that
// encoding/json finds.
func FuzzListIsSplitAsAnotherReaderWould(f *testing.F) {
	for _, seed := range []string{
		`{"rows":[{"name":"a"},{"name":"b"}]}`, `{"rows":[1,"a",null]}`, `{"rows":[[[]],{},"]"]}`, `{"rows":{}}`, `{"rows":"x","dry":true}`,
		`{"dry":false,"rows":[0,-0.5e3]}`, `{"rows":[ ]}`, `{"rows":[1,2,3,4]}`, `[{"rows":[]}]`, `{"rows":[1]}x`, `{"r\u006fws":[1]}`, "{\"rows\":[\"\xff\"]}",
		`{"rows":[1],"rows":[2]}`, `{"rows":[tru]}`, `{"rows":[1`, `{"free":["[1]"],"rows":[2]}`,
	} {
		f.Add([]byte(seed))
	}
	_, list := rows(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		sent := bytes.Clone(raw)
		elements, err := list.Elements(raw)
		if !bytes.Equal(raw, sent) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			refusal(t, err)
			return
		}
		var other struct {
			Rows []json.RawMessage `json:"rows"`
		}
		if err := json.Unmarshal(raw, &other); err != nil || len(other.Rows) != len(elements) {
			t.Fatalf("another reader finds %d elements of %d: %v", len(other.Rows), len(elements), err)
		}
		for i, element := range elements {
			if !bytes.Equal(bytes.TrimSpace(other.Rows[i]), element) {
				t.Errorf("element %d is %q, but for another reader %q", i, element, other.Rows[i])
			}
		}
	})
}
