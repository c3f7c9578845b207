package webhooks

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// answer is what the API said.
type answer struct {
	*httptest.ResponseRecorder
	t *testing.T
}

func (k *stack) ask(s *Service, who member, method, path, body string) answer {
	k.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if who.key != "" {
		r.Header.Set("Authorization", "Bearer "+who.key)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return answer{w, k.t}
}

// must fails the test unless the status is this one, and reads the body into into.
func (a answer) must(status int, into any) {
	a.t.Helper()
	if a.Code != status {
		a.t.Fatalf("status %d, want %d: %s", a.Code, status, a.Body)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(a.Body.Bytes(), into); err != nil {
		a.t.Fatalf("%v: %s", err, a.Body)
	}
}

// refused fails the test unless this is an error of the status and code.
func (a answer) refused(status int, code string) {
	a.t.Helper()
	var body struct {
		Code      string
		RequestID string `json:"request_id"`
	}
	a.must(status, &body)
	if body.Code != code || body.RequestID == "" {
		a.t.Errorf("code %q with request id %q, want %q", body.Code, body.RequestID, code)
	}
}

// wire is an endpoint or delivery as a caller reads it.
type wire struct {
	EndpointID     string `json:"endpoint_id"`
	URL            string `json:"url"`
	Events         []string
	Description    *string
	MaxAttempts    int             `json:"max_attempts"`
	Standard       bool            `json:"standard_webhooks"`
	Filter         json.RawMessage // as it is written
	Status         string
	DisabledReason *string `json:"disabled_reason"`
	CreatedAt      string  `json:"created_at"`
	Secret         string

	DeliveryID string `json:"delivery_id"`
	EventID    string `json:"event_id"`
	Reason     *string
	Attempts   []struct {
		At         string
		DurationMS *int `json:"duration_ms"`
		StatusCode *int `json:"status_code"`
		Error      *string
		Excerpt    *string `json:"response_excerpt"`
	}
	Request *struct {
		Method, URL, Body string
		Headers           map[string]string
	}
}

type wirePage struct {
	Data       []wire
	Endpoints  []wire  // of a preview
	NextCursor *string `json:"next_cursor"`
}

// register makes an endpoint through the API.
func (k *stack) register(s *Service, who member, url string, events ...string) wire {
	k.t.Helper()
	body, err := json.Marshal(map[string]any{"url": url, "events": events})
	if err != nil {
		k.t.Fatal(err)
	}
	var created wire
	k.ask(s, who, "POST", "/api/v1/webhook-endpoints", string(body)).must(201, &created)
	return created
}

// deliveries reads all pages of the tenant's deliveries.
func (k *stack) deliveries(s *Service, who member, query string) (all []wire) {
	k.t.Helper()
	path := "/api/v1/webhook-deliveries?limit=100" + query
	for next := path; next != ""; {
		var page wirePage
		k.ask(s, who, "GET", next, "").must(200, &page)
		all = append(all, page.Data...)
		next = ""
		if page.NextCursor != nil {
			next = path + "&cursor=" + *page.NextCursor
		}
	}
	return all
}
