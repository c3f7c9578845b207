package e2e

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

// receiver is a tenant's own server. It knows an endpoint's secret and the published
// rule of signatures, and nothing else of Partilha.
type receiver struct {
	URL   string
	delay func() time.Duration // how long it thinks about each answer; nil: not at all

	mu     sync.Mutex
	secret string
	heard  []heard
	times  map[string]int // by event id
	wrong  []string       // what was not as it is promised
	next   chan struct{}  // closed at the next arrival
}

// heard is one webhook that a receiver took in.
type heard struct {
	event, id string
	tenant    string
	data      map[string]json.RawMessage
	body      []byte
	header    http.Header
}

// newReceiver listens on the loopback until the test ends.
func newReceiver(t testing.TB) *receiver {
	r := &receiver{times: map[string]int{}, next: make(chan struct{})}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL + "/hooks/partilha"
	return r
}

func (r *receiver) trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// ServeHTTP counts a request as soon as its last byte is there: what becomes of the
// answer is not the receiver's affair.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // it broke off before it was a webhook
	}
	r.take(request, body)
	if r.delay != nil {
		timer := time.NewTimer(r.delay())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-request.Context().Done():
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) take(request *http.Request, body []byte) {
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
	r.heard = append(r.heard, heard{envelope.Event, envelope.EventID, envelope.TenantID, envelope.Data, body, request.Header})
	r.times[envelope.EventID]++
	close(r.next)
	r.next = make(chan struct{})
}

// counts tells how often each event id has come.
func (r *receiver) counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.times)
}

// of returns the webhooks of one kind of event.
func (r *receiver) of(event string) (found []heard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.heard {
		if w.event == event {
			found = append(found, w)
		}
	}
	return found
}

// arrival is closed when the next request has come in.
func (r *receiver) arrival() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// assertOnce fails where an event came twice or a request was not as it is promised.
func (r *receiver) assertOnce(t testing.TB) {
	t.Helper()
	for id, times := range r.counts() {
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
