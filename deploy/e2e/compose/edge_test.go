package compose

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/testkit"
)

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	response, err := patient.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// theEdgeSpeaksForAll asks the addresses that belong to no service alone.
func theEdgeSpeaksForAll(t *testing.T, base string) {
	testkit.Eventually(t, soon, "all are ready", func() bool {
		response, err := patient.Get(base + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && response.StatusCode == 200 && string(body) == `{"status":"ready"}`
	})
	paths := func(path string) map[string]json.RawMessage {
		var document struct{ Paths map[string]json.RawMessage }
		if _, body := get(t, base+path); json.Unmarshal([]byte(body), &document) != nil {
			t.Errorf("%s is no document: %.200s", path, body)
		}
		return document.Paths
	}
	merged := paths("/openapi.json")
	for _, service := range []string{"sales", "commissions", "goals", "webhooks"} {
		own := paths("/openapi/" + service + ".json")
		if len(own) == 0 {
			t.Errorf("%s has no paths", service)
		}
		for path := range own {
			if merged[path] == nil {
				t.Errorf("/openapi.json lacks %s of %s", path, service)
			}
		}
		// Every path of the document leads to its service: none is unknown there.
		for path := range own {
			response, err := patient.Head(base + strings.NewReplacer("{", "", "}", "").Replace(path))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != 401 && response.StatusCode != 405 {
				t.Errorf("%s is answered %d without a key", path, response.StatusCode)
			}
		}
	}
	for path, want := range map[string]struct {
		status         int
		kind, contains string
	}{
		"/healthz":        {200, "application/json", `"ok"`},
		"/docs":           {200, "text/html", "/api/v1/goals"},
		"/metrics":        {404, "application/json", `"not_found"`},
		"/nothing":        {404, "application/json", `"not_found"`},
		"/api/v1/nothing": {404, "application/json", `"not_found"`},
	} {
		response, body := get(t, base+path)
		if response.StatusCode != want.status || !strings.HasPrefix(response.Header.Get("Content-Type"), want.kind) || !strings.Contains(body, want.contains) {
			t.Errorf("%s: %d %s %.200s", path, response.StatusCode, response.Header.Get("Content-Type"), body)
		}
		if response.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s has no X-Request-Id", path)
		}
	}
}

// theEdgeMissesGoals asks for goals, and for sales, while nobody answers for goals.
func theEdgeMissesGoals(t *testing.T, s stack, shop *shop) {
	s.compose(t, "stop", "goals")
	response, body := get(t, shop.base+"/api/v1/goals")
	var told struct {
		Code, Message string
		RequestID     string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(body), &told); err != nil {
		t.Errorf("%v: %s", err, body)
	}
	if response.StatusCode != 503 || told.Code != "unavailable" || response.Header.Get("Retry-After") == "" ||
		told.RequestID == "" || told.RequestID != response.Header.Get("X-Request-Id") {
		t.Errorf("without goals: %d %v %s", response.StatusCode, response.Header, body)
	}
	if response, body := get(t, shop.base+"/readyz"); response.StatusCode != 503 || !strings.Contains(body, "goals: it does not answer") {
		t.Errorf("without goals the edge is %d %s", response.StatusCode, body)
	}
	if status, _ := shop.report("without-goals"); status != 201 {
		t.Errorf("without goals a sale is answered %d", status)
	}
	s.compose(t, "up", "-d", "--wait", "--no-recreate", "goals")
}

// theEdgeSpeaksTLS gives the edge a name and asks it over TLS and without.
func theEdgeSpeaksTLS(t *testing.T, s stack, plain string) {
	t.Setenv("EDGE_SITE", "localhost")
	s.compose(t, "up", "-d", "--wait", "--no-deps", "edge")
	_, port, _ := strings.Cut(strings.TrimPrefix(s.at(t, "edge", "8443"), "http://"), ":")
	anyone := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // the edge's own authority signs for localhost
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	testkit.Eventually(t, soon, "the edge answers over TLS", func() bool {
		response, err := anyone.Get("https://localhost:" + port + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == 200 && response.TLS != nil && response.TLS.Version >= tls.VersionTLS12
	})
	request, err := http.NewRequest("GET", plain+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "localhost"
	response, err := anyone.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode/100 != 3 || !strings.HasPrefix(response.Header.Get("Location"), "https://localhost") {
		t.Errorf("without TLS: %d to %q", response.StatusCode, response.Header.Get("Location"))
	}
}

// TestTheEdgeHoldsNothingBack puts the shipped configuration in front of a service that
// streams and one that answers after half a minute.
func TestTheEdgeHoldsNothingBack(t *testing.T) {
	environment(t)
	t.Parallel()
	const network = project + "-slow"
	run(t, "docker", "network", "create", network)
	t.Cleanup(func() { run(t, "docker", "network", "rm", network) })
	start := func(name string, args ...string) {
		run(t, "docker", append([]string{"run", "-d", "--name", name, "--network", network}, args...)...)
		t.Cleanup(func() { run(t, "docker", "rm", "-f", "-v", name) })
	}
	start(project+"-slow-services", "--network-alias", "goals", "--network-alias", "webhooks", "partilha-trial-receiver")
	file := run(t, "pwd") + "/deploy/docker/Caddyfile"
	start(project+"-slow-edge", "-v", file+":/etc/caddy/Caddyfile:ro", "-p", "127.0.0.1::8080", "caddy:2")
	base := "http://" + run(t, "docker", "port", project+"-slow-edge", "8080/tcp")
	testkit.Eventually(t, soon, "the edge is there", func() bool {
		response, err := patient.Get(base + "/api/v1/goals/x/progress/stream")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == 200
	})

	polled := make(chan string, 1)
	go func() {
		began := time.Now()
		response, err := patient.Get(base + "/api/v1/events?wait=30")
		if err != nil {
			polled <- err.Error()
			return
		}
		defer response.Body.Close()
		if response.StatusCode != 200 || time.Since(began) < 30*time.Second {
			polled <- response.Status + " after " + time.Since(began).String()
			return
		}
		polled <- ""
	}()
	response, err := patient.Get(base + "/api/v1/goals/x/progress/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var first, last time.Time
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data:") {
			if first.IsZero() {
				first = time.Now()
			}
			last = time.Now()
		}
	}
	if gap := last.Sub(first); gap < time.Second {
		t.Errorf("two events that are two seconds apart come within %s", gap)
	}
	if problem := <-polled; problem != "" {
		t.Errorf("a poll of 31 s: %s", problem)
	}
}
