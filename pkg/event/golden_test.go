package event_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"partilha.dev/pkg/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Whoever receives an event signs, stores and compares its bytes: a member that moves,
// vanishes or is spelt otherwise breaks them.
func TestTheBytesOfEveryEventAreThoseOfItsFile(t *testing.T) {
	for name, kind := range samples(t) {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for _, e := range kind.events {
				got.Write(e.Body)
				got.WriteByte('\n')
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("made\n%swant\n%s", got.Bytes(), want)
			}
		})
	}
}

func TestEveryFileIsOfAnEvent(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	known := samples(t)
	for _, file := range files {
		name, isGolden := strings.CutSuffix(file.Name(), ".json")
		if isGolden && known[name].events == nil {
			t.Errorf("%s is of no event", file.Name())
		}
	}
}

// The golden files cannot protect a payload that has none.
func TestEveryPayloadTypeHasASample(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	types := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv != nil && function.Name.Name == "EventName" {
				types++
			}
		}
	}
	if got := len(samples(t)); got != types || types == 0 {
		t.Errorf("%d payload types, and %d names with samples", types, got)
	}
}

func TestEveryEventHasExactlyTheMembersThatReceiversWerePromised(t *testing.T) {
	for name, kind := range samples(t) {
		want, ok := members[name]
		if !ok {
			t.Errorf("%s: nobody wrote down its members", name)
			continue
		}
		for _, e := range kind.events { // null or not, a member is there
			if got := namesOf(t, e.Body); got != "event, event_id, created_at, tenant_id, data" {
				t.Errorf("%s: the envelope has %s", name, got)
			}
			if got := namesOf(t, dataOf(t, e)); got != want {
				t.Errorf("%s has\n%s; want\n%s", name, got, want)
			}
		}
	}
}

func TestEveryMemberThatMayBeNullIsNullInASample(t *testing.T) {
	for name, want := range map[string][]string{
		event.NameConversionRecorded:  {"plan_id", "value_brl", "commission_id", "commission_amount_brl"},
		event.NameCommissionAvailable: {"source_sale_id", "source_conversion_id"},
		event.NameCommissionReleased:  {"campaign_id", "source_sale_id"},
		event.NameCommissionReversed:  {"campaign_id", "source_sale_id"},
		event.NameGoalReached:         {"period_end", "reward_brl"},

		event.NameWithdrawalStatusChanged: {"reason", "failure_code", "end_to_end_id"},
	} {
		for _, member := range want {
			null := func(e event.Sealed) bool { return bytes.Contains(e.Body, []byte(`"`+member+`":null`)) }
			events := samples(t)[name].events
			if !slices.ContainsFunc(events, null) || !slices.ContainsFunc(events, func(e event.Sealed) bool { return !null(e) }) {
				t.Errorf("%s: %s is not both null and a value", name, member)
			}
		}
	}
}

func TestEveryEventIsReadAsItWasWritten(t *testing.T) {
	for name, kind := range samples(t) {
		for _, e := range kind.events {
			opened, err := event.Open(e.Body)
			if err != nil {
				t.Fatal(err)
			}
			if opened.Name != name || opened.ID != e.ID || !opened.CreatedAt.Equal(e.CreatedAt) || opened.TenantID != tenant {
				t.Errorf("%s: opened as %+v", name, opened)
			}
			if again, err := kind.rewrite(opened); err != nil || !bytes.Equal(again, e.Body) {
				t.Errorf("%s: read and written again it is\n%s, %v; was\n%s", name, again, err, e.Body)
			}
		}
	}
}

// namesOf returns the member names of an object in their order.
func namesOf(t *testing.T, object []byte) string {
	t.Helper()
	var names []string
	decoder := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.String())
		if err := decoder.SkipValue(); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(names, ", ")
}

func dataOf(t *testing.T, e event.Sealed) []byte {
	t.Helper()
	_, data, ok := bytes.Cut(e.Body, []byte(`"data":`))
	if !ok {
		t.Fatalf("%s has no data", e.Body)
	}
	return bytes.TrimSuffix(data, []byte("}"))
}
