package webhooks

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

func TestEveryFilterOfTheDeliveriesNarrowsTheList(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	var endpoints []string
	for range 2 {
		endpoints = append(endpoints, k.register(s, who, "https://example.com/", "*", event.NameSaleRecorded).EndpointID)
	}
	k.exec("update endpoints set created_at = created_at - interval '20 days'")
	start := time.Now().Add(-80 * time.Hour).Truncate(time.Second)
	for i := range 24 {
		at := start.Add(time.Duration(i/2) * 5 * time.Hour)
		if i%3 == 0 {
			k.fanOut(s, sold(t, who.tenant, at))
		} else {
			k.fanOut(s, joined(t, who.tenant, at.Add(300*time.Microsecond)))
		}
		if i%6 == 5 && i < 20 { // the last ones stay pending
			k.endAll(endpoints[i/12], stateDelivered, stateFailed, stateDelivered, stateSkipped, stateUnknown)
		}
	}
	type made struct{ id, endpoint, event, status, at string }
	rows, err := k.pool.Query(t.Context(), `
		select delivery_id::text, endpoint_id::text, d.name, state, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
		from (select delivery_id, endpoint_id, name, state, created_at from deliveries
			union all select delivery_id, endpoint_id, name, 'pending', created_at from pending) d
		order by delivery_id desc`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m made, err error) {
		return m, row.Scan(&m.id, &m.endpoint, &m.event, &m.status, &m.at)
	})
	if err != nil || len(all) != 48 {
		t.Fatalf("%d deliveries, %v", len(all), err)
	}
	moment := func(hours int) string {
		return start.Add(time.Duration(hours) * time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	choices := map[string][]string{
		"endpoint_id": endpoints, "event": {event.NameSaleRecorded, event.NamePartnerCreated, event.NameGoalReached},
		"status": {"pending", stateDelivered, stateFailed, stateUnknown, stateSkipped},
		"from":   {moment(0), moment(20), moment(33)}, "to": {moment(50), moment(21), moment(20)},
	}
	names := slices.Sorted(maps.Keys(choices))
	for set := range 3 << len(names) { // every combination of filters, three times
		query := url.Values{"limit": {"5"}}
		for i, name := range names {
			if set>>i&1 == 1 {
				query.Set(name, choices[name][rand.IntN(len(choices[name]))])
			}
		}
		asks := func(name, value string) bool { return !query.Has(name) || query.Get(name) == value }
		var want, got []string
		for _, m := range all {
			if asks("endpoint_id", m.endpoint) && asks("event", m.event) && asks("status", m.status) &&
				(!query.Has("from") || m.at >= query.Get("from")) && (!query.Has("to") || m.at < query.Get("to")) {
				want = append(want, m.id)
			}
		}
		for pages := 0; pages < 12; pages++ {
			var page wirePage
			k.ask(s, who, "GET", deliveriesPath+"?"+query.Encode(), "").must(200, &page)
			for _, d := range page.Data {
				got = append(got, d.DeliveryID)
			}
			if page.NextCursor == nil {
				break
			}
			query.Set("cursor", *page.NextCursor)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", query.Encode(), got, want)
		}
	}
}

// A tenant has two endpoints and 40,000 deliveries over 18 days. One in a thousand is of
// a sale, one in two thousand has failed; another tenant has a tenth of it.
const manyDeliveriesStatement = `
with made as (
	select ('00000000-0000-7000-8000-00000000000' || tenant)::uuid as tenant_id, ('00000000-0000-7000-8000-0000000000e' || n % 2)::uuid as endpoint_id,
		(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid as delivery_id,
		at, lpad(to_hex(n), 32, '0')::uuid as event_id, n,
		case when n % 1000 = 7 then 'sale.recorded' else 'partner.created' end as name
	from generate_series(1, 40000) n, generate_series(1, 2) tenant,
		lateral (select date_trunc('day', now()) - interval '20 days' + n * interval '40 seconds' as at) as told
	where tenant = 1 or n % 10 = 0),
told as (
	insert into events (tenant_id, event_id, name, created_at, position, body)
	select tenant_id, event_id, name, at, n, '{}' from made)
insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state)
select tenant_id, delivery_id, at, event_id, endpoint_id, name, case when n % 2000 < 2 then 'failed' else 'delivered' end from made`

// crowd fills the history with many rows of two tenants and returns the first.
func (k *stack) crowd() uuid.UUID {
	k.t.Helper()
	tenant := uuid.MustParse("00000000-0000-7000-8000-000000000001")
	k.exec("insert into tenants (tenant_id, position, newest_event_id) values ($1, 40000, lpad(to_hex(40000), 32, '0')::uuid)", tenant)
	k.exec(`insert into endpoints (tenant_id, endpoint_id, url, events, secret, created_at)
		select $1, ('00000000-0000-7000-8000-0000000000e' || n)::uuid, 'https://example.com/', '{*}', '\x00', now() - interval '30 days' from generate_series(0, 1) n`, tenant)
	k.exec(manyDeliveriesStatement)
	k.exec("vacuum analyze events, deliveries, attempts, pending")
	return tenant
}

// touched is how many blocks of 8 KiB a query reads that is planned as setting has it.
func (k *stack) touched(setting, query string, arguments ...any) int {
	k.t.Helper()
	tx, err := k.pool.Begin(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(k.t.Context()) }()
	if _, err := tx.Exec(k.t.Context(), setting); err != nil {
		k.t.Fatal(err)
	}
	var told []byte
	err = tx.QueryRow(k.t.Context(), "explain (analyze, buffers, timing off, format json) "+query, append([]any{pgx.QueryExecModeCacheDescribe}, arguments...)...).Scan(&told)
	if err != nil {
		k.t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(told, &plans); err != nil {
		k.t.Fatal(err)
	}
	if strings.Contains(string(told), "Seq Scan") {
		k.t.Errorf("a table is read from end to end: %s", told)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// However long the history is, a page is read along an index: what it costs are a few
// blocks for each day and each row, where the whole history has thousands.
func TestAPageOfTheHistoryIsReadAlongAnIndex(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	tenant := k.crowd()
	endpoint := uuid.MustParse("00000000-0000-7000-8000-0000000000e1")
	text := func(s string) *string { return &s }
	moment := func(days int) *time.Time { at := time.Now().AddDate(0, 0, -days); return &at }
	const bound = 300
	for name, filter := range map[string]deliveryFilter{
		"nothing":                      {},
		"an endpoint":                  {endpointID: &endpoint},
		"a rare event":                 {event: text(event.NameSaleRecorded)},
		"an event that never happened": {event: text(event.NameGoalReached)},
		"what was delivered":           {status: text(stateDelivered)},
		"what failed":                  {status: text(stateFailed)},
		"what is unknown":              {status: text(stateUnknown)},
		"what is pending":              {status: text(statusPending)},
		"what failed of an endpoint":   {status: text(stateFailed), endpointID: &endpoint},
		"what failed of an event":      {status: text(stateFailed), event: text(event.NameGoalReached)},
		"a span of time":               {fromTime: moment(11), to: moment(10)},
		"a span of an endpoint":        {fromTime: moment(11), to: moment(10), endpointID: &endpoint},
		"what failed in a span":        {fromTime: moment(11), to: moment(10), status: text(stateFailed)},
	} {
		for _, page := range []web.Page{{Limit: 25}, {Limit: 25, After: pointer(firstDeliveryID(*moment(9)))}} {
			if n := k.touched(lookUpStatement, filter.query(), filter.arguments(tenant, page)); n > bound {
				t.Errorf("%s: %d blocks are read, want at most %d", name, n, bound)
			}
		}
	}
	for name, c := range map[string]struct {
		query string
		types []string
	}{
		"the whole feed": {feedQuery, nil}, "rare events": {feedOfTypesQuery, []string{event.NameSaleRecorded, event.NameGoalReached}},
		"all events by their names": {feedOfTypesQuery, deliverable},
	} {
		for _, position := range []int{0, 30_000} {
			arguments := []any{tenant, position, 40_000, 25}
			if c.types != nil {
				arguments = append(arguments, c.types)
			}
			n := k.touched(postgres.PlanOnce, c.query, arguments...)
			if most := bound * max(1, len(c.types)); n > most {
				t.Errorf("%s: %d blocks are read, want at most %d", name, n, most)
			}
		}
	}
	part := replayPart{tenant: tenant, endpoint: endpoint, from: *moment(25), to: *moment(0), statuses: undeliveredStates}
	arguments := part.arguments(longAgo, 25)
	arguments["room"] = 25
	if n := k.touched(lookUpStatement, replayStatement, arguments); n > 2*bound {
		t.Errorf("a part of a replay: %d blocks are read", n)
	}
}

func pointer[T any](value T) *T { return &value }

func TestOfManyAttemptsTheNewestAreShown(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	k.endAll(endpoint, stateFailed)
	k.exec(`insert into attempts (tenant_id, delivery_id, created_at, claim, at, duration_ms, status_code, url, signature)
		select tenant_id, delivery_id, created_at, gen_random_uuid(), created_at + n * interval '1 s', n, 500, 'https://example.com/', 'x'
		from deliveries cross join generate_series(1, $1) n`, attemptsShown+50)
	type shown struct {
		DeliveryID string `json:"delivery_id"`
		Attempts   []struct {
			DurationMS int `json:"duration_ms"`
		}
	}
	mustShow := func(where string, d shown, n int) {
		t.Helper()
		if len(d.Attempts) != n || d.Attempts[0].DurationMS != attemptsShown+51-n || d.Attempts[n-1].DurationMS != attemptsShown+50 {
			t.Errorf("%s: %d attempts %v, want the newest %d in their order", where, len(d.Attempts), d.Attempts, n)
		}
	}
	var one shown
	var page struct{ Data []shown }
	for _, query := range []string{"", "?status=failed", "?endpoint_id=" + endpoint} {
		k.ask(s, who, "GET", "/api/v1/webhook-deliveries"+query, "").must(200, &page)
		mustShow("a list "+query, page.Data[0], attemptsListed)
	}
	k.ask(s, who, "GET", "/api/v1/webhook-deliveries/"+page.Data[0].DeliveryID, "").must(200, &one)
	mustShow("one delivery", one, attemptsShown)
}

func TestAnEndpointIsForgottenOnceNothingIsLeftOfItsHistory(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	var endpoints []string
	for range 4 {
		endpoints = append(endpoints, k.register(s, who, "https://example.com/", "*").EndpointID)
	}
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	for _, endpoint := range endpoints[:3] {
		k.endAll(endpoint, stateFailed)
		k.ask(s, who, "DELETE", "/api/v1/webhook-endpoints/"+endpoint, "").must(204, nil)
	}
	k.exec("update endpoints set deleted_at = deleted_at - interval '40 days' where endpoint_id = any($1)", endpoints[:2])
	k.exec("delete from deliveries where endpoint_id = any($1)", []string{endpoints[0], endpoints[2]})
	k.ask(s, who, "DELETE", "/api/v1/webhook-endpoints/"+endpoints[3], "").must(204, nil)
	if n := k.count("select count(*) from endpoints where endpoint_id = $1", endpoints[0]); n != 0 {
		t.Error("one of which nothing is left is remembered")
	}
	if n := k.count("select count(*) from endpoints"); n != 3 {
		t.Errorf("%d endpoints are remembered, want 3: one has a history, two were deleted just now", n)
	}
}
