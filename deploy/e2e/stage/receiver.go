package stage

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Receiver is a tenant's own server. It knows an endpoint's secret and the published
// rule of signatures, and nothing else of Partilha.
type Receiver struct {
	URL   string
	Delay func() time.Duration // how long it thinks about each answer; nil: not at all

	mu     sync.Mutex
	secret string
	heard  []Heard
	times  map[string]int // by event id
	wrong  []string       // what was not as it is promised
	next   chan struct{}  // closed at the next arrival
}

// Heard is one webhook that a receiver took in.
type Heard struct {
	Event, ID string
	Tenant    string
	Data      map[string]json.RawMessage
	Body      []byte
	Header    http.Header
}

// NewReceiver listens on the loopback until the test ends.
func NewReceiver(t testing.TB) *Receiver {
	r := &Receiver{times: map[string]int{}, next: make(chan struct{})}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL + "/hooks/partilha"
	return r
}

// Trust tells the receiver the secret of its endpoint.
func (r *Receiver) Trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// ServeHTTP counts a request as soon as its last byte is there: what becomes of the
// answer is not the receiver's affair.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // it broke off before it was a webhook
	}
	r.take(request, body)
	if r.Delay != nil {
		timer := time.NewTimer(r.Delay())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-request.Context().Done():
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *Receiver) take(request *http.Request, body []byte) {
	var envelope struct {
		Event     string                     `json:"event"`
		EventID   string                     `json:"event_id"`
		CreatedAt time.Time                  `json:"created_at"`
		TenantID  string                     `json:"tenant_id"`
		Data      map[string]json.RawMessage `json:"data"`
	}
	problem := ""
	if err := json.Unmarshal(body, &envelope); err != nil {
		problem = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mac := hmac.New(sha256.New, []byte(r.secret))
	mac.Write(body)
	promised := map[string]string{
		"Content-Type": "application/json", "User-Agent": "Service-Webhook/1.0", "X-Service-Event": envelope.Event,
		"X-Service-Signature": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	}
	for name, want := range promised {
		if got := request.Header.Get(name); got != want {
			problem += fmt.Sprintf(" %s is %q, want %q", name, got, want)
		}
	}
	for name := range request.Header {
		if _, ok := promised[name]; !ok && name != "Content-Length" && name != "Accept-Encoding" && name != "Connection" {
			problem += " an unexpected header " + name
		}
	}
	if request.Method != http.MethodPost || envelope.CreatedAt.IsZero() {
		problem += " no POST of an event"
	}
	if problem != "" {
		r.wrong = append(r.wrong, problem)
	}
	r.heard = append(r.heard, Heard{envelope.Event, envelope.EventID, envelope.TenantID, envelope.Data, body, request.Header})
	r.times[envelope.EventID]++
	close(r.next)
	r.next = make(chan struct{})
}

// Counts tells how often each event id has come.
func (r *Receiver) Counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.times)
}

// Of returns the webhooks of one kind of event.
func (r *Receiver) Of(event string) (found []Heard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.heard {
		if w.Event == event {
			found = append(found, w)
		}
	}
	return found
}

// Arrival is closed when the next request has come in.
func (r *Receiver) Arrival() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// AssertOnce fails where an event came twice or a request was not as it is promised.
func (r *Receiver) AssertOnce(t testing.TB) {
	t.Helper()
	for id, times := range r.Counts() {
		if times != 1 {
			t.Errorf("%s was posted %d times", id, times)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) > 0 {
		t.Errorf("%d requests were not as promised, the first:%s", len(r.wrong), r.wrong[0])
	}
}
