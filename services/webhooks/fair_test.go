package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

// keepBusy has the lanes granted slots for so many deliveries, of which each ends when as
// many others as there are slots have begun, and counts them. All lanes always have more.
func keepBusy(l *lanes, list []lane, deliveries int) map[lane]int {
	waiting := map[lane]time.Time{}
	for _, next := range list {
		waiting[next] = time.Now()
	}
	l.wake(waiting)
	counts := map[lane]int{}
	var inFlight []lane
	for n := 0; n < deliveries; {
		grants := l.take()
		full := map[lane]int{}
		for _, g := range grants {
			full[g.lane] = g.slots
			counts[g.lane] += g.slots
			n += g.slots
			for range g.slots {
				inFlight = append(inFlight, g.lane)
			}
		}
		l.settle(grants, full)
		l.done(inFlight[0], 1)
		inFlight = inFlight[1:]
	}
	return counts
}

func TestSlotsAreSharedBetweenTenantsFirstAndEndpointsSecond(t *testing.T) {
	t.Parallel()
	for _, total := range []int{1, 4, 16, 64, 448} {
		t.Run(fmt.Sprint(total, " slots"), func(t *testing.T) {
			t.Parallel()
			var all []lane
			tenants := make([]uuid.UUID, max(8, total/16)) // so that none comes to hold all that one endpoint may
			for i := range tenants {
				tenants[i] = uuid.New()
				all = append(all, someLanes(tenants[i], []int{1, 2, 50}[i%3])...)
			}
			const deliveries = 200_000
			counts := keepBusy(newLanesOf(total), all, deliveries)
			of := map[uuid.UUID]int{}
			for l, n := range counts {
				of[l.tenant] += n
			}
			for i, tenant := range tenants {
				share := deliveries / len(tenants)
				if of[tenant] < share*3/4 || of[tenant] > share*5/4 {
					t.Errorf("a tenant of %d endpoints got %d of %d", []int{1, 2, 50}[i%3], of[tenant], deliveries)
				}
			}
			for _, l := range all {
				endpoints := 0
				for _, other := range all {
					if other.tenant == l.tenant {
						endpoints++
					}
				}
				if share := of[l.tenant] / endpoints; counts[l] < share*3/4 || counts[l] > share*5/4 {
					t.Errorf("an endpoint, one of %d, got %d of its tenant's %d", endpoints, counts[l], of[l.tenant])
				}
			}
		})
	}
}

// backlog makes so many deliveries of the lane that wait for their first attempt, one for
// each millisecond up to now.
func (k *stack) backlog(l lane, n int) {
	k.t.Helper()
	const made = `
with made as (
	select e, date_trunc('milliseconds', now()) - e * interval '1 ms' as created_at, gen_random_uuid() as event_id
	from generate_series($3::integer, 1, -1) e),
told as (
	insert into events (tenant_id, event_id, name, created_at, position, body)
	select $1, event_id, 'partner.created', created_at, 1000000 - e, '{}' from made)
insert into pending (tenant_id, endpoint_id, delivery_id, created_at, event_id, name)
select $1, $2, (lpad(to_hex((extract(epoch from created_at) * 1000)::bigint), 12, '0') || '7000' || '8000' || lpad(to_hex(e), 12, '0'))::uuid,
	created_at, event_id, 'partner.created' from made`
	k.exec(made, l.tenant, l.endpoint, n)
	k.exec("analyze pending")
}

// One endpoint has a backlog of which nothing ever ends.
func TestABacklogOfOneThatHangsDelaysNobody(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, other := k.member(uuid.New()), k.member(uuid.New())
	release := make(chan struct{})
	defer close(release)
	hanging := newInbox(t, func(http.ResponseWriter, *http.Request) { <-release })
	healthy := newInbox(t, nil)
	config := lenient
	config.Timeout, config.Lease = time.Minute, time.Hour
	s := k.service(config)
	k.register(s, who, hanging.URL, "*")
	const waiting = 100_000
	k.backlog(laneOf(t, k), waiting)
	k.run(s.Run)
	testkit.Eventually(t, soon, "it has all the slots that it may have", func() bool { return hanging.count() == perEndpoint })

	k.register(s, who, healthy.URL, "*")
	k.register(s, other, healthy.URL, "*")
	var flowing []event.Sealed
	for range 10 {
		batch := append(joinedMany(t, who.tenant, 50), joinedMany(t, other.tenant, 50)...)
		k.fanOut(s, batch...)
		flowing = append(flowing, batch...)
	}
	testkit.Eventually(t, soon, "the others have all", func() bool { return k.inState(stateDelivered) == len(flowing) })
	healthy.mustHaveOnce(t, flowing...)
	if n := hanging.count(); n != perEndpoint {
		t.Errorf("%d are in flight to the one that hangs, want %d", n, perEndpoint)
	}
	if n := k.pending(); n != waiting+len(flowing)/2 { // those of the same tenant went to it too
		t.Errorf("%d are pending", n)
	}
}

// blocksOf is how many blocks of 8 KiB PostgreSQL looks at for a statement under the
// service's own settings. What the statement changes is undone.
func (k *stack) blocksOf(statement string, args ...any) (blocks int) {
	k.t.Helper()
	conn, err := pgx.Connect(k.t.Context(), k.url)
	if err != nil {
		k.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(k.t.Context()))
	if _, err := conn.Exec(k.t.Context(), "begin"); err != nil {
		k.t.Fatal(err)
	}
	if _, err := conn.Exec(k.t.Context(), postgres.PlanOnce); err != nil {
		k.t.Fatal(err)
	}
	// The first time fills what PostgreSQL remembers of the tables.
	for range 2 {
		var text string
		if _, err := conn.Exec(k.t.Context(), "savepoint here"); err != nil {
			k.t.Fatal(err)
		}
		if err := conn.QueryRow(k.t.Context(), "explain (analyze, buffers, format json) "+statement, args...).Scan(&text); err != nil {
			k.t.Fatal(err)
		}
		if _, err := conn.Exec(k.t.Context(), "rollback to here"); err != nil {
			k.t.Fatal(err)
		}
		var plans []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&plans); err != nil {
			k.t.Fatal(err)
		}
		blocks = plans[0].Plan.Hit + plans[0].Plan.Read
	}
	return blocks
}

func TestWhatAClaimAndASweepReadDoesNotGrowWithTheBacklog(t *testing.T) {
	t.Parallel()
	const few, many = 100, 200_000
	// read is what each statement reads while so much waits for a first or another attempt.
	read := func(waiting int, again bool) map[string]int {
		k := newStack(t)
		who := k.member(uuid.New())
		s := k.service(lenient)
		k.register(s, who, "https://example.com/", "*")
		l := laneOf(t, k)
		k.backlog(l, waiting)
		if again {
			k.allow(wire{EndpointID: l.endpoint.String()}, 20)
			k.exec("update pending set attempts = 1, due_at = created_at")
			k.fanOut(s, joinedMany(t, who.tenant, 32)...)
			k.exec("vacuum analyze pending")
		}
		since := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
		tenants, endpoints, slots := columnsOf([]grant{{l, 32, 1, since}})
		return map[string]int{
			"claim":       k.blocksOf(claimStatement, tenants, endpoints, slots, uuid.New(), since, []uuid.UUID{firstDeliveryID(since)}),
			"claim again": k.blocksOf(claimAgainStatement, tenants, endpoints, slots, uuid.New()),
			"waiting":     k.blocksOf(waitingQuery),
			"due":         k.blocksOf(dueQuery),
			"outdated":    k.blocksOf(endOutdatedStatement, longAgo, firstDeliveryID(longAgo), time.Hour, skipAtOnce),
			"expire":      k.blocksOf(expireStatement, time.Hour, expireAtOnce),
		}
	}
	for name, again := range map[string]bool{"of first attempts": false, "of retries": true} {
		t.Run(name, func(t *testing.T) {
			little, much := read(few, again), read(many, again)
			for statement, blocks := range much {
				// An index of so many rows is a level or two deeper, which each row looked up pays.
				if blocks > 2*little[statement]+200 {
					t.Errorf("%s reads %d blocks beside %d, and %d beside %d", statement, blocks, many, little[statement], few)
				}
			}
			t.Logf("blocks read beside %d: %v, beside %d: %v", few, little, many, much)
		})
	}
}
