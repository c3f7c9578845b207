package contract

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/testkit"
)

// world is one tenant with at least one of everything that can be made or that follows
// from it, all of it made by calling the documented examples.
type world struct {
	*platform
	key    string
	prefix string                 // of its references and codes
	known  map[string]string      // an id by the name that it has in paths and bodies
	sent   map[*operation]request // that have made something
	made   int
}

// documentedOn is the day of the examples; their times are moved as far from the
// present as they are from it.
var documentedOn = time.Date(2026, 7, 14, 13, 0, 0, 0, time.UTC)

func newWorld(p *platform, prefix string) *world {
	p.t.Helper()
	w := newTenant(p, prefix)
	w.makeEverything()
	w.findEverything()
	return w
}

// newTenant is a tenant that has a key, which every service knows, and nothing else.
func newTenant(p *platform, prefix string) *world {
	p.t.Helper()
	w := &world{platform: p, prefix: prefix, known: map[string]string{}, sent: map[*operation]request{}}
	s, tenants := p.find("POST", "/admin/v1/tenants")
	w.learn(p.call(s, tenants, request{address: tenants.path, credential: adminToken, body: `{"name":"` + prefix + `"}`}))
	s, keys := p.find("POST", "/admin/v1/tenants/{tenant_id}/api-keys")
	first := p.call(s, keys, request{address: w.address(keys), credential: adminToken, body: `{"name":"first"}`})
	w.learn(first)
	w.key = first.text("api_key")
	w.awaitKey(w.key)
	return w
}

func (p *platform) find(method, path string) (*running, *operation) {
	p.t.Helper()
	for _, s := range p.services {
		for _, o := range s.doc.operations {
			if o.method == method && o.path == path {
				return s, o
			}
		}
	}
	p.t.Fatalf("%s %s is not documented", method, path)
	return nil, nil
}

// awaitKey waits until every service knows the key.
func (w *world) awaitKey(key string) {
	w.t.Helper()
	w.every(func(s *running, o *operation) {
		if o.method != "GET" || strings.Contains(o.path, "{") || o.byOperator() {
			return
		}
		testkit.Eventually(w.t, patience, s.name+" knows the key", func() bool {
			return w.call(s, o, request{address: o.path, credential: key}).status != 401
		})
	})
}

// makeEverything calls every operation that makes something, the later services first,
// so that there is a webhook endpoint before there is something to tell it. What
// needs another thing that is not there yet is tried again after that is, be it because
// another call has made it or because it follows by itself.
func (w *world) makeEverything() {
	w.t.Helper()
	open := map[*operation]reply{}
	defer func() {
		for o, got := range open {
			if !got.made() {
				w.t.Logf("%s cannot be reached with its example: %s", o, got)
			}
		}
	}()
	testkit.Eventually(w.t, patience, "everything is made", func() bool {
		for w.makeMore(open) {
		}
		for _, got := range open {
			if !got.made() {
				w.readLists() // which tell of what follows by itself
				return false
			}
		}
		return true
	})
}

// makeMore makes what can be made now, notes how each call was answered, and tells whether
// one of them has made something.
func (w *world) makeMore(open map[*operation]reply) (progress bool) {
	w.t.Helper()
	for i := len(w.services) - 1; i >= 0; i-- {
		s := w.services[i]
		for _, o := range s.doc.operations {
			if o.method != "POST" && o.method != "PUT" || open[o].made() {
				continue
			}
			w.prepare(o.String())
			if unknown := w.unknown(o); len(unknown) > 0 {
				open[o] = reply{body: fmt.Sprintf("no answer names %v", unknown)}
				continue
			}
			body := ""
			if o.body != nil {
				body = written(w.body(o))
			}
			w.sent[o] = w.request(o, body)
			open[o] = w.call(s, o, w.sent[o])
			w.learn(open[o])
			progress = progress || open[o].made()
		}
	}
	return progress
}

// made tells whether the call has done what was asked.
func (r reply) made() bool { return r.status/100 == 2 }

// findEverything reads the lists until every id that a path takes is known.
func (w *world) findEverything() {
	w.t.Helper()
	var missing []string
	defer func() {
		if len(missing) > 0 {
			w.t.Logf("no answer names what these take: %v", missing)
		}
	}()
	testkit.Eventually(w.t, patience, "there is something of everything", func() bool {
		missing = w.readLists()
		return len(missing) == 0
	})
	w.settle()
}

// readLists learns from all that can be read, and returns the operations of which nobody
// has told yet what they take.
func (w *world) readLists() (missing []string) {
	w.t.Helper()
	w.every(func(s *running, o *operation) {
		switch {
		case len(w.unknown(o)) > 0:
			missing = append(missing, o.String())
		case o.method == "GET" && !o.byOperator():
			w.learn(w.call(s, o, w.request(o, "")))
		}
	})
	return missing
}

// learn remembers the ids in an answer: its own members, or those of a list's first row,
// which is what can be read and so counts for more.
func (w *world) learn(got reply) {
	var row map[string]any
	if json.Unmarshal([]byte(got.body), &row) != nil {
		return
	}
	list, listed := row["data"].([]any)
	if listed = listed && len(list) > 0; listed {
		row, _ = list[0].(map[string]any)
	}
	for name, value := range row {
		if id, isText := value.(string); isText && namesOurs(name) && (listed || w.known[name] == "") {
			w.known[name] = id
		}
	}
}

// namesOurs tells whether a member of that name is the id of something that Partilha has.
func namesOurs(member string) bool {
	return strings.HasSuffix(member, "_id") && member != "request_id" && member != "end_to_end_id"
}

// unknown are the names of ids in the operation's path or example that no answer has
// told yet.
func (w *world) unknown(o *operation) (names []string) {
	w.t.Helper()
	for _, p := range o.parameters() {
		if (p.in == "path" || p.in == "query" && p.required) && w.known[p.name] == "" {
			names = append(names, p.name)
		}
	}
	if o.body != nil {
		names = append(names, w.unknownIn(o.example(w.t))...)
	}
	return names
}

func (w *world) unknownIn(tree any) (names []string) {
	switch tree := tree.(type) {
	case object:
		for _, m := range tree {
			if name := strings.TrimSuffix(unquoted(m.name), "s"); namesOurs(name) && w.known[name] == "" {
				names = append(names, name)
			}
			names = append(names, w.unknownIn(m.value)...)
		}
	case []any:
		for _, item := range tree {
			names = append(names, w.unknownIn(item)...)
		}
	}
	return names
}

// address is the operation's path with the tenant's own ids in it, and with the
// parameters that it needs.
func (w *world) address(o *operation) string {
	return w.addressWith(o, w.known)
}

func (w *world) addressWith(o *operation, ids map[string]string) string {
	path := o.path
	for _, p := range o.parameters() {
		if p.in == "path" {
			path = strings.ReplaceAll(path, "{"+p.name+"}", ids[p.name])
		}
	}
	return path + w.query(o, ids)
}

// query has the parameters without which the operation cannot be asked.
func (w *world) query(o *operation, ids map[string]string) string {
	values := url.Values{}
	for _, p := range o.parameters() {
		if p.in == "query" && p.required {
			values.Set(p.name, ids[p.name])
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

func (w *world) request(o *operation, body string) request {
	credential := w.key
	if o.byOperator() {
		credential = adminToken
	}
	return request{address: w.address(o), credential: credential, body: body}
}

// body is the example of the operation as this tenant would send it now: with ids of
// its own, a reference that nobody has used, and times as far from the present as those
// of the example are from the day of the document.
func (w *world) body(o *operation) object {
	w.t.Helper()
	w.made++
	body := w.own("", o.example(w.t)).(object)
	if o.path == askPath {
		body = with(body, []string{"amount_brl"}, token(affordable)).(object)
	}
	if o.eachElementAlone() {
		for i, m := range body {
			if list, ok := m.value.([]any); ok {
				body[i].value = list[:1]
			}
		}
	}
	return body
}

func (w *world) own(name string, tree any) any {
	switch tree := tree.(type) {
	case object:
		members := object{}
		for _, m := range tree {
			members = append(members, member{m.name, w.own(unquoted(m.name), m.value)})
		}
		return members
	case []any:
		items := []any{}
		for _, item := range tree {
			items = append(items, w.own(strings.TrimSuffix(name, "s"), item))
		}
		return items
	}
	said := unquoted(string(tree.(token)))
	at, err := openapi.ParseTime(said)
	switch {
	case w.known[name] != "":
		return text(w.known[name])
	case name == "external_ref":
		return text(fmt.Sprintf("%s-%d", w.prefix, w.made))
	case name == "referral_code":
		return text(w.prefix + "." + said)
	case name == "end_to_end_id" && len(said) == 32: // which pays one withdrawal
		return text(fmt.Sprintf("%s%011d", said[:21], w.made))
	case name == "url":
		return text(w.receiver + "/" + w.prefix)
	case err == nil:
		return text(time.Now().Add(at.Sub(documentedOn)).UTC().Format(time.RFC3339))
	default:
		return tree
	}
}

// unquoted is the text of a JSON token; "" if it is no text.
func unquoted(raw string) (text string) {
	_ = json.Unmarshal([]byte(raw), &text)
	return text
}

// text is a member of the answer as text.
func (r reply) text(name string) string {
	var members map[string]any
	_ = json.Unmarshal([]byte(r.body), &members)
	text, _ := members[name].(string)
	return text
}

func TestEverythingThatIsDocumentedCanBeReached(t *testing.T) {
	t.Parallel()
	newWorld(startPlatform(t, nil), "reach")
}
