package commissions

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/auth"
)

// published is as much of the OpenAPI document as the tests look at.
type published struct {
	Paths map[string]map[string]struct {
		Scope      string `json:"x-scope"`
		Parameters []struct {
			Name string `json:"name"`
			In   string `json:"in"`
			Ref  string `json:"$ref"`
		} `json:"parameters"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Required   []string                   `json:"required"`
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

func readDocument(t *testing.T) (doc published) {
	t.Helper()
	loaded, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(loaded.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTheDocumentNamesEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	scopes := map[string]auth.Scope{
		"POST /api/v1/withdrawals": auth.WithdrawalsWrite, "POST /api/v1/withdrawals/batch": auth.WithdrawalsApprove,
		"POST /api/v1/withdrawals/{withdrawal_id}/approve": auth.WithdrawalsApprove, "POST /api/v1/withdrawals/{withdrawal_id}/reject": auth.WithdrawalsApprove,
		"POST /api/v1/withdrawals/{withdrawal_id}/cancel": auth.WithdrawalsWrite,
		"POST /api/v1/withdrawals/{withdrawal_id}/pay":    auth.WithdrawalsApprove, "POST /api/v1/withdrawals/{withdrawal_id}/fail": auth.WithdrawalsApprove,
	}
	var routes, documented []string
	for _, route := range f.routes() {
		routes = append(routes, route.Method+" "+route.Pattern)
	}
	for path, operations := range readDocument(t).Paths {
		for method, operation := range operations {
			documented = append(documented, strings.ToUpper(method)+" "+path)
			want := cmp.Or(scopes[strings.ToUpper(method)+" "+path], auth.CommissionsRead)
			if operation.Scope != string(want) {
				t.Errorf("%s %s is documented with the scope %q", method, path, operation.Scope)
			}
		}
	}
	slices.Sort(routes)
	slices.Sort(documented)
	if !slices.Equal(routes, documented) {
		t.Errorf("the routes are %v, documented are %v", routes, documented)
	}
}

func TestTheListTakesEveryParameterThatIsDocumented(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant := newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	f.mustEarn(sale(tenant, f.now), sale(tenant, f.now))
	values := map[string]string{"limit": "1", "cursor": f.firstCursor(key), "partner_id": newID().String(), "source_sale_id": newID().String(),
		"campaign_id": newID().String(), "status": "pending", "created_from": "2026-07-01T00:00:00Z", "created_to": "2026-07-01T00:00:00Z"}
	var documented []string
	for _, p := range readDocument(t).Paths[path]["get"].Parameters {
		name := p.Name
		if p.Ref != "" {
			name = strings.ToLower(p.Ref[strings.LastIndex(p.Ref, "/")+1:])
		}
		documented = append(documented, name)
		if answer := f.get(key, path+"?"+name+"="+values[name]); answer.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
	}
	slices.Sort(documented)
	if !slices.Equal(documented, slices.Sorted(maps.Keys(values))) {
		t.Errorf("documented are %v", documented)
	}
}

func TestACommissionHasTheMembersThatAreDocumented(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant := newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	sold := sale(tenant, f.now)
	f.mustEarn(sold)
	var members map[string]json.RawMessage
	if err := json.Unmarshal(f.get(key, path+"/"+sold.Data.CommissionID.String()).Body.Bytes(), &members); err != nil {
		t.Fatal(err)
	}
	schema := readDocument(t).Components.Schemas["Commission"]
	got := slices.Sorted(maps.Keys(members))
	if !slices.Equal(got, slices.Sorted(maps.Keys(schema.Properties))) || !slices.Equal(got, slices.Sorted(slices.Values(schema.Required))) {
		t.Errorf("a commission has %v, documented are %v", got, schema.Required)
	}
}

func TestTheServiceStartsAndAnswersWithoutNATS(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	key := f.key(newID(), auth.CommissionsRead)
	f.wire()
	f.run()
	if answer := f.get(key, path); answer.Code != http.StatusOK {
		t.Errorf("list: %d %s", answer.Code, answer.Body)
	}
	if answer := f.get("", "/readyz"); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"status":"degraded"`) {
		t.Errorf("readyz: %d %s", answer.Code, answer.Body)
	}
	for _, target := range []string{"/healthz", "/openapi.json", "/docs", "/metrics"} {
		if answer := f.get("", target); answer.Code != http.StatusOK {
			t.Errorf("%s: %d", target, answer.Code)
		}
	}
}
