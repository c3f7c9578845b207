package contract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// leastHostile is how many hostile bodies there are at least; fewer would mean that the
// generator no longer sees what it saw.
const leastHostile = 5_000

func TestEveryWrongBodyIsRefusedAndRecordsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(startPlatform(t, nil), "hostile")
	tried := 0
	w.every(func(s *running, o *operation) {
		if o.body == nil {
			return
		}
		right := w.body(o)
		if err := o.body.Decode([]byte(written(right)), new(map[string]any)); err != nil {
			t.Fatalf("%s: the example %s: %v", o, written(right), err)
		}
		g, err := o.generate(right)
		if err != nil {
			t.Fatalf("%s: %v", o, err)
		}
		w.recordsNothing(o.String(), func() {
			for _, h := range append(wholes(right), g.hostile...) {
				if h.body == "" && !o.needsBody() || h.body == written(right) {
					continue // that is a call with nothing more to say, or nothing that is wrong
				}
				tried++
				w.refuses(s, o, h)
			}
			for _, call := range transports(w.request(o, written(right)), o.maxBody(t)) {
				if call.status == 0 {
					continue
				}
				tried++
				if got := w.call(s, o, call.request); got.status != call.status || got.text("code") != call.code {
					t.Errorf("%s: %s answers %s", o, call.name, got)
				}
			}
		})
	})
	if tried < leastHostile {
		t.Errorf("only %d wrong bodies were tried", tried)
	}
	t.Logf("%d wrong bodies were refused", tried)
}

// detail is one issue of a refused body.
type detail struct{ Path, Code, Message string }

// refuses fails the test unless the body is refused for what is wrong with it, and for
// nothing else.
func (w *world) refuses(s *running, o *operation, h hostile) {
	w.t.Helper()
	got := w.call(s, o, w.request(o, h.body))
	where := pointer(h.path...)
	if h.code == "syntax" {
		where = ""
	}
	details := got.refusal()
	if details == nil && o.eachElementAlone() && len(h.path) > 1 {
		details = got.elementRefusal()
		where = strings.TrimPrefix(where, pointer(h.path[:2]...))
	}
	named := slices.ContainsFunc(details, func(d detail) bool { return d.Path == where && d.Code == h.code })
	astray := slices.ContainsFunc(details, func(d detail) bool {
		renamed := d.Code == "required" || d.Code == "unknown_member"
		return !strings.HasPrefix(d.Path, where) && !renamed || d.Message == ""
	})
	if !named || astray {
		w.t.Errorf("%s: %s at %s, sent as %.300q, answers %s; want %s at %q", o, h.name, pointer(h.path...), h.body, got, h.code, where)
	}
}

// refusal are the details of a 400 for its body; nil for any other answer.
func (r reply) refusal() []detail {
	var refused struct {
		Code    string
		Details []detail
	}
	if r.status != 400 || json.Unmarshal([]byte(r.body), &refused) != nil || refused.Code != "invalid_body" {
		return nil
	}
	return refused.Details
}

// elementRefusal are the details of the only element of a batch, if that is refused for
// its body.
func (r reply) elementRefusal() []detail {
	var batch struct {
		Results []struct {
			Status  int
			Code    string
			Details []detail
		}
	}
	if r.status != 200 || json.Unmarshal([]byte(r.body), &batch) != nil || len(batch.Results) != 1 {
		return nil
	}
	if only := batch.Results[0]; only.Status == 400 && only.Code == "invalid_body" {
		return only.Details
	}
	return nil
}

// leastFair is how many bodies at the bounds there are at least.
const leastFair = 400

func TestWhatIsJustWithinTheBoundsIsNotRefusedForThem(t *testing.T) {
	t.Parallel()
	w := newWorld(startPlatform(t, nil), "fair")
	tried := 0
	w.every(func(s *running, o *operation) {
		if o.body == nil {
			return
		}
		right := w.body(o)
		g, err := o.generate(right)
		if err != nil {
			t.Fatalf("%s: %v", o, err)
		}
		deep := with(right, []string{"unknown"}, token(strings.Repeat("[", 31)+strings.Repeat("]", 31)))
		for _, f := range append(g.fair, fair{"32 levels", written(deep), nil, "syntax"}) {
			if o.path == askPath && f.name == "null" && slices.Equal(f.path, []string{"partner_id"}) {
				continue // without it nobody is named
			}
			tried++
			got := w.call(s, o, w.request(o, f.body))
			details := got.refusal()
			if len(f.path) > 1 && o.eachElementAlone() {
				details = append(details, got.elementRefusal()...)
			}
			where := pointer(f.path...)
			refused := slices.ContainsFunc(details, func(d detail) bool { return strings.HasSuffix(where, d.Path) && d.Code == f.never })
			if refused || got.status >= 500 || got.status == 400 && details == nil {
				t.Errorf("%s: %s at %s, sent as %.300q, answers %s", o, f.name, where, f.body, got)
			}
		}
		for _, call := range transports(w.request(o, written(right)), o.maxBody(t)) {
			if call.status != 0 {
				continue
			}
			tried++
			if got := w.call(s, o, call.request); got.status == 413 || got.status == 415 || got.status == 400 || got.status >= 500 {
				t.Errorf("%s: %s answers %s", o, call.name, got)
			}
		}
	})
	if tried < leastFair {
		t.Errorf("only %d bodies were tried", tried)
	}
	t.Logf("%d bodies at the bounds were tried", tried)
}
