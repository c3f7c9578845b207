package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Object is a JSON object of a request.
type Object = map[string]any

// System is Partilha, however it is run.
type System interface {
	// BaseFor is the URL of whoever answers the path.
	BaseFor(path string) string
	OperatorToken() string
}

// Caller calls one system with one token.
type Caller struct {
	System System
	Token  string
}

// connections are kept per process; a test of 64 calls at once needs as many.
var connections = &http.Client{
	Timeout:   time.Minute,
	Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 5 * time.Second},
}

// Answer is one HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

func (a Answer) String() string { return fmt.Sprintf("%d %s", a.Status, a.Body) }

// Code is the member code of an error.
func (a Answer) Code() string { return a.Text("code") }

// Text is a member of the body; "" if it has no such text.
func (a Answer) Text(member string) string {
	var members map[string]json.RawMessage
	var value string
	if json.Unmarshal(a.Body, &members) == nil && json.Unmarshal(members[member], &value) == nil {
		return value
	}
	return ""
}

// Try makes one call. Body is sent as it is if it is a string, and else as JSON. It may
// be called on any goroutine.
func (c Caller) Try(method, path string, body any, headers ...string) (Answer, error) {
	var payload io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		payload = strings.NewReader(body)
	default:
		raw, err := json.Marshal(body)
		if err != nil {
			return Answer{}, err
		}
		payload = bytes.NewReader(raw)
	}
	request, err := http.NewRequest(method, c.System.BaseFor(path)+path, payload)
	if err != nil {
		return Answer{}, err
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := connections.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, raw}, err
}

// Call is Try for a call that must be answered.
func (c Caller) Call(t testing.TB, method, path string, body any, headers ...string) Answer {
	t.Helper()
	got, err := c.Try(method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Must is Call for a call that must be answered so.
func (c Caller) Must(t testing.TB, status int, method, path string, body any, headers ...string) Answer {
	t.Helper()
	got := c.Call(t, method, path, body, headers...)
	if got.Status != status {
		t.Fatalf("%s %s answers %s, want %d", method, path, got, status)
	}
	return got
}

// Into reads the body of an answer.
func (a Answer) Into(t testing.TB, value any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, value); err != nil {
		t.Fatalf("read %s: %v", a.Body, err)
	}
}
