package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/openapi"
)

// batch sends a batch and returns what became of each element.
func (s *shop) batch(body string) (results []map[string]any) {
	s.t.Helper()
	a := s.call("POST", "/api/v1/things/batch", body)
	var answered struct{ Results []map[string]any }
	if err := json.Unmarshal([]byte(a.body), &answered); a.status != 200 || err != nil {
		s.t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return answered.Results
}

func TestEachElementIsAnsweredAsACallOfItsOwn(t *testing.T) {
	s := newShop(t)
	elements := []struct {
		sent   string
		status float64
		says   string // the code of an error, or the name
		issues string
	}{
		{`{"name":"chair"}`, 201, "chair", ""},
		{`{"name":"sofa","size":422}`, 422, "rule_violated", ""},
		{`{}`, 400, "invalid_body", "/name required"},
		{`{"name":"","size":-1}`, 400, "invalid_body", "/name too_short /size too_small"},
		{`{"name":"a","name":"b"}`, 400, "invalid_body", "/name duplicate_member"},
		{`{"name":"a","n\u0061me":"b"}`, 400, "invalid_body", "/name duplicate_member"},
		{`{"name":"a\u0000"}`, 400, "invalid_body", "/name format"},
		{`{"name":"\ud800"}`, 400, "invalid_body", " syntax"},
		{"{\"name\":\"\xff\"}", 400, "invalid_body", " syntax"},
		{`null`, 400, "invalid_body", " type"},
		{`[]`, 400, "invalid_body", " type"},
		{`"chair"`, 400, "invalid_body", " type"},
		{`17`, 400, "invalid_body", " type"},
		{`{"name":"a","x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, 400, "invalid_body", " syntax"},
		{`{"name":"a","x":"` + strings.Repeat("x", maxBody) + `"}`, 413, "payload_too_large", ""},
		{`{"name":"lamp","size":500}`, 500, "internal_error", ""},
		{` { "name" : "table" , "x" : [ { } ] } `, 201, "table", ""},
	}
	var sent []string
	for _, e := range elements {
		sent = append(sent, e.sent)
	}
	results := s.batch(`{"things":[` + strings.Join(sent, ",") + `]}`)
	if len(results) != len(elements) {
		t.Fatalf("%d results of %d elements", len(results), len(elements))
	}
	for i, e := range elements {
		r := results[i]
		says := r["code"]
		if e.status < 400 {
			says = r["name"]
		}
		var issues []string
		details, _ := r["details"].([]any)
		for _, d := range details {
			detail := d.(map[string]any)
			issues = append(issues, fmt.Sprint(detail["path"], " ", detail["code"]))
		}
		if r["status"] != e.status || says != e.says || strings.Join(issues, " ") != e.issues || r["request_id"] != nil {
			t.Errorf("%.60s: answered %v", e.sent, r)
		}
		if text := fmt.Sprint(r); strings.Contains(text, "secret text") {
			t.Errorf("shows what is internal: %s", text)
		}
	}
	if logged := s.logs.FilterMessage("elements of a batch failed"); logged.Len() != 1 || !strings.Contains(fmt.Sprint(logged.All()[0].ContextMap()), "secret text of lamp") {
		t.Errorf("logged %v", logged.All())
	}
}

func TestABodyThatIsNoBatchRefusesTheWholeCall(t *testing.T) {
	s := newShop(t)
	good := `{"name":"chair"}`
	for name, c := range map[string]struct{ body, issue string }{
		"empty":                     {" ", " syntax"},
		"null":                      {"null", " type"},
		"a bare list":               {"[" + good + "]", " type"},
		"a huge bare list":          {"[" + strings.Repeat(good+",", 100_000) + good + "]", " type"},
		"one element":               {good, "/name unknown_member /things required"},
		"no list":                   {`{"things":{}}`, "/things type"},
		"a huge object for a list":  {`{"things":{"a":[0` + strings.Repeat(",0", 1_000_000) + `]}}`, "/things type"},
		"text for a list":           {`{"things":"[]"}`, "/things type"},
		"a list of nothing":         {`{"things":[]}`, "/things too_short"},
		"too many":                  {`{"things":[` + strings.Repeat("0,", 100) + `0]}`, "/things too_long"},
		"a million":                 {`{"things":[` + strings.Repeat("0,", 1_000_000) + `0]}`, "/things too_long"},
		"the list twice":            {`{"things":[` + good + `],"things":[` + good + `]}`, "/things duplicate_member"},
		"the list twice, once else": {`{"things":[` + good + `],"th\u0069ngs":0}`, "/things duplicate_member /things type"},
		"something beside":          {`{"things":[` + good + `],"thinks":1}`, "/thinks unknown_member"},
		"something huge beside":     {`{"x":"` + strings.Repeat("x", maxBody) + `","things":[` + good + `]}`, "/x too_long"},
		"something after":           {`{"things":[` + good + `]}{}`, " syntax"},
		"cut within an element":     {`{"things":[` + good + `,{"name":`, " syntax"},
		"cut after an element":      {`{"things":[` + good, " syntax"},
		"cut after the list":        {`{"things":[` + good + `]`, " syntax"},
		"a comma too many":          {`{"things":[` + good + `,]}`, " syntax"},
		"an element that is none":   {`{"things":[` + good + `,NaN]}`, " syntax"},
		"a byte-order mark":         {"\uFEFF" + `{"things":[` + good + `]}`, " syntax"},
		"broken text beside":        {"{\"things\":[" + good + "],\"\xff\":1}", " syntax"},
		"a million levels":          {`{"things":[` + strings.Repeat("[", 1_000_000), " syntax"},
	} {
		a := s.call("POST", "/api/v1/things/batch", c.body)
		members := a.refused(name, 400, "invalid_body")
		var issues []string
		for _, d := range members["details"].([]any) {
			detail := d.(map[string]any)
			issues = append(issues, fmt.Sprint(detail["path"], " ", detail["code"]))
		}
		if got := strings.Join(issues, " "); got != c.issue {
			t.Errorf("%s: the issues are %q, want %q", name, got, c.issue)
		}
	}
	if n := s.handled.Load(); n != 0 {
		t.Errorf("%d elements were looked at", n)
	}
}

func TestABatchMayBeLargerThanOtherBodies(t *testing.T) {
	s := newShop(t)
	body := `{"things":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a","x":"`+strings.Repeat("x", 40<<10)+`"},`, 100), ",") + `]}`
	body += strings.Repeat(" ", maxBatchBody-len(body))
	for i, r := range s.batch(body) {
		if r["status"] != 201.0 {
			t.Errorf("element %d: %v", i, r)
		}
	}
	s.call("POST", "/api/v1/things/batch", body+" ").refused("4 MiB and one", 413, "payload_too_large")
}

func TestEveryElementCountsAsACall(t *testing.T) {
	s := newLimitedShop(t, of(100, 250))
	hundred := `{"things":[` + strings.TrimSuffix(strings.Repeat("0,", 100), ",") + `]}`
	for range 2 {
		s.batch(hundred)
	}
	a := s.call("POST", "/api/v1/things/batch", hundred)
	a.refused("with 50 left", 429, "rate_limited")
	if got := []string{a.header.Get("Retry-After"), a.header.Get("RateLimit-Policy"), a.header.Get("RateLimit")}; !slices.Equal(got, []string{"1", `"key";q=100;w=1`, `"key";r=49;t=1`}) {
		t.Errorf("told %q", got)
	}
	if n := s.handled.Load(); n != 200 {
		t.Errorf("%d elements were looked at, want 200", n)
	}
	for range 49 {
		if a := s.call("GET", "/api/v1/things", ""); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	s.call("GET", "/api/v1/things", "").refused("with none left", 429, "rate_limited")
}

func TestABatchWhoseListIsNotDocumentedIsOurMistake(t *testing.T) {
	doc, err := openapi.Load(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"name", "nothing"} {
		_, err := API{Document: doc, Routes: []Route{{Method: "POST", Pattern: "/api/v1/things", Batch: member}}}.Handler()
		if err == nil || !strings.Contains(err.Error(), "no list "+member) {
			t.Errorf("%s: %v", member, err)
		}
	}
}

func TestOfOneElementAFewIssuesAreListed(t *testing.T) {
	s := newShop(t)
	var members []string
	for i := range 50 {
		members = append(members, fmt.Sprintf(`"%d":0,"%d":0`, i, i)) // each given twice
	}
	element := `{"name":"a",` + strings.Join(members, ",") + `}`
	a := s.call("POST", "/api/v1/things", element)
	if alone := a.refused("alone", 400, "invalid_body"); len(alone["details"].([]any)) != 100 {
		t.Errorf("alone it has %v", alone["details"])
	}
	for _, r := range s.batch(`{"things":[` + element + `,{"name":"chair"}]}`)[:1] {
		if details := r["details"].([]any); len(details) != 10 || r["message"] != "more than 10 fields are not valid; the first are listed" {
			t.Errorf("%d issues, %v", len(details), r["message"])
		}
	}
}
