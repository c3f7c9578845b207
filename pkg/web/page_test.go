package web

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
)

// fill gives the shop's lists n rows, newest first.
func (s *shop) fill(n int) {
	s.rows = make([]uuid.UUID, n)
	for i := range s.rows {
		id, err := uuid.NewV7()
		if err != nil {
			s.t.Fatal(err)
		}
		s.rows[n-1-i] = id
	}
}

func (s *shop) page(query string) (ids []uuid.UUID, next *string) {
	s.t.Helper()
	a := s.call("GET", "/api/v1/things"+query, "")
	var list struct {
		Data []uuid.UUID `json:"data"`
		Next *string     `json:"next_cursor"`
	}
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.status != 200 {
		s.t.Fatalf("%s: %d %s %v", query, a.status, a.body, err)
	}
	return list.Data, list.Next
}

func TestPagesGiveEveryRowOnceWhileRowsAreBeingAdded(t *testing.T) {
	for _, c := range []struct {
		rows  int
		limit string
		sizes string
	}{
		{60, "", "[25 25 10]"}, {60, "limit=60", "[60]"}, {60, "limit=100", "[60]"}, {60, "limit=59", "[59 1]"},
		{50, "", "[25 25]"}, {1, "limit=1", "[1]"}, {3, "limit=1", "[1 1 1]"}, {25, "", "[25]"}, {26, "", "[25 1]"},
	} {
		s := newShop(t)
		s.fill(c.rows)
		want := slices.Clone(s.rows)
		var got []uuid.UUID
		var sizes []int
		query := "?" + c.limit
		for {
			ids, next := s.page(query)
			got, sizes = append(got, ids...), append(sizes, len(ids))
			if next == nil {
				break
			}
			s.rows = append([]uuid.UUID{uuid.New()}, s.rows...)
			query = "?" + c.limit + "&cursor=" + *next
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d rows, %q: other rows than there were", c.rows, c.limit)
		}
		if fmt.Sprint(sizes) != c.sizes {
			t.Errorf("%d rows, %q: pages of %v, want %s", c.rows, c.limit, sizes, c.sizes)
		}
	}
}

func TestAnEmptyListHasNoNull(t *testing.T) {
	if a := newShop(t).call("GET", "/api/v1/things", ""); a.body != `{"data":[],"next_cursor":null}` {
		t.Error(a.body)
	}
	if a := Cut[int](Page{Limit: 25}, nil, nil); a.Body.(List[int]).Data == nil {
		t.Error("a query without rows answers null")
	}
}

func TestTheLimitIsAWholeNumberFrom1To100(t *testing.T) {
	s := newShop(t)
	s.fill(150)
	for _, limit := range []int{1, 2, 99, 100} {
		if ids, _ := s.page(fmt.Sprintf("?limit=%d", limit)); len(ids) != limit {
			t.Errorf("limit %d gives %d", limit, len(ids))
		}
	}
	for _, bad := range []string{"0", "-1", "101", "1000000000000000000000", "", "x", "1.5", "1e1", "0x10", "%2010", "10%20", "10,", "%D9%A1"} {
		s.call("GET", "/api/v1/things?limit="+bad, "").refused(bad, 400, "invalid_parameter")
	}
}

func TestABadCursorIsRefused(t *testing.T) {
	s := newShop(t)
	s.fill(60)
	_, next := s.page("")
	cursor := *next
	for name, bad := range map[string]string{
		"empty": "", "a word": "next", "an id": s.rows[24].String(), "one short": cursor[:len(cursor)-1], "one long": cursor + "A", "padded": cursor + "=",
		"twice": cursor + cursor, "with a line break": cursor[:9] + "\n" + cursor[9:], "no text": "\xff\xfe", "U+0000": "\x00", "zeros": strings.Repeat("A", len(cursor)),
	} {
		s.call("GET", "/api/v1/things?cursor="+url.QueryEscape(bad), "").refused(name, 400, "invalid_parameter")
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for at := range len(cursor) {
		for _, letter := range letters {
			damaged := cursor[:at] + string(letter) + cursor[at+1:]
			if damaged == cursor {
				continue
			}
			if _, ok := (Page{pattern: "/api/v1/things"}).open(damaged, 16); ok {
				t.Errorf("%s passes for %s", damaged, cursor)
			}
		}
	}
	for _, other := range []string{"/api/v1/others", "/api/v1/things/" + uuid.NewString() + "/parts"} {
		s.call("GET", other+"?cursor="+cursor, "").refused("the cursor of another list", 400, "invalid_parameter")
	}
	if ids, _ := s.page("?cursor=" + cursor); ids[0] != s.rows[25] {
		t.Error("the good cursor leads elsewhere")
	}
}

func TestAQueryTakesOnlyWhatItKnowsAndEachOnce(t *testing.T) {
	s := newShop(t)
	for _, good := range []string{"", "?", "?name=x", "?name=", "?name=%C3%A9&limit=5", "?name=a+b"} {
		if a := s.call("GET", "/api/v1/things"+good, ""); a.status != 200 {
			t.Errorf("%q: %d %s", good, a.status, a.body)
		}
	}
	for query, path := range map[string]string{
		"?nam=x":                 "/nam",
		"?Name=x":                "/Name",
		"?name=x&name=x":         "/name",
		"?name=x&limit=1&name=y": "/name",
		"?zebra=1&ant=1":         "/ant",
		"?=x":                    "/",
		"?name=%00":              "/name",
		"?name=a%ff":             "/name",
		"?%ff=1":                 "/\ufffd",
		"?name=%zz":              "/query",
		"?name=%":                "/query",
		"?name=x;limit=1":        "/query",
	} {
		members := s.call("GET", "/api/v1/things"+query, "").refused(query, 400, "invalid_parameter")
		if details, _ := members["details"].([]any); len(details) != 1 || details[0].(map[string]any)["path"] != path {
			t.Errorf("%s: details %v", query, members["details"])
		}
	}
}

func TestAnAddressWithoutParametersSaysSo(t *testing.T) {
	call := &Call{Request: httptest.NewRequest("GET", "/?x=1", nil)}
	if err := call.Query(); err == nil || !strings.Contains(err.Error(), "takes none") {
		t.Error(err)
	}
}

// What is not described is refused whatever the method, before anything is done.
func TestEveryCallTakesOnlyTheParametersThatTheDocumentDescribes(t *testing.T) {
	s := newShop(t)
	for _, call := range [][3]string{
		{"POST", "/api/v1/things", `{"name":"x"}`},
		{"GET", "/api/v1/things", ""},
		{"DELETE", "/api/v1/things/" + uuid.NewString(), ""},
		{"POST", "/api/v1/things/batch", `{"things":[{"name":"x"}]}`},
	} {
		s.call(call[0], call[1]+"?nme=1", call[2]).refused(call[0], 400, "invalid_parameter")
	}
	if n := s.handled.Load(); n != 0 {
		t.Errorf("%d calls were handled", n)
	}
	if a := s.call("POST", "/api/v1/things?note=1", `{"name":"x"}`); a.status != 201 {
		t.Errorf("with the parameter that it has: %d %s", a.status, a.body)
	}
}

func TestQueryParametersAreReadAsTheyAreMeant(t *testing.T) {
	const id = "0197f0a2-1111-7abc-8def-0123456789ab"
	call := &Call{Request: httptest.NewRequest("GET", "/?id="+id+"&bad=x&status=open&name=a%20b&empty=&at=2026-03-01T12:00:00.25-03:00&day=2026-03-01", nil)}
	if text, err := call.QueryText("name", 3); err != nil || text == nil || *text != "a b" {
		t.Error("text", text, err)
	}
	if _, err := call.QueryText("name", 2); err == nil {
		t.Error("a text that is too long")
	}
	if _, err := call.QueryText("empty", 3); err == nil {
		t.Error("an empty text is not an absent one")
	}
	if text, err := call.QueryText("absent", 3); err != nil || text != nil {
		t.Error("an absent text", text, err)
	}
	if got, err := call.QueryID("id"); err != nil || got == nil || got.String() != id {
		t.Error("id", got, err)
	}
	if got, err := call.QueryID("absent"); err != nil || got != nil {
		t.Error("an absent id", got, err)
	}
	if _, err := call.QueryID("bad"); err == nil {
		t.Error("a bad id")
	}
	if got, err := call.QueryTime("at"); err != nil || got == nil || !got.Equal(time.Date(2026, 3, 1, 15, 0, 0, 250_000_000, time.UTC)) {
		t.Error("time", got, err)
	}
	if got, err := call.QueryTime("absent"); err != nil || got != nil {
		t.Error("an absent time", got, err)
	}
	for _, name := range []string{"day", "empty"} {
		if _, err := call.QueryTime(name); fault.KindOf(err) != fault.Invalid {
			t.Error("a bad time", err)
		}
	}
	if got, err := call.QueryChoice("status", "open", "closed"); err != nil || got == nil || *got != "open" {
		t.Error("choice", got, err)
	}
	if got, err := call.QueryChoice("absent", "open"); err != nil || got != nil {
		t.Error("an absent choice", got, err)
	}
	if _, err := call.QueryChoice("name", "open", "closed"); err == nil || !strings.Contains(err.Error(), "open, closed") {
		t.Error("a bad choice", err)
	}
}
