package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

// wireReplay is a replay as a caller reads it.
type wireReplay struct {
	ReplayID string `json:"replay_id"`
	Status   string
	Statuses []string
	Events   []string
	Progress struct{ Done, Total int }
	EndedAt  *string `json:"ended_at"`
}

func replayPath(endpoint string) string { return "/api/v1/webhook-endpoints/" + endpoint + "/replay" }

// replay asks for a replay of the window with more members of the body.
func (k *stack) replay(s *Service, who member, endpoint string, from, to time.Time, more string) (made wireReplay) {
	k.t.Helper()
	k.ask(s, who, "POST", replayPath(endpoint), window(from, to, more)).must(202, &made)
	return made
}

func window(from, to time.Time, more string) string {
	return fmt.Sprintf(`{"from":%q,"to":%q%s}`, from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano), more)
}

// ended waits until a replay has ended.
func (k *stack) ended(s *Service, who member, endpoint, id string) (now wireReplay) {
	k.t.Helper()
	testkit.Eventually(k.t, soon, "the replay has ended", func() bool {
		now = k.readReplay(s, who, endpoint, id)
		return now.Status != replayRunning
	})
	return now
}

func (k *stack) readReplay(s *Service, who member, endpoint, id string) (now wireReplay) {
	k.t.Helper()
	k.ask(s, who, "GET", replayPath(endpoint)+"s/"+id, "").must(200, &now)
	return now
}

// endAll ends everything that is pending, in turn in each state.
func (k *stack) endAll(endpoint string, states ...string) {
	k.t.Helper()
	k.exec(`
		with ended as (delete from pending where endpoint_id = $1 returning *)
		insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state, reason)
		select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state, case when state = 'skipped' then 'disabled' end
		from (select *, ($2::text[])[1 + (row_number() over (order by created_at))::integer % $3] as state from ended) told`, endpoint, states, len(states))
}

func TestAReplaySendsAWindowAgainThatDidNotArrive(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in, elsewhere := newInbox(t, nil), newInbox(t, nil)
	s := k.service(lenient)
	endpoint := k.register(s, who, in.URL, "*", event.NameSaleRecorded).EndpointID
	other := k.register(s, who, elsewhere.URL, "*").EndpointID
	k.exec("update endpoints set created_at = created_at - interval '10 days'")
	start := time.Now().Add(-100 * time.Hour).Truncate(time.Second)
	var events []event.Sealed
	for i := range 100 { // one an hour, each fifth a sale
		e := joined(t, who.tenant, start.Add(time.Duration(i)*time.Hour))
		if i%5 == 0 {
			e = sold(t, who.tenant, e.CreatedAt)
		}
		events = append(events, e)
	}
	k.fanOut(s, events...)
	states := []string{stateDelivered, stateFailed, stateUnknown, stateSkipped}
	k.endAll(endpoint, states...)
	k.endAll(other, stateFailed)
	k.run(s.dispatcher.run, s.replayer.run)
	stateOf := func(i int) string { return states[(i+1)%4] }

	for _, c := range []struct {
		name     string
		more     string
		from, to int
		wants    func(i int) bool
	}{
		{"one kind of event that was skipped", `,"statuses":["skipped"],"events":["sale.recorded"]`, 0, 50, func(i int) bool { return stateOf(i) == stateSkipped && i%5 == 0 }},
		{"whatever did not arrive", "", 50, 90, func(i int) bool { return stateOf(i) != stateDelivered }},
		{"what is delivered now, because it is asked for", `,"statuses":["delivered","failed"]`, 50, 60, func(int) bool { return true }},
		{"what is left", `,"statuses":null`, 0, 100, func(i int) bool {
			return stateOf(i) != stateDelivered && (i >= 90 || i < 50 && !(stateOf(i) == stateSkipped && i%5 == 0))
		}},
		{"nothing, as all is delivered", "", 0, 100, func(int) bool { return false }},
	} {
		var want []string
		for i := c.from; i < c.to; i++ {
			if c.wants(i) {
				want = append(want, events[i].ID.String())
			}
		}
		before := in.count()
		made := k.replay(s, who, endpoint, start.Add(time.Duration(c.from)*time.Hour), start.Add(time.Duration(c.to)*time.Hour), c.more)
		if made.Progress.Total != len(want) || made.Progress.Done != 0 || made.Status != replayRunning || made.EndedAt != nil || (made.Events == nil) == strings.Contains(c.more, "events") {
			t.Errorf("%s: %+v, want %d in all", c.name, made, len(want))
		}
		now := k.ended(s, who, endpoint, made.ReplayID)
		if now.Status != replayDone || now.Progress.Done != len(want) || now.EndedAt == nil {
			t.Errorf("%s: it ends as %+v", c.name, now)
		}
		testkit.Eventually(t, soon, "all of it is sent", func() bool { return k.pending() == 0 })
		var got []string
		for _, p := range in.posts()[before:] {
			e, err := event.Open(p.body)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.ID.String())
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: %d are sent, want %d", c.name, len(got), len(want))
		}
	}
	if elsewhere.count() != 0 {
		t.Error("another endpoint is sent something")
	}
	k.exec("update replays set ended_at = ended_at - interval '40 days' where done = 0")
	if last := k.replay(s, who, endpoint, start, start.Add(time.Hour), ""); k.ended(s, who, endpoint, last.ReplayID).Progress.Done != 0 {
		t.Error("an hour of which all is delivered is sent again")
	}
	if n := k.count("select count(*) from replays"); n != 5 {
		t.Errorf("%d replays are remembered, want 5 without one of long ago", n)
	}
	var page struct{ Data []wireReplay }
	k.ask(s, who, "GET", replayPath(endpoint)+"s?limit=3", "").must(200, &page)
	if len(page.Data) != 3 || page.Data[0].Progress.Done != 0 || !slices.Equal(page.Data[2].Statuses, []string{stateDelivered, stateFailed}) {
		t.Errorf("replays %+v", page.Data)
	}
}

func TestAReplayIsAskedForRightly(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, stranger := k.member(uuid.New()), k.member(uuid.New())
	s := k.service(lenient)
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	now := time.Now()
	whole := window(now.Add(-time.Hour), now, "")
	for _, body := range []string{
		"", "{}", window(now, now, ""), window(now.Add(time.Hour), now.Add(2*time.Hour), ""), window(now, now.Add(-time.Hour), ""), window(now.Add(-time.Hour), now, `,"statuses":[]`),
		window(now.Add(-time.Hour), now, `,"statuses":["pending"]`), window(now.Add(-time.Hour), now, `,"events":["*"]`), window(now.Add(-time.Hour), now, `,"x":1`),
	} {
		k.ask(s, who, "POST", replayPath(endpoint), body).refused(400, "invalid_body")
	}
	mustBeAlike(t, k.ask(s, stranger, "POST", replayPath(endpoint), whole), k.ask(s, stranger, "POST", replayPath(uuid.NewString()), whole))
	mustBeAlike(t, k.ask(s, stranger, "GET", replayPath(endpoint)+"s", ""), k.ask(s, stranger, "GET", replayPath(uuid.NewString())+"s", ""))
	k.ask(s, stranger, "POST", replayPath(endpoint), whole).refused(404, "not_found")

	k.exec("update endpoints set disabled_reason = 'a test'")
	k.ask(s, who, "POST", replayPath(endpoint), whole).refused(422, "rule_violated")
	k.exec("update endpoints set disabled_reason = null")
	var first wireReplay
	for i := range maxReplays {
		made := k.replay(s, who, endpoint, now.Add(-time.Hour), now, "")
		if i == 0 {
			first = made
		}
	}
	k.exec("alter table deliveries rename to hidden") // whoever counts them fails
	k.ask(s, who, "POST", replayPath(endpoint), whole).refused(422, "rule_violated")
	k.exec("alter table hidden rename to deliveries")
	k.ask(s, stranger, "GET", replayPath(endpoint)+"s/"+first.ReplayID, "").refused(404, "not_found")
	k.ask(s, who, "GET", replayPath(uuid.NewString())+"s/"+first.ReplayID, "").refused(404, "not_found")

	k.ask(s, who, "GET", replayPath(endpoint)+"s/"+first.ReplayID, "").must(200, nil)
	k.ask(s, who, "DELETE", "/api/v1/webhook-endpoints/"+endpoint, "").must(204, nil)
	k.ask(s, who, "GET", replayPath(endpoint)+"s", "").refused(404, "not_found")
	k.ask(s, who, "GET", replayPath(endpoint)+"s/"+first.ReplayID, "").refused(404, "not_found")
	if _, err := s.replayer.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := k.count("select count(*) from replays where state = 'stopped'"); n != maxReplays {
		t.Errorf("%d are stopped with their endpoint, want all", n)
	}
}

func TestAReplayStaysAFewAheadOfWhatIsSent(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient) // nothing is sent
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	k.fanOut(s, joinedMany(t, who.tenant, 3*replayAhead)...)
	k.endAll(endpoint, stateFailed)
	k.fanOut(s, joinedMany(t, who.tenant, 10)...)
	made := k.replay(s, who, endpoint, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "")
	for range 3 {
		if _, err := s.replayer.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := k.pending(); n != replayAhead {
			t.Errorf("%d are pending, want %d", n, replayAhead)
		}
	}
	for range 4 {
		k.endAll(endpoint, stateFailed) // what fails again is not sent again by the same replay
		if _, err := s.replayer.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now := k.ended(s, who, endpoint, made.ReplayID)
	if now.Progress.Done != 3*replayAhead+10 || now.Progress.Total != 3*replayAhead {
		t.Errorf("it ends as %+v", now)
	}
}

// An endpoint's filter may have kept millions away that lie between what is sent again.
func TestAReplayGetsOnHoweverLittleOfItsWindowIsWanted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ state, more string }{
		"whatever did not arrive":            {stateFailed, ""},
		"what did":                           {stateDelivered, `,"statuses":["delivered"]`},
		"what did, and what failed":          {stateFailed, `,"statuses":["delivered","failed"]`},
		"one kind of event that was skipped": {stateSkipped, `,"statuses":["skipped"],"events":["sale.recorded"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const atOnce = replayLook * replayAhead
			k := newStack(t)
			who := k.member(uuid.New())
			s := k.service(lenient) // nothing is sent
			endpoint := k.register(s, who, "https://example.com/", event.NameSaleRecorded).EndpointID
			k.exec("update endpoints set created_at = created_at - interval '1 day'")
			k.backlog(laneOf(t, k), 2*atOnce+10)
			k.endAll(endpoint, stateSkipped)
			k.exec("update deliveries set reason = 'filter'")
			k.fanOut(s, sold(t, who.tenant, time.Now()), sold(t, who.tenant, time.Now().Add(-time.Hour)))
			k.endAll(endpoint, row.state)
			made := k.replay(s, who, endpoint, time.Now().Add(-2*time.Hour), time.Now().Add(time.Second), row.more)
			if made.Progress.Total != 2 {
				t.Errorf("it counts %d, want 2", made.Progress.Total)
			}
			for i, want := range []int{1, 1, 2} {
				if now := k.readReplay(s, who, endpoint, made.ReplayID); now.Status != replayRunning {
					t.Errorf("after %d steps it is %+v", i, now)
				}
				if _, err := s.replayer.step(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n := k.pending(); n != want {
					t.Errorf("after %d steps %d are queued, want %d", i+1, n, want)
				}
			}
			if now := k.ended(s, who, endpoint, made.ReplayID); now.Status != replayDone || now.Progress.Done != 2 {
				t.Errorf("it ends as %+v", now)
			}
		})
	}
}

func TestAReplaySendsNothingThatHappensAfterIt(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient) // nothing is sent
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	k.fanOut(s, joinedMany(t, who.tenant, replayAhead+10)...)
	k.endAll(endpoint, stateDelivered)
	made := k.replay(s, who, endpoint, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), `,"statuses":["delivered"]`)
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	for range 2 {
		k.endAll(endpoint, stateDelivered)
		if _, err := s.replayer.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now := k.ended(s, who, endpoint, made.ReplayID)
	if now.Progress.Done != replayAhead+10 || now.Progress.Total != replayAhead+10 {
		t.Errorf("it ends as %+v", now)
	}
}

func TestCountingWhatAReplayIsOfHoldsUpNobody(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	tx, err := k.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "lock table deliveries"); err != nil {
		t.Fatal(err)
	}
	made := make(chan answer)
	go func() {
		made <- k.ask(s, who, "POST", replayPath(endpoint), window(time.Now().Add(-time.Hour), time.Now(), ""))
	}()
	k.untilSomebodyWaitsForALock()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := s.tell(ctx, joinedMany(t, who.tenant, 1)); err != nil {
		t.Errorf("an event of the tenant is held up: %v", err)
	}
	var begun struct{ Progress struct{ Total *int } }
	if (<-made).must(202, &begun); begun.Progress.Total != nil {
		t.Errorf("%d are counted that could not be", *begun.Progress.Total)
	}
}

// untilSomebodyWaitsForALock returns once a statement is held up by another transaction.
func (k *stack) untilSomebodyWaitsForALock() {
	k.t.Helper()
	testkit.Eventually(k.t, soon, "somebody waits for a lock", func() bool {
		return k.count("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") > 0
	})
}

func TestAReplayDoesNotSendWhatHasJustTurnedOutToBeDelivered(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	k.fanOut(s, joinedMany(t, who.tenant, 2)...)
	k.endAll(endpoint, stateUnknown)
	k.replay(s, who, endpoint, time.Now().Add(-time.Hour), time.Now(), "")
	tx, err := k.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "update deliveries set state = 'delivered' where delivery_id = (select min(delivery_id::text)::uuid from deliveries)"); err != nil {
		t.Fatal(err)
	}
	stepped := make(chan error)
	go func() {
		_, err := s.replayer.step(t.Context())
		stepped <- err
	}()
	k.untilSomebodyWaitsForALock()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-stepped; err != nil {
		t.Fatal(err)
	}
	if n := k.pending(); n != 1 || k.inState(stateDelivered) != 1 {
		t.Errorf("%d are queued, want the one that is still unknown", n)
	}
}

func TestNoReplayKeepsOthersFromTheirTurn(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, other := k.member(uuid.New()), k.member(uuid.New())
	s := k.service(lenient)
	endpoint := k.register(s, who, "https://example.com/", "*").EndpointID
	// As many as are looked at at once, of another tenant whose endpoint cannot be written to.
	stuck := k.register(s, other, "https://example.com/", "*").EndpointID
	k.fanOut(s, append(joinedMany(t, who.tenant, 3), joinedMany(t, other.tenant, 3)...)...)
	k.endAll(endpoint, stateFailed)
	k.endAll(stuck, stateFailed)
	k.exec(`insert into replays (tenant_id, replay_id, endpoint_id, from_time, to_time, statuses, filtered, reached, created_at)
		select $1, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, $2, now() - interval '1 hour', now(), '{failed}', false, '00000000-0000-0000-0000-000000000000', now()
		from generate_series(1, $3) n`, other.tenant, stuck, replaysOnce)
	k.exec(fmt.Sprintf("alter table pending add constraint pending_test check (tenant_id <> '%s') not valid", other.tenant))
	made := k.replay(s, who, endpoint, time.Now().Add(-time.Hour), time.Now(), "")
	for range 2 {
		if _, err := s.replayer.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if now := k.ended(s, who, endpoint, made.ReplayID); now.Progress.Done != 3 {
		t.Errorf("it ends as %+v", now)
	}
}

// Whoever is killed in the middle of a replay, it is gone on with: nothing is left out,
// and nothing is sent twice.
func TestAReplayGoesOnAfterItsWorkersAreKilled(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(workerConfig)
	endpoint := k.register(s, who, in.URL, "*").EndpointID
	events := joinedMany(t, who.tenant, 1500)
	k.fanOut(s, events...)
	k.endAll(endpoint, stateFailed)
	made := k.replay(s, who, endpoint, time.Now().Add(-time.Hour), time.Now(), "")
	for reached := 100; reached <= 700; reached += 200 {
		p := startWorker(t, k.url)
		testkit.Eventually(t, soon, "a part is sent", func() bool { return in.count() >= reached })
		p.kill()
	}
	startWorker(t, k.url)
	now := k.ended(s, who, endpoint, made.ReplayID)
	if now.Progress.Done != len(events) {
		t.Errorf("it ends as %+v, want %d", now, len(events))
	}
	testkit.Eventually(t, soon, "nothing is pending", func() bool { return k.pending() == 0 })
	times, missing := in.timesPosted(t), 0
	for _, e := range events {
		switch times[e.ID.String()] {
		case 0:
			missing++
		case 1:
		default:
			t.Errorf("%s was posted %d times", e.ID, times[e.ID.String()])
		}
	}
	if unknown := k.inState(stateUnknown); missing > unknown {
		t.Errorf("%d were never posted and only %d are unknown", missing, unknown)
	}
}
