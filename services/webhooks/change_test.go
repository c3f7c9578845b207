package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

const (
	partnerA = "01939f7a-0000-7000-8000-00000000000a"
	partnerB = "01939f7a-0000-7000-8000-00000000000b"
)

// fullEndpoint has a value for every member that can be given.
const fullEndpoint = `{"url":"https://example.com/","events":["*","sale.recorded"],"description":"Bookkeeping","max_attempts":3,` +
	`"standard_webhooks":true,"filter":{"partner_ids":["` + partnerA + `"],"min_amount_brl":10}}`

func TestAChangeTouchesWhatIsSentAndNothingElse(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(Config{SecretKey: testKey})
	for body, want := range map[string]string{
		`{"url":"https://example.org/other"}`: `{"url":"https://example.org/other"}`,
		`{"events":["goal.reached"]}`:         `{"events":["goal.reached"]}`,
		`{"description":"Other"}`:             `{"description":"Other"}`,
		`{"description":null}`:                `{"description":null}`,
		`{"max_attempts":20}`:                 `{"max_attempts":20}`,
		`{"standard_webhooks":false}`:         `{"standard_webhooks":false}`,
		`{"filter":{"campaign_ids":["` + strings.ToUpper(partnerB) + `"]}}`: `{"filter":{"campaign_ids":["` + partnerB + `"]}}`,
		`{"filter":{"min_amount_brl":1e1}}`:                                 `{"filter":{"min_amount_brl":10.00}}`,
		`{"filter":{"partner_ids":null}}`:                                   `{"filter":null}`,
		`{"filter":{}}`:                                                     `{"filter":null}`,
		`{"filter":null}`:                                                   `{"filter":null}`,
		`{"status":"enabled"}`:                                              `{}`,
		`{"status":"disabled"}`:                                             `{"status":"disabled","disabled_reason":"disabled by the tenant"}`,
		`{"url":"https://example.org/","events":["*"],"description":null,"max_attempts":1,"standard_webhooks":false,"filter":null,"status":"disabled"}`: `{"url":"https://example.org/","events":["*"],"description":null,"max_attempts":1,"standard_webhooks":false,"filter":null,"status":"disabled","disabled_reason":"disabled by the tenant"}`,
	} {
		var expected, created, changed, read map[string]any
		k.ask(s, who, "POST", endpointsPath, fullEndpoint).must(201, &created)
		path := endpointsPath + "/" + created["endpoint_id"].(string)
		delete(created, "secret")
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatal(err)
		}
		maps.Copy(created, expected)
		k.ask(s, who, "PATCH", path, body).must(200, &changed)
		k.ask(s, who, "GET", path, "").must(200, &read)
		if !reflect.DeepEqual(changed, created) || !reflect.DeepEqual(read, created) {
			t.Errorf("%s answers %v and is read as %v, want %v", body, changed, read, created)
		}
		k.ask(s, who, "DELETE", path, "").must(204, nil)
	}
}

func TestAChangeThatIsNotValidChangesNothing(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(Config{SecretKey: testKey})
	var created wire
	k.ask(s, who, "POST", endpointsPath, fullEndpoint).must(201, &created)
	path := endpointsPath + "/" + created.EndpointID
	before := k.ask(s, who, "GET", path, "").Body.String()
	for _, body := range []string{
		`{}`, `null`, `[]`, `{"secret":"whsec_mine"}`, `{"endpoint_id":"` + partnerA + `"}`, `{"Status":"disabled"}`,
		`{"url":null}`, `{"url":""}`, `{"url":"http://example.com/"}`, `{"url":"https://127.0.0.1/"}`, `{"url":"https://example.com:22/"}`,
		`{"events":null}`, `{"events":[]}`, `{"events":["*","*"]}`, `{"events":["sale.sold"]}`, `{"events":["partner.changed"]}`,
		fmt.Sprintf(`{"description":%q}`, strings.Repeat("ã", 501)),
		`{"max_attempts":0}`, `{"max_attempts":21}`, `{"max_attempts":null}`, `{"max_attempts":"2"}`,
		`{"standard_webhooks":null}`, `{"standard_webhooks":1}`,
		`{"filter":{"partner_ids":["` + partnerA + `","` + partnerA + `"]}}`, `{"filter":{"min_amount_brl":-1}}`, `{"filter":{"amount":1}}`,
		`{"status":null}`, `{"status":"deleted"}`, `{"status":"disabled","disabled_reason":"mine"}`,
		`{"description":"Other","max_attempts":99}`,
	} {
		a := k.ask(s, who, "PATCH", path, body)
		a.refused(400, "invalid_body")
		if !strings.Contains(a.Body.String(), `"details":[{"path":"`) {
			t.Errorf("%s: no details in %s", body, a.Body)
		}
	}
	if after := k.ask(s, who, "GET", path, "").Body.String(); after != before {
		t.Errorf("it is %s, and was %s", after, before)
	}
}

func TestADisabledEndpointIsSentNothingUntilItIsEnabled(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	k.run(s.Run)
	path := endpointsPath + "/" + k.register(s, who, in.URL, "*").EndpointID
	set := func(status string) (e wire) {
		t.Helper()
		k.ask(s, who, "PATCH", path, `{"status":"`+status+`"}`).must(200, &e)
		return e
	}

	if e := set("disabled"); e.Status != "disabled" || e.DisabledReason == nil || *e.DisabledReason != disabledByTenant {
		t.Errorf("disabled it is %+v", e)
	}
	silent := joined(t, who.tenant, time.Now())
	k.fanOut(s, silent)
	if e := set("enabled"); e.Status != "enabled" || e.DisabledReason != nil {
		t.Errorf("enabled it is %+v", e)
	}
	heard := joined(t, who.tenant, time.Now())
	k.fanOut(s, heard)
	testkit.Eventually(t, soon, "the second is delivered", func() bool { return k.inState(stateDelivered) == 1 })
	in.mustHaveOnce(t, heard)

	k.exec("update endpoints set disabled_reason = 'it answered 410'")
	if e := set("disabled"); e.DisabledReason == nil || *e.DisabledReason != "it answered 410" {
		t.Errorf("disabled once more it forgets why it was: %+v", e)
	}
}

func TestWhatIsHandledAfterAChangeFollowsIt(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	before, after := newInbox(t, nil), newInbox(t, nil)
	s := k.service(lenient)
	k.run(s.Run)
	path := endpointsPath + "/" + k.register(s, who, before.URL, "*").EndpointID
	first := joined(t, who.tenant, time.Now())
	k.fanOut(s, first)
	k.ask(s, who, "PATCH", path, `{"url":"`+after.URL+`","events":["`+event.NameSaleRecorded+`"]}`).must(200, nil)
	second := sold(t, who.tenant, time.Now())
	k.fanOut(s, joined(t, who.tenant, time.Now()), second)
	testkit.Eventually(t, soon, "both are delivered", func() bool { return k.inState(stateDelivered) == 2 })
	after.mustHaveOnce(t, second)
	before.mustHaveOnce(t, first)
}

// TestAChangeWaitsForTheEventsThatAreBeingHandled has somebody hold the tenant as the
// fan-out does.
func TestAChangeWaitsForTheEventsThatAreBeingHandled(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	path := endpointsPath + "/" + k.register(s, who, "https://example.com/", "*").EndpointID
	for _, call := range []struct{ method, path, body string }{
		{"PATCH", path, `{"status":"disabled"}`}, {"POST", path + "/rotate-secret", `{}`},
	} {
		tx, err := k.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // the pool waits for it
		if _, err := tx.Exec(t.Context(), "select from tenants where tenant_id = $1 for update", who.tenant); err != nil {
			t.Fatal(err)
		}
		status := make(chan int, 1)
		go func() { status <- k.ask(s, who, call.method, call.path, call.body).Code }()
		testkit.Eventually(t, soon, "it waits for the tenant", func() bool { return k.blocked("from tenants") == 1 })
		select {
		case got := <-status:
			t.Errorf("%s %s answers %d while the tenant is held", call.method, call.path, got)
		default:
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-status; got != 200 {
			t.Errorf("%s %s answers %d", call.method, call.path, got)
		}
	}
}

// Only the sweep that disables an endpoint does not hold the tenant.
func TestAChangeOfSomethingElseLeavesAnEndpointDisabledThatIsBeingDisabled(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	path := endpointsPath + "/" + k.register(s, who, "https://example.com/", "*").EndpointID
	tx, err := k.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // the pool waits for it
	if _, err := tx.Exec(t.Context(), "update endpoints set disabled_reason = $1", reasonGone); err != nil {
		t.Fatal(err)
	}
	answered := make(chan answer, 1)
	go func() { answered <- k.ask(s, who, "PATCH", path, `{"description":"Other"}`) }()
	testkit.Eventually(t, soon, "it waits for the endpoint", func() bool { return k.blocked("endpoints") == 1 })
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	var changed, now wire
	(<-answered).must(200, &changed)
	k.ask(s, who, "GET", path, "").must(200, &now)
	for _, e := range []wire{changed, now} {
		if e.Status != statusDisabled || e.DisabledReason == nil || *e.DisabledReason != reasonGone || e.Description == nil {
			t.Errorf("it is %+v", e)
		}
	}
}
