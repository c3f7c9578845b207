package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
	"partilha.dev/pkg/web"
)

// provoked are answers that only the rules of one operation give. Each is the last of
// these bodies, which are its example with members changed.
var provoked = map[string][]map[string]string{
	"POST /api/v1/sales 404":                    {{"referral_code": `"nobody"`}},
	"POST /api/v1/sales 422":                    {{"campaign_id": quoted(never)}},
	"POST /api/v1/conversions 404":              {{"referral_code": `"nobody"`}},
	"POST /api/v1/conversions 422":              {{"campaign_id": quoted(never)}},
	"POST /api/v1/sales/{sale_id}/refunds 422":  {{"amount_brl": "999999999.99"}},
	"POST /api/v1/withdrawals 404":              {{"partner_id": quoted(never)}},
	"POST /api/v1/withdrawals 422":              {{"amount_brl": "999999999.99"}},
	"PATCH /api/v1/partners/{partner_id} 409":   {{"status": `"banned"`}, {"status": `"active"`}},
	"PATCH /api/v1/campaigns/{campaign_id} 409": {{"status": `"ended"`}, {"status": `"active"`}},
}

// TestEveryDocumentedAnswerIsGiven provokes every status that is documented for every
// operation. That each answer is as documented is seen to wherever a call is made.
func TestEveryDocumentedAnswerIsGiven(t *testing.T) {
	t.Parallel()
	p, seen := provokeAnswers(t), map[string]bool{}
	for _, other := range []*platform{p, provokeLimits(t), provokeFaults(t)} {
		maps.Copy(seen, other.seen)
	}
	documented := map[string]bool{}
	p.every(func(_ *running, o *operation) {
		for _, status := range o.statuses() {
			name := fmt.Sprint(o, " ", status)
			if documented[name] = true; !seen[name] {
				t.Errorf("%s is documented and was never given", name)
			}
		}
	})
	for name := range provoked {
		if !documented[name] {
			t.Errorf("%s is provoked and not documented", name)
		}
	}
	t.Logf("%d documented answers were given", len(documented))
}

// provokeAnswers provokes whatever a platform answers that is well and idle.
func provokeAnswers(t *testing.T) *platform {
	w := newWorld(startPlatform(t, nil), "answers")
	lesser := w.lesserKeys()
	w.every(func(s *running, o *operation) { w.succeed(s, o) })
	w.every(func(s *running, o *operation) {
		for _, r := range w.refusable(o, lesser) {
			w.call(s, o, r)
		}
	})
	w.every(func(s *running, o *operation) { w.provokeAfter(s, o) })
	w.crowdGoals()
	for _, status := range []int{404, 422, 409} { // a partner that is banned and a campaign that has ended come last
		if status == 409 {
			w.provokeBan()
		}
		w.every(func(s *running, o *operation) { w.provoke(s, o, status) })
	}
	w.deleteReachedGoal()
	var deletions []func()
	w.every(func(s *running, o *operation) {
		if o.method == "DELETE" {
			deletions = append(deletions, func() { w.call(s, o, w.request(o, "")) })
		}
	})
	for _, remove := range slices.Backward(deletions) { // what is below something, before that
		remove()
	}
	w.expire()
	return w.platform
}

// expire reads on in the feed from what is no longer kept.
func (w *world) expire() {
	w.t.Helper()
	s, feed := w.find("GET", "/api/v1/events")
	first := w.call(s, feed, request{address: feed.path + "?limit=1", credential: w.key}).text("next_cursor")
	if _, err := s.deps.Pool.Exec(w.t.Context(), "with gone as (delete from day_totals) delete from events"); err != nil {
		w.t.Fatal(err)
	}
	w.call(s, feed, request{address: feed.path + "?after=" + first, credential: w.key})
}

// crowdGoals sets goals until there are too many, and tries to make one active again that
// another has taken the place of. One place is free in the end.
func (w *world) crowdGoals() {
	w.t.Helper()
	s, set := w.find("POST", "/api/v1/goals")
	_, change := w.find("PATCH", "/api/v1/goals/{goal_id}")
	turn := func(id, status string) {
		r := w.request(change, `{"status":"`+status+`"}`)
		r.address = set.path + "/" + id
		w.call(s, change, r)
	}
	const one = `{"name":"One of many","metric":"sales_count","target":1000000}`
	first := w.call(s, set, w.request(set, one)).text("goal_id")
	turn(first, "archived")
	last := first
	for n := 0; n <= goalsPerTenant && !w.seen[fmt.Sprint(set, " 422")]; n++ {
		if made := w.call(s, set, w.request(set, one)); made.status == 201 {
			last = made.text("goal_id")
		}
	}
	turn(first, "active")
	turn(last, "archived")
}

// deleteReachedGoal tries to delete a goal that the tenant's conversion has reached.
func (w *world) deleteReachedGoal() {
	w.t.Helper()
	s, set := w.find("POST", "/api/v1/goals")
	made := w.call(s, set, w.request(set, `{"name":"One lead","metric":"conversions_count","target":1,"starts_at":"2020-01-01T00:00:00Z"}`))
	s, remove := w.find("DELETE", "/api/v1/goals/{goal_id}")
	refused := w.request(remove, "")
	refused.address = "/api/v1/goals/" + made.text("goal_id")
	w.call(s, remove, refused)
}

// succeed makes a call that does what is asked, and one that repeats what was asked.
func (w *world) succeed(s *running, o *operation) {
	switch o.method {
	case "GET":
		w.call(s, o, w.request(o, ""))
	case "PATCH":
		w.call(s, o, w.request(o, written(w.body(o))))
	case "POST":
		if slices.Contains(o.statuses(), 200) {
			w.call(s, o, w.sent[o])
		}
	}
}

// refusable are calls that are refused whatever the operation is for.
func (w *world) refusable(o *operation, lesser map[string]string) []request {
	body := ""
	if o.body != nil {
		body = written(w.body(o))
	}
	right := w.request(o, body)
	anonymous, weak, asking := right, right, right
	anonymous.credential = ""
	weak.credential = lesser[o.scope()]
	calls := []request{anonymous, weak}
	if o.method == "GET" {
		asking.address += "?no-such-parameter=1"
		calls = append(calls, asking)
	}
	if strings.Contains(o.path, "{") {
		for _, id := range []string{never, "no-id"} {
			ids := map[string]string{}
			for name := range w.known {
				ids[name] = id
			}
			strange := right
			strange.address = w.addressWith(o, ids)
			calls = append(calls, strange)
		}
	}
	if o.body != nil {
		broken := right
		broken.body = "{"
		calls = append(calls, broken)
		for _, call := range transports(right, o.maxBody(w.t)) {
			if call.status != 0 {
				calls = append(calls, call.request)
			}
		}
	}
	return calls
}

// lesserKeys are keys that have every scope but one, by that.
func (w *world) lesserKeys() map[string]string {
	w.t.Helper()
	s, keys := w.find("POST", "/api/v1/api-keys")
	lesser := map[string]string{}
	w.every(func(_ *running, o *operation) {
		if o.scope() == "" || lesser[o.scope()] != "" {
			return
		}
		others := slices.DeleteFunc(slices.Clone(auth.AllScopes), func(scope auth.Scope) bool { return string(scope) == o.scope() })
		body, err := json.Marshal(map[string]any{"name": "lesser", "scopes": others})
		if err != nil {
			w.t.Fatal(err)
		}
		lesser[o.scope()] = w.call(s, keys, w.request(keys, string(body))).text("api_key")
	})
	for _, key := range lesser {
		w.awaitKey(key)
	}
	return lesser
}

// most is how often something is made at most until there is too much of it.
const most = 120

// provoke makes the calls that are known to give that status, or else makes the same
// thing anew until there is too much of it.
func (w *world) provoke(s *running, o *operation, status int) {
	w.t.Helper()
	name := fmt.Sprint(o, " ", status)
	if w.seen[name] || !slices.Contains(o.statuses(), status) || status == 422 && slices.Contains(banned, o.String()) {
		return
	}
	for _, changes := range provoked[name] {
		body := any(w.body(o))
		for member, value := range changes {
			body = with(body, []string{member}, token(value))
		}
		w.call(s, o, w.request(o, written(body)))
	}
	for n := 0; len(provoked[name]) == 0 && o.method == "POST" && n < most && !w.seen[name]; n++ {
		w.call(s, o, w.request(o, written(w.body(o))))
	}
}

// provokeLimits calls everything more often than it may be called: with a key, or as
// somebody who shows none where only the operator may call.
func provokeLimits(t *testing.T) *platform {
	w := newTenant(startPlatform(t, web.NewLimiter(web.Limits{PerSecond: 1, Burst: 1, InFlight: 1, FailuresPerSecond: 1, FailureBurst: 1})), "limits")
	w.every(func(s *running, o *operation) {
		r := request{address: strings.NewReplacer("{", "", "}", "").Replace(o.path), body: "{"}
		if !o.byOperator() {
			r.credential = w.key
		}
		for n := 0; n < 3 && slices.Contains(o.statuses(), 429) && !w.seen[fmt.Sprint(o, " 429")]; n++ {
			w.call(s, o, r)
		}
	})
	return w.platform
}

// provokeFaults calls everything while the databases have lost their tables, and again
// while they are down.
func provokeFaults(t *testing.T) *platform {
	server := testkit.Postgres(t)
	databases := map[string]string{}
	for _, b := range blueprints {
		if err := server.CreateDatabase(t.Context(), b.name); err != nil {
			t.Fatal(err)
		}
		databases[b.name] = server.URL(b.name)
		if err := postgres.Migrate(t.Context(), databases[b.name], b.schemas...); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(startPlatformOn(t, databases, nil), "faults")
	everything := func() {
		w.every(func(s *running, o *operation) {
			body := ""
			if o.body != nil {
				body = written(w.body(o))
			}
			w.call(s, o, w.request(o, body))
		})
	}
	for _, s := range w.services {
		for _, table := range s.tables(t) {
			if _, err := s.deps.Pool.Exec(t.Context(), "alter table "+table+" rename to "+strings.TrimSuffix(table, `"`)+"_lost"); err != nil {
				t.Fatal(err)
			}
		}
	}
	everything()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	everything()
	return w.platform
}
