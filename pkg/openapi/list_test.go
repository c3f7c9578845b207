package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
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
        few: {type: array, maxItems: 12, uniqueItems: true, items: {enum: [a, b]}}
        many: {type: array, items: {enum: [a, b]}}
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

// A body of about 64 KB is read that has no issue, and then others that are wrong in as
// many places as possible.
func TestRefusingABodyCostsAboutAsMuchAsReadingIt(t *testing.T) {
	body, _ := rows(t)
	list := func(name, item string, n int) string {
		return `{"rows":[{"name":"a"}],"` + name + `":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
	members := func(format string) string {
		var all []string
		for i := range 5_000 {
			all = append(all, fmt.Sprintf(format, i))
		}
		return `{"rows":[{"name":"a"}],` + strings.Join(all, ",") + `}`
	}
	cost := func(raw string) (bytes uint64, issues []string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := body.Decode([]byte(raw), new(map[string]any))
		runtime.ReadMemStats(&after)
		if err != nil {
			issues = refusal(t, err)
		}
		return after.TotalAlloc - before.TotalAlloc, issues
	}
	good, issues := cost(list("free", `"a"`, 15_000))
	if issues != nil {
		t.Fatalf("%q", issues)
	}
	for name, c := range map[string]struct {
		raw    string
		issues int
		first  string
	}{
		"a list that is too long":     {list("few", `"x"`, 15_000), 1, "/few too_long"},
		"a list of wrong items":       {list("many", `"x"`, 15_000), 100, "/many/0 not_allowed"},
		"members that nobody knows":   {members(`"%d":0`), 1, " unknown_member"},
		"members that come twice":     {members(`"x":%d`), 2, "/x duplicate_member"},
		"members with a U+0000":       {members(`"%d":"\u0000"`), 100, " unknown_member"},
		"one name in many duplicates": {`{"` + strings.Repeat("x", 30_000) + `":{` + strings.Repeat(`"a":0,`, 5_000) + `"a":0}}`, 1, ""},
	} {
		spent, issues := cost(c.raw)
		if spent > good {
			t.Errorf("%s: %d bytes, and %d where nothing is wrong", name, spent, good)
		}
		if len(issues) != c.issues || c.first != "" && issues[0] != c.first {
			t.Errorf("%s: %d issues, %.100q", name, len(issues), issues[0])
		}
	}
}

func TestMembersBesideAListHaveABoundTogether(t *testing.T) {
	_, list := rows(t)
	var raw strings.Builder
	for i := range 330_000 {
		fmt.Fprintf(&raw, `"%d":0,`, i)
	}
	issues := refusal(t, second(list.Elements([]byte(`{`+raw.String()+`"rows":[{}]}`))))
	if len(issues) != 1 || !strings.HasSuffix(issues[0], " too_long") {
		t.Errorf("%d issues, %.100q", len(issues), issues)
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
