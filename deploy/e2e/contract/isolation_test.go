package contract

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// never is an id that nothing has ever had.
const never = "01890000-0000-7000-8000-000000000000"

// leastHidden is how many ways of asking for another's things there are at least.
const leastHidden = 40

// TestWhatIsAnothersReadsLikeWhatNeverWas asks for everything that takes an id, in its
// path, its query or its body, with another tenant's and with nobody's.
func TestWhatIsAnothersReadsLikeWhatNeverWas(t *testing.T) {
	t.Parallel()
	p := startPlatform(t, nil)
	owner, stranger := newWorld(p, "owner"), newWorld(p, "stranger")
	asked := 0
	p.every(func(s *running, o *operation) {
		if o.byOperator() {
			return
		}
		if o.method == "GET" {
			if got := stranger.call(s, o, stranger.request(o, "")); got.status != 200 {
				t.Errorf("%s of one's own answers %s", o, got)
			}
		}
		for _, pair := range stranger.pairs(o, owner) {
			asked++
			looked := stranger.call(s, o, pair.nobodys).status >= 400 || o.eachElementAlone()
			if pair.inBody && !looked {
				continue // the id is kept as it is, and means nothing
			}
			p.recordsNothing(o.String(), func() {
				theirs, nobodys := stranger.call(s, o, pair.anothers), stranger.call(s, o, pair.nobodys)
				if pair.without(theirs) != pair.without(nobodys) {
					t.Errorf("%s: %s of another tenant answers %s, of nobody %s", o, pair.name, theirs, nobodys)
				}
				if pair.inPath && theirs.text("code") != "not_found" {
					t.Errorf("%s: %s of another tenant answers %s", o, pair.name, theirs)
				}
				if theirs.made() && strings.Contains(theirs.body, `"data":[{`) && !strings.Contains(nobodys.body, `"data":[{`) {
					t.Errorf("%s: %s of another tenant shows %s", o, pair.name, theirs)
				}
			})
		}
	})
	if asked < leastHidden {
		t.Errorf("only %d ways of asking were tried", asked)
	}
	t.Logf("%d ways of asking were tried", asked)
}

// pair are two calls that must not be told apart: with an id of another tenant, and
// with one of nobody.
type pair struct {
	name              string
	inPath, inBody    bool
	anothers, nobodys request
	asked             string // the other tenant's id in the query
}

// without is the answer but for the id that was asked for, which it may repeat.
func (p pair) without(got reply) string {
	text := strings.ReplaceAll(got.anonymous(), never, "…")
	if p.asked == "" {
		return text
	}
	return strings.ReplaceAll(text, p.asked, "…")
}

// pairs are the ways in which the operation can be asked for what is the owner's: every
// choice of the path's ids, each id of the query, and each id of the body.
func (w *world) pairs(o *operation, owner *world) (all []pair) {
	w.t.Helper()
	var inPath []string
	for _, p := range o.parameters() {
		switch {
		case p.in == "path":
			inPath = append(inPath, p.name)
		case p.in == "query" && p.format == "uuid":
			theirs, nobodys := w.request(o, ""), w.request(o, "")
			path, _, _ := strings.Cut(w.address(o), "?")
			theirs.address = path + "?" + url.Values{p.name: {owner.id(p.name)}}.Encode()
			nobodys.address = path + "?" + url.Values{p.name: {never}}.Encode()
			all = append(all, pair{name: "the " + p.name + " in the query", anothers: theirs, nobodys: nobodys, asked: owner.id(p.name)})
		}
	}
	body := ""
	if o.body != nil {
		body = written(w.body(o))
	}
	for foreign := 1; foreign < 1<<len(inPath); foreign++ { // which of the ids are not the stranger's
		theirs, nobodys := maps.Clone(w.known), maps.Clone(w.known)
		var names []string
		for i, name := range inPath {
			if foreign&(1<<i) != 0 {
				theirs[name], nobodys[name] = owner.known[name], never
				names = append(names, name)
			}
		}
		anothers, nobody := w.request(o, body), w.request(o, body)
		anothers.address, nobody.address = w.addressWith(o, theirs), w.addressWith(o, nobodys)
		all = append(all, pair{name: "the " + strings.Join(names, " and "), inPath: true, anothers: anothers, nobodys: nobody})
	}
	for _, name := range slices.Sorted(maps.Keys(w.known)) {
		if strings.Contains(body, w.known[name]) {
			all = append(all, pair{
				name: "the " + name + " in the body", inBody: true,
				anothers: w.request(o, strings.ReplaceAll(body, w.known[name], owner.known[name])),
				nobodys:  w.request(o, strings.ReplaceAll(body, w.known[name], never)),
			})
		}
	}
	return all
}

// id is one of the tenant's ids; the test fails where none has that name.
func (w *world) id(name string) string {
	w.t.Helper()
	if w.known[name] == "" {
		w.t.Fatalf("no answer names a %s", name)
	}
	return w.known[name]
}
