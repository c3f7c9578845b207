package contract

import (
	"fmt"
	"slices"

	"partilha.dev/pkg/testkit"
)

const (
	askPath    = "/api/v1/withdrawals"
	changePath = askPath + "/{withdrawal_id}"
)

// affordable is what a withdrawal is of: little enough for the one commission that is
// not held back to suffice for all that are asked for.
const affordable = "0.01"

// before are the calls that bring about what an operation, or one of its answers, is
// about: a withdrawal of its own, in the state that it takes.
var before = map[string][]string{
	"POST " + changePath + "/approve": {askPath},
	"POST " + changePath + "/reject":  {askPath},
	"POST " + changePath + "/cancel":  {askPath},
	"POST " + changePath + "/pay":     {askPath, changePath + "/approve"},
	"POST " + changePath + "/fail":    {askPath, changePath + "/approve"},
	"POST " + askPath + "/batch":      {askPath, changePath + "/approve"},

	"POST " + changePath + "/approve 409": {askPath, changePath + "/cancel"},
	"POST " + changePath + "/reject 409":  {askPath, changePath + "/cancel"},
	"POST " + changePath + "/cancel 409":  {askPath, changePath + "/reject"},
	"POST " + changePath + "/pay 409":     {askPath},
	"POST " + changePath + "/fail 409":    {askPath},
}

// banned are the operations that are refused with a 422 because the partner was banned
// after the calls that go before.
var banned = []string{"POST " + changePath + "/approve", "POST " + changePath + "/pay"}

// prepare makes the calls that go before what is so called, and learns their ids.
func (w *world) prepare(name string) {
	w.t.Helper()
	for _, path := range before[name] {
		s, o := w.find("POST", path)
		got := w.call(s, o, w.request(o, written(w.body(o))))
		if !got.made() {
			return // whoever needs it will say so
		}
		w.known["withdrawal_id"] = got.text("withdrawal_id")
	}
}

// provokeAfter makes the calls whose answer depends on those that go before.
func (w *world) provokeAfter(s *running, o *operation) {
	w.t.Helper()
	for _, status := range o.statuses() {
		if name := fmt.Sprint(o, " ", status); len(before[name]) > 0 {
			w.prepare(name)
			w.call(s, o, w.request(o, written(w.body(o))))
		}
	}
}

// provokeBan has the partner be banned while withdrawals are under way, and calls what
// is refused then.
func (w *world) provokeBan() {
	w.t.Helper()
	type waiting struct {
		s *running
		o *operation
		r request
	}
	var calls []waiting
	w.every(func(s *running, o *operation) {
		if slices.Contains(banned, o.String()) {
			w.prepare(o.String())
			calls = append(calls, waiting{s, o, w.request(o, written(w.body(o)))})
		}
	})
	s, partner := w.find("PATCH", "/api/v1/partners/{partner_id}")
	w.call(s, partner, w.request(partner, `{"status":"banned"}`))
	s, _ = w.find("POST", askPath)
	testkit.Eventually(w.t, patience, "the ban is heard of", func() bool {
		return s.query(w.t, `select status from partners where partner_id = '`+w.id("partner_id")+`'`)[0] == "banned"
	})
	for _, c := range calls {
		w.call(c.s, c.o, c.r)
	}
}
