package openapi_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"partilha.dev/pkg/openapi"
)

func TestAMemberThatIsLeftOutChangesNothingAndNullClears(t *testing.T) {
	before := "before"
	for body, want := range map[string]string{`{}`: "before", `{"name":null}`: "", `{"name":"after"}`: "after", `{"name":""}`: ""} {
		var change struct {
			Name openapi.Optional[string] `json:"name"`
		}
		if err := json.Unmarshal([]byte(body), &change); err != nil {
			t.Fatal(err)
		}
		got := change.Name.Over(&before)
		switch {
		case body == `{"name":null}` && got != nil:
			t.Errorf("%s leaves %q", body, *got)
		case body != `{"name":null}` && (got == nil || *got != want):
			t.Errorf("%s gives %v, want %q", body, got, want)
		}
	}
}
