package sales

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// client keeps as many connections as the tests have calls under way.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}

func (f *fixture) post(path, body string) *response {
	f.t.Helper()
	return f.call("POST", path, body)
}

func (f *fixture) get(path string) *response {
	f.t.Helper()
	return f.call("GET", path, "")
}

func (f *fixture) patch(path, body string) *response {
	f.t.Helper()
	return f.call("PATCH", path, body)
}

// call makes a call with the tenant's key.
func (f *fixture) call(method, path, body string) *response {
	f.t.Helper()
	return f.send(method, path, body, "Authorization", "Bearer "+f.key)
}

// admin makes a call with the operator's token.
func (f *fixture) admin(method, path, body string) *response {
	f.t.Helper()
	return f.send(method, path, body, "Authorization", "Bearer "+operatorToken)
}

// send makes one call with these headers, given as name, value, name, value.
func (f *fixture) send(method, path, body string, headers ...string) *response {
	f.t.Helper()
	answer, err := f.try(method, path, strings.NewReader(body), headers...)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer
}

// report reports a sale from any goroutine.
func (f *fixture) report(body string) (*response, error) {
	return f.try("POST", "/api/v1/sales", strings.NewReader(body), "Authorization", "Bearer "+f.key)
}

// try makes one call and never fails the test, so that any goroutine may use it.
func (f *fixture) try(method, path string, body io.Reader, headers ...string) (*response, error) {
	request, err := http.NewRequest(method, f.url+path, body)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	return &response{t: f.t, Response: answer, raw: raw, about: method + " " + path}, err
}

// response is an answer together with what was asked.
type response struct {
	*http.Response
	t     *testing.T
	raw   []byte
	about string
}

// want fails the test unless the status is as expected.
func (r *response) want(status int) *response {
	r.t.Helper()
	if r.StatusCode != status {
		r.t.Fatalf("%s: answered %d, want %d: %s", r.about, r.StatusCode, status, r.raw)
	}
	return r
}

// refused fails the test unless the answer is that status with that code, in the one
// shape of every error.
func (r *response) refused(status int, code string) *response {
	r.t.Helper()
	body := r.want(status).object()
	if body["code"] != code {
		r.t.Fatalf("%s: code %s, want %s: %s", r.about, body["code"], code, r.raw)
	}
	members := slices.Sorted(maps.Keys(body))
	if want := []string{"code", "message", "request_id"}; !slices.Equal(members, want) && !slices.Equal(members, slices.Insert(want, 1, "details")) {
		r.t.Errorf("%s: the error has the members %v", r.about, members)
	}
	if id := r.Header.Get("X-Request-Id"); id == "" || body["request_id"] != id {
		r.t.Errorf("%s: request_id %v, X-Request-Id %q", r.about, body["request_id"], id)
	}
	if body["message"] == "" {
		r.t.Errorf("%s: no message", r.about)
	}
	if got := r.Header.Get("Content-Type"); got != "application/json" {
		r.t.Errorf("%s: Content-Type %q", r.about, got)
	}
	for header, when := range map[string]int{"WWW-Authenticate": 401, "Allow": 405, "Retry-After": 503} {
		if has := r.Header.Get(header) != ""; has != (status == when) {
			r.t.Errorf("%s: %s is %q on a %d", r.about, header, r.Header.Get(header), status)
		}
	}
	return r
}

// invalid fails the test unless the answer names these members, and no others, as
// what is wrong with the body; each as pointer and code, parted by a space.
func (r *response) invalid(issues ...string) *response {
	r.t.Helper()
	r.refused(400, "invalid_body")
	var body struct {
		Details []struct{ Path, Code string } `json:"details"`
	}
	if err := json.Unmarshal(r.raw, &body); err != nil {
		r.t.Fatal(err)
	}
	var found []string
	for _, d := range body.Details {
		found = append(found, d.Path+" "+d.Code)
	}
	if !slices.Equal(found, issues) {
		r.t.Errorf("%s: the issues are %q, want %q: %s", r.about, found, issues, r.raw)
	}
	return r
}

func (r *response) object() map[string]any {
	r.t.Helper()
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(r.raw))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		r.t.Fatalf("%s: %v in %s", r.about, err, r.raw)
	}
	return object
}

// text is a member as text, whatever its type.
func (r *response) text(name string) string {
	r.t.Helper()
	return fmt.Sprint(r.object()[name])
}

// shows fails the test unless the members, given as name, text, name, text, are so.
func (r *response) shows(members ...string) *response {
	r.t.Helper()
	object := r.object()
	for i := 0; i < len(members); i += 2 {
		if value, ok := object[members[i]]; !ok || fmt.Sprint(value) != members[i+1] {
			r.t.Errorf("%s: %s is %v, want %s: %s", r.about, members[i], value, members[i+1], r.raw)
		}
	}
	return r
}

// anonymous is the answer without its request id: what two answers that must not be
// told apart have in common, headers included.
func (r *response) anonymous() string {
	id := r.Header.Get("X-Request-Id")
	header := r.Header.Clone()
	header.Del("Date")
	header.Del("X-Request-Id")
	return fmt.Sprintf("%d %v %s", r.StatusCode, header, strings.ReplaceAll(string(r.raw), id, "…"))
}
