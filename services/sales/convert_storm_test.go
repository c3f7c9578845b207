package sales

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAChangeThatOneReplicaAnsweredHoldsAtOnceForConversionsOnTheOther(t *testing.T) {
	t.Parallel()
	const rounds, loaders = 4, 2
	here := start(t, nowhere)
	there := here.replica()
	var serial atomic.Int64
	next := func(changes ...string) string { return here.conversion(fmt.Sprint("lead-", serial.Add(1)), changes...) }
	here.meanwhile(loaders, func(loader, n int) {
		at := []*fixture{here, there}[(loader+n)%2]
		answer, err := at.try("POST", "/api/v1/conversions", strings.NewReader(next()), "Authorization", "Bearer "+here.key)
		if err != nil {
			t.Error(err)
		} else if answer.StatusCode >= 500 {
			t.Errorf("answered %d %s", answer.StatusCode, answer.raw)
		}
	})
	for round := range rounds {
		one, other := here, there
		if round%2 == 1 {
			one, other = there, here
		}
		// With the plan and without, both of which the instance has in memory.
		both := func(f *fixture, check func(*response)) {
			f.t.Helper()
			check(f.post("/api/v1/conversions", next()))
			check(f.post("/api/v1/conversions", next("plan_id", "")))
		}
		passes := func(r *response) { r.t.Helper(); r.want(201) }
		fails := func(status int, code string) func(*response) {
			return func(r *response) { r.t.Helper(); r.refused(status, code) }
		}
		both(one, passes)
		both(other, passes)

		one.patch("/api/v1/campaigns/"+here.campaign, `{"status":"paused"}`).want(200)
		both(other, fails(422, "create_failed"))
		other.patch("/api/v1/campaigns/"+here.campaign, `{"status":"active"}`).want(200)
		both(one, passes)

		one.patch("/api/v1/campaigns/"+here.campaign, `{"ends_at":"2020-01-01T00:00:00Z"}`).want(200)
		both(other, fails(422, "create_failed"))
		other.patch("/api/v1/campaigns/"+here.campaign, `{"ends_at":null}`).want(200)
		both(one, passes)

		one.patch("/api/v1/partners/"+here.partner, `{"status":"suspended"}`).want(200)
		both(other, fails(404, "partner_not_found"))
		other.patch("/api/v1/partners/"+here.partner, `{"status":"active"}`).want(200)
		both(one, passes)

		one.call("DELETE", here.link, "").want(204)
		both(other, fails(422, "create_failed"))
		other.call("PUT", here.link, "").want(204)
		both(one, passes)

		one.patch("/api/v1/plans/"+here.plan, `{"conversion_amount_brl":9}`).want(200)
		other.post("/api/v1/conversions", next()).want(201).shows("commission_amount_brl", "9.00")
		other.patch("/api/v1/plans/"+here.plan, `{"conversion_amount_brl":null}`).want(200)
		one.post("/api/v1/conversions", next()).want(201).shows("commission_amount_brl", "<nil>")
		one.patch("/api/v1/plans/"+here.plan, `{"conversion_amount_brl":4.75}`).want(200)
		other.post("/api/v1/conversions", next()).want(201).shows("commission_amount_brl", "4.75")

		key := one.post("/api/v1/api-keys", `{"name":"short-lived"}`).want(201)
		both(other.with(key.text("api_key")), passes)
		both(one.with(key.text("api_key")), passes)
		one.call("DELETE", "/api/v1/api-keys/"+key.text("api_key_id"), "").want(204)
		both(other.with(key.text("api_key")), fails(401, "unauthorized"))

		one.admin("PATCH", "/admin/v1/tenants/"+here.tenant, `{"status":"suspended"}`).want(200)
		both(other, fails(403, "tenant_suspended"))
		other.admin("PATCH", "/admin/v1/tenants/"+here.tenant, `{"status":"active"}`).want(200)
		both(one, passes)
	}
}

func TestOfSixtyFourEqualConversionsAtOnceExactlyOneIsRecorded(t *testing.T) {
	t.Parallel()
	const calls, refs = 64, 20
	f := start(t, nowhere)
	replicas := []*fixture{f, f.replica()}
	for ref := range refs {
		body := f.conversion(fmt.Sprint("lead-", ref))
		answers := f.together(calls, func(i int) (*response, error) {
			return replicas[i%len(replicas)].try("POST", "/api/v1/conversions", strings.NewReader(body), "Authorization", "Bearer "+f.key)
		})
		firsts := map[string]int{} // by the answer to a repeat of it
		repeats := map[string]int{}
		for _, answer := range answers {
			switch answer.StatusCode {
			case 201:
				firsts[strings.Replace(string(answer.raw), `"idempotent":false`, `"idempotent":true`, 1)]++
			case 200:
				repeats[string(answer.raw)]++
			default:
				t.Fatalf("answered %d %s", answer.StatusCode, answer.raw)
			}
		}
		if len(firsts) != 1 || len(repeats) != 1 {
			t.Fatalf("recorded %v, repeated %v", firsts, repeats)
		}
		for first, n := range firsts {
			if n != 1 || repeats[first] != calls-1 {
				t.Fatalf("recorded %v, repeated %v", firsts, repeats)
			}
		}
	}
	for _, table := range []string{
		"conversions", "outbox where name = 'conversion.recorded'",
		"conversions c join outbox o on convert_from(o.body, 'UTF8')::jsonb #>> '{data,conversion_id}' = c.conversion_id::text",
	} {
		if n := f.rows(table); n != refs {
			t.Errorf("%s: %d rows, want %d", table, n, refs)
		}
	}
}
