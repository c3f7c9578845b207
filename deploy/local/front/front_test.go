package front

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/web"
	"partilha.dev/services/goals"
	"partilha.dev/services/sales"
)

func document(t *testing.T, read func() (*openapi.Document, error)) *openapi.Document {
	t.Helper()
	d, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// serve returns the address of a front of two services whose /readyz are at these URLs.
func serve(t *testing.T, salesURL, goalsURL string) string {
	t.Helper()
	members := []Member{
		{"sales", document(t, sales.Document), Remote(salesURL)},
		{"goals", document(t, goals.Document), Remote(goalsURL)},
	}
	merged, err := Document(members)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(Around(members, merged, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	})))
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string) (status int, body []byte) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// says is a service whose /readyz answers this.
func says(t *testing.T, status int, readiness web.Readiness) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("it is asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(readiness)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestThePathsOfAllServicesStandInOneDocument(t *testing.T) {
	base := serve(t, "http://127.0.0.1:1", "http://127.0.0.1:1")
	paths := func(path string) map[string]json.RawMessage {
		status, body := get(t, base+path)
		var document struct{ Paths map[string]json.RawMessage }
		if err := json.Unmarshal(body, &document); err != nil || status != 200 {
			t.Fatalf("%s: %d %v", path, status, err)
		}
		return document.Paths
	}
	merged, ofSales, ofGoals := paths("/openapi.json"), paths("/openapi/sales.json"), paths("/openapi/goals.json")
	for _, own := range []map[string]json.RawMessage{ofSales, ofGoals} {
		for path := range own {
			if merged[path] == nil {
				t.Errorf("the document of all lacks %s", path)
			}
		}
	}
	if ofSales["/api/v1/sales"] == nil || ofSales["/api/v1/goals"] != nil || ofGoals["/api/v1/goals"] == nil {
		t.Error("a service's own document holds other paths than its own")
	}
	for _, elsewhere := range []string{"/openapi/nobody.json", "/api/v1/sales"} {
		if status, _ := get(t, base+elsewhere); status != http.StatusTeapot {
			t.Errorf("%s is answered by the front: %d", elsewhere, status)
		}
	}
}

func TestTheFrontIsAsReadyAsTheLeastReadyService(t *testing.T) {
	ready := says(t, 200, web.Readiness{Status: "ready"})
	degraded := says(t, 200, web.Readiness{Status: "degraded", Reasons: []string{"NATS is away"}})
	unavailable := says(t, 503, web.Readiness{Status: "unavailable", Reasons: []string{"PostgreSQL is away"}})
	for _, row := range []struct {
		sales, goals string
		status       int
		want         web.Readiness
	}{
		{ready, ready, 200, web.Readiness{Status: "ready"}},
		{degraded, ready, 200, web.Readiness{Status: "degraded", Reasons: []string{"sales: NATS is away"}}},
		{unavailable, degraded, 503, web.Readiness{Status: "unavailable", Reasons: []string{"sales: PostgreSQL is away", "goals: NATS is away"}}},
		{ready, "http://127.0.0.1:1", 503, web.Readiness{Status: "unavailable", Reasons: []string{"goals: it does not answer"}}},
	} {
		status, body := get(t, serve(t, row.sales, row.goals)+"/readyz")
		var got web.Readiness
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if status != row.status || got.Status != row.want.Status || !slices.Equal(got.Reasons, row.want.Reasons) {
			t.Errorf("%d %s, want %d %+v", status, body, row.status, row.want)
		}
	}
}

func TestAServiceThatHangsIsNotWaitedForLongerThanTheCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	if got := Remote(server.URL)(ctx); got.Status != "unavailable" {
		t.Errorf("%+v", got)
	}
}
