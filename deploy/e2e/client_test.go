package e2e

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

// object is a JSON object of a request.
type object = map[string]any

// system is Partilha, however it is run.
type system interface {
	// baseFor is the URL of whoever answers the path.
	baseFor(path string) string
	operatorToken() string
}

// caller calls one system with one token.
type caller struct {
	system system
	token  string
}

// connections are kept per process; a test of 64 calls at once needs as many.
var connections = &http.Client{
	Timeout:   time.Minute,
	Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 5 * time.Second},
}

// answer is one HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// code is the member code of an error.
func (a answer) code() string { return a.text("code") }

// text is a member of the body; "" if it has no such text.
func (a answer) text(member string) string {
	var members map[string]json.RawMessage
	var value string
	if json.Unmarshal(a.body, &members) == nil && json.Unmarshal(members[member], &value) == nil {
		return value
	}
	return ""
}

// try makes one call. Body is sent as it is if it is a string, and else as JSON. It may
// be called on any goroutine.
func (c caller) try(method, path string, body any, headers ...string) (answer, error) {
	var payload io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		payload = strings.NewReader(body)
	default:
		raw, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		payload = bytes.NewReader(raw)
	}
	request, err := http.NewRequest(method, c.system.baseFor(path)+path, payload)
	if err != nil {
		return answer{}, err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := connections.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, raw}, err
}

// call is try for a call that must be answered.
func (c caller) call(t testing.TB, method, path string, body any, headers ...string) answer {
	t.Helper()
	got, err := c.try(method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// must is call for a call that must be answered so.
func (c caller) must(t testing.TB, status int, method, path string, body any, headers ...string) answer {
	t.Helper()
	got := c.call(t, method, path, body, headers...)
	if got.status != status {
		t.Fatalf("%s %s answers %s, want %d", method, path, got, status)
	}
	return got
}

// into reads the body of an answer.
func (a answer) into(t testing.TB, value any) {
	t.Helper()
	if err := json.Unmarshal(a.body, value); err != nil {
		t.Fatalf("read %s: %v", a.body, err)
	}
}
