package goals_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/testkit"
	"partilha.dev/pkg/web"
	"partilha.dev/services/goals"
)

// stream is one stream as its caller sees it.
type stream struct {
	t      *testing.T
	leave  func()
	status int
	lines  chan string // closed at the end of the stream
	lastID string
	resets int
	state  map[string]int // progress by partner, made of the events alone
}

// listen follows a goal on a server, from an id or "" for the beginning.
func listen(t *testing.T, url string, shop tenant, goalID, from string) *stream {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/api/v1/goals/"+goalID+"/progress/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+shop.key)
	if from != "" {
		r.Header.Set("Last-Event-ID", from)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{t: t, leave: leave, status: answer.StatusCode, lines: make(chan string), lastID: from, state: map[string]int{}}
	go func() {
		defer close(s.lines)
		defer answer.Body.Close()
		for body := bufio.NewScanner(answer.Body); body.Scan(); {
			select {
			case s.lines <- body.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}

// next takes one block of lines and returns its event, "" for one without; false at the
// end of the stream.
func (s *stream) next() (event string, more bool) {
	s.t.Helper()
	id, data := "", ""
	for {
		select {
		case line, open := <-s.lines:
			name, value, _ := strings.Cut(line, ": ")
			switch {
			case !open:
				return "", false
			case line == "":
				s.take(event, data)
				if id != "" {
					s.lastID = id
				}
				return event, true
			case name == "id":
				id = value
			case name == "event":
				event = value
			case name == "data":
				data = value
			}
		case <-time.After(patience):
			s.t.Fatal("nothing comes")
		}
	}
}

func (s *stream) take(event, data string) {
	type entry struct {
		Partner  string `json:"partner_id"`
		Progress int    `json:"progress"`
	}
	var page struct {
		Data []entry `json:"data"`
		entry
	}
	if err := json.Unmarshal([]byte(data), &page); data != "" && err != nil {
		s.t.Errorf("%s %s: %v", event, data, err)
	}
	switch event {
	case "reset":
		s.resets++
		clear(s.state)
		for _, e := range page.Data {
			s.state[e.Partner] = e.Progress
		}
	case "progress":
		s.state[page.Partner] = page.Progress
	}
}

// until takes events until what has been told fits.
func (s *stream) until(what string, fits func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !fits(); {
		if _, more := s.next(); !more || time.Now().After(deadline) {
			s.t.Fatalf("the stream goes on %t, and not %s; it has told %v", more, what, s.state)
		}
	}
}

// silent fails where something comes within four looks.
func (s *stream) silent(while string) {
	s.t.Helper()
	select {
	case line := <-s.lines:
		s.t.Errorf("%s it tells %s", while, line)
	case <-time.After(time.Second):
	}
}

// begun takes the reset with which a stream begins.
func (s *stream) begun() *stream {
	s.t.Helper()
	s.until("it has begun", func() bool { return s.resets == 1 })
	return s
}

// replica runs a further service and returns where it answers.
func (w *world) replica() string {
	w.t.Helper()
	w.run()
	server := httptest.NewServer(w.handler)
	w.t.Cleanup(server.Close)
	return server.URL
}

func (w *world) count(table string) string {
	return w.rows(`select count(*)::text from ` + table)[0]
}

func TestASaleReachesWhoeverListensOnWhicheverReplica(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	urls := []string{w.replica(), w.replica()}
	id := w.goal(shop, "")
	partners := ids(2)
	soon := time.Now().Add(time.Minute)
	w.sell(sale(shop, partners[0], soon))
	if n := w.count("changes"); n != "0" {
		t.Errorf("nobody listens, and %s changes were written down", n)
	}
	var streams []*stream
	for _, url := range urls {
		s := listen(t, url, shop, id, "").begun()
		if want := map[string]int{partners[0].String(): 1}; !maps.Equal(s.state, want) {
			t.Errorf("it begins with %v, want %v", s.state, want)
		}
		streams = append(streams, s)
	}
	w.publish(w.seal(sale(shop, partners[0], soon), sale(shop, partners[1], soon)))
	want := map[string]int{partners[0].String(): 2, partners[1].String(): 1}
	for _, s := range streams {
		s.until("both sales are told", func() bool { return maps.Equal(s.state, want) })
		if s.resets != 1 {
			t.Error("a sale is told by a reset")
		}
	}
	if n := w.count("changes"); n == "0" {
		t.Error("somebody listens, and nothing was written down: the check above shows nothing")
	}
}

func TestWhoComesAgainHasMissedNothingWhileTwoReplicasCount(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	urls := []string{w.replica(), w.replica()}
	id := w.goal(shop, "")
	partners := ids(30)
	soon := time.Now().Add(time.Minute)
	s := listen(t, urls[0], shop, id, "").begun()
	const sales = 600
	want := map[string]int{}
	var batches [][]int
	for n := 0; n < sales; {
		var batch []int
		for range 1 + rand.IntN(20) {
			who := rand.IntN(len(partners))
			want[partners[who].String()]++
			batch = append(batch, who)
			n++
		}
		batches = append(batches, batch)
	}
	go func() {
		for _, batch := range batches {
			for _, who := range batch {
				w.publish(w.seal(sale(shop, partners[who], soon)))
			}
		}
	}()
	for round := 0; !maps.Equal(s.state, want); round++ {
		s.until("all is told", func() bool { return maps.Equal(s.state, want) || rand.IntN(40) == 0 })
		if s.leave(); round > 0 && s.resets > 0 {
			t.Fatalf("what was told up to %s is forgotten already", s.lastID)
		}
		again := listen(t, urls[round%2], shop, id, s.lastID)
		again.state, s = s.state, again
	}
}

func TestAChangeThatCommitsLateIsToldAllTheSame(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	url := w.replica()
	id := w.goal(shop, "")
	partners := ids(3)
	count := func(partner uuid.UUID) (commit func()) {
		tx, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // where the test has failed: its pool waits for it
		if _, err := tx.Exec(t.Context(), `insert into facts
			(tenant_id, occurred_at, kind, source_id, partner_id, campaign_id, sales, amount_centavos, commission_centavos, conversions)
			values ($1, now(), 'sale', $2, $3, $2, 1, 1, 0, 0)`, shop.id, uuid.New(), partner); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), goals.AddToTotalsStatement, []uuid.UUID{shop.id}, []string{id}, []uuid.UUID{partner},
			w.moments(`select starts_at from goals`), []*time.Time{nil}, []int64{1}); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := tx.Commit(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	unaware := count(partners[0]) // does not know that somebody is about to listen
	s := listen(t, url, shop, id, "")
	testkit.Eventually(t, patience, "the goal is listened to", func() bool {
		return len(w.rows(`select goal_id::text from listened where since is not null`)) == 1
	})
	s.silent("while somebody counts who does not know that it listens")
	unaware()
	if s.begun(); s.state[partners[0].String()] != 1 {
		t.Errorf("it begins with %v: what was counted meanwhile is missing", s.state)
	}
	late := count(partners[1])
	count(partners[2])()
	s.silent("while an older transaction is under way")
	late()
	s.until("both are told", func() bool { return s.state[partners[1].String()] == 1 && s.state[partners[2].String()] == 1 })
}

func TestWhoComesAgainTooLateIsToldHowThingsStand(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	url := w.replica()
	id := w.goal(shop, "")
	partners := ids(2)
	soon := time.Now().Add(time.Minute)
	s := listen(t, url, shop, id, "").begun()
	first := s.lastID
	w.publish(w.seal(sale(shop, partners[0], soon)))
	s.until("the sale is told", func() bool { return s.state[partners[0].String()] == 1 })
	again := listen(t, url, shop, id, first)
	again.until("the sale is told again", func() bool { return again.state[partners[0].String()] == 1 })
	if again.resets > 0 {
		t.Error("in time, and yet told how things stand")
	}

	w.exec(`update changes set changed_at = now() - interval '3 minutes'`)
	if err := goals.Forget(t.Context(), w.pool); err != nil {
		t.Fatal(err)
	}
	if n := w.count("changes"); n != "0" {
		t.Errorf("%s old changes remain", n)
	}
	for name, from := range map[string]string{"too old": first, "a number": "1", "no id": "x", "changed": s.lastID[:len(s.lastID)-4] + "AAAA"} {
		late := listen(t, url, shop, id, from).begun()
		if late.state[partners[0].String()] != 1 {
			t.Errorf("%s: it begins with %v", name, late.state)
		}
	}
	w.exec(`update listened set until = now() - interval '1 second'`)
	if err := goals.Forget(t.Context(), w.pool); err != nil {
		t.Fatal(err)
	}
	w.publish(w.seal(sale(shop, partners[1], soon)))
	s.until("what was counted while nothing was written down is told", func() bool { return s.state[partners[1].String()] == 1 })
}

// The database was restored into a server whose transactions begin anew.
func TestWhoListensAfterARestoreIsTold(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	url := w.replica()
	id := w.goal(shop, "")
	w.exec(`insert into listened select tenant_id, goal_id, now() - interval '1 hour', 900000000000 from goals`)
	s := listen(t, url, shop, id, "899999999999").begun()
	partner := uuid.New()
	w.publish(w.seal(sale(shop, partner, time.Now().Add(time.Minute))))
	s.until("the sale is told", func() bool { return s.state[partner.String()] == 1 })
}

// Else two replicas, each with a row that the other one wants, would wait for each other.
func TestReplicasThatBeginToListenTakeTheGoalsInOneOrder(t *testing.T) {
	w := newWorld(t)
	tenants, asked := []uuid.UUID{{1}, {1}}, []uuid.UUID{{2}, {1}}
	w.exec(`insert into listened (tenant_id, goal_id, until) select *, now() from unnest($1::uuid[], $2::uuid[])`, tenants, asked)
	other, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(context.Background()) }()
	if _, err := other.Exec(t.Context(), `select from listened where goal_id = $1 for update`, asked[0]); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.pool.Exec(t.Context(), goals.SinceStatement, pgx.NamedArgs{"tenants": tenants, "goals": asked})
		done <- err
	}()
	testkit.Eventually(t, patience, "it waits for the last goal", func() bool {
		return len(w.rows(`select pid::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)) == 1
	})
	if free := w.rows(`select goal_id::text from listened for update skip locked`); len(free) > 0 {
		t.Errorf("while it waits it does not have %v, which comes first", free)
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := w.rows(`select count(since)::text from listened`)[0]; n != "2" {
		t.Errorf("%s goals are listened to", n)
	}
}

func TestAnIDTellsNothingAndIsOfItsGoalAlone(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	url := w.replica()
	id := w.goal(shop, "")
	s := listen(t, url, shop, id, "").begun()
	if raw, err := base64.RawURLEncoding.DecodeString(s.lastID); err != nil || len(raw) != 40 { // a key's name, a nonce, a horizon and a tag
		t.Errorf("%s is %d bytes, %v", s.lastID, len(raw), err)
	}
	service, goal := w.serve(), uuid.New()
	sealed := service.StreamID(shop.id, goal, 81520)
	if again := service.StreamID(shop.id, goal, 81520); again == sealed {
		t.Errorf("it is %s twice, which shows that nobody has done anything meanwhile", again)
	}
	if at := service.Horizon(shop.id, goal, sealed); at == nil || *at != 81520 {
		t.Errorf("for its own goal it stands for %v", at)
	}
	if at := service.Horizon(shop.id, uuid.New(), sealed); at != nil {
		t.Errorf("for another goal it stands for %d", *at)
	}
	if at := service.Horizon(other.id, goal, sealed); at != nil {
		t.Errorf("for another tenant it stands for %d", *at)
	}
}

func TestATenantListensToSoManyStreamsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.limiter = web.NewLimiter(web.Limits{PerSecond: 1000, Burst: 1000, InFlight: 1, Listeners: 2, FailuresPerSecond: 1, FailureBurst: 1})
	shop, other := w.tenant(), w.tenant()
	url := w.replica()
	id, others := w.goal(shop, ""), w.goal(other, "")
	one := listen(t, url, shop, id, "").begun()
	listen(t, url, shop, id, "").begun()
	if a := w.call(shop, "GET", "/api/v1/goals/"+id+"/progress/stream", ""); a.status != 429 || a.body["code"] != "rate_limited" {
		t.Errorf("a third: %d %s", a.status, a.raw)
	}
	if a := w.call(shop, "GET", "/api/v1/goals/"+id+"/progress", ""); a.status != 200 {
		t.Errorf("another call of the tenant: %d %s", a.status, a.raw)
	}
	listen(t, url, other, others, "").begun()
	one.leave()
	testkit.Eventually(t, patience, "there is room again", func() bool {
		again := listen(t, url, shop, id, "")
		return again.status == 200
	})
}

func TestAStreamEndsWithItsKeyAndWithTheService(t *testing.T) {
	w := newWorld(t)
	shop, short := w.tenant(), w.tenant()
	w.exec(`update known_keys set expires_at = now() + interval '1 hour' where tenant_id = $1`, short.id)
	w.run()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, drain := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ctx, listener, w.handler) }()
	url := "http://" + listener.Addr().String()
	lasting, ending := listen(t, url, shop, w.goal(shop, ""), "").begun(), listen(t, url, short, w.goal(short, ""), "").begun()

	w.ahead.Store(int64(2 * time.Hour))
	for more := true; more; {
		_, more = ending.next()
	}
	drain()
	for more := true; more; {
		_, more = lasting.next()
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

func TestAStreamOfWhatIsNotThereIsNotFound(t *testing.T) {
	w := newWorld(t)
	shop, other := w.tenant(), w.tenant()
	w.run()
	id := w.goal(shop, "")
	for _, path := range []string{id, uuid.NewString()} {
		if a := w.call(other, "GET", "/api/v1/goals/"+path+"/progress/stream", ""); a.status != 404 {
			t.Errorf("%d %s", a.status, a.raw)
		}
	}
	if n := w.count("listened"); n != "0" {
		t.Errorf("%s goals are listened to", n)
	}
}

func TestAGoalThatIsGoneEndsItsStreams(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	url := w.replica()
	id := w.goal(shop, "")
	s := listen(t, url, shop, id, "").begun()
	if a := w.call(shop, "DELETE", "/api/v1/goals/"+id, ""); a.status != 204 {
		t.Fatalf("delete: %d %s", a.status, a.raw)
	}
	deleted := time.Now()
	for more := true; more; {
		_, more = s.next()
	}
	if took := time.Since(deleted); took > 10*time.Second {
		t.Errorf("they end %s after it was deleted", took)
	}
}

// move has the first partners of the only goal come to a progress, in one transaction and
// as counting would.
func (w *world) move(partners, progress int) {
	w.t.Helper()
	w.exec(`with t as (
		insert into totals (tenant_id, goal_id, partner_id, period_start, progress)
		select tenant_id, goal_id, lpad(to_hex(n), 32, '0')::uuid, starts_at, $2 from goals, generate_series(1, $1::int) as n
		on conflict (tenant_id, goal_id, partner_id, period_start) do update set progress = excluded.progress returning *)
		insert into changes select tenant_id, goal_id, pg_current_xact_id()::text::bigint, partner_id, period_start, now() from t`, partners, progress)
}

func TestOfTooManyChangesOnlyHowThingsStandIsTold(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	url := w.replica()
	id := w.goal(shop, "")
	s := listen(t, url, shop, id, "").begun()
	before := s.lastID
	w.move(2001, 7)
	s.until("it is told how things stand", func() bool { return s.resets == 2 })
	if len(s.state) != 100 {
		t.Errorf("%d rows are told, want the first 100", len(s.state))
	}
	again := listen(t, url, shop, id, before)
	again.until("whoever comes again is told the same", func() bool { return again.resets == 1 })
	if len(again.state) != 100 {
		t.Errorf("%d rows are told after the reset, want the first 100", len(again.state))
	}
}

func TestWhatIsCaughtUpWithHasAnIdOnceItIsWhole(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	url := w.replica()
	id := w.goal(shop, "")
	s := listen(t, url, shop, id, "").begun()
	before := s.lastID
	w.move(700, 7)
	s.until("all is told", func() bool { return len(s.state) == 700 && s.lastID != before })
	again := listen(t, url, shop, id, before)
	for again.lastID == before {
		if event, more := again.next(); !more || event == "reset" {
			t.Fatalf("it goes on %t with %q", more, event)
		}
	}
	if len(again.state) != 700 {
		t.Errorf("with the first id %d rows have been told, want 700", len(again.state))
	}
}

func TestAStreamShowsTheGoalAsItHasBeenChanged(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	url := w.replica()
	id := w.goal(shop, "")
	s := listen(t, url, shop, id, "").begun()
	w.change(shop, id, `"ends_at":"2999-01-01T00:00:00Z"`)
	w.exec(`delete from listened`) // which has it renewed at once
	s.until("it is told how things stand", func() bool { return s.resets == 2 })
	w.publish(w.seal(sale(shop, uuid.New(), time.Now().Add(time.Minute))))
	for more := true; more; {
		line, open := <-s.lines
		if more = open && !strings.HasPrefix(line, "data: "); !more && !strings.Contains(line, `"period_end":"2999-01-01T00:00:00Z"`) {
			t.Errorf("after its end was set it tells %s", line)
		}
	}
}

func TestManyChangesAtOnceAreToldWhole(t *testing.T) {
	w := newWorld(t)
	shop := w.tenant()
	url := w.replica()
	id := w.goal(shop, "")
	s := listen(t, url, shop, id, "").begun()
	for _, n := range []int{500, 2000} { // as many as are read at once; as many as are told one by one
		w.move(n, n)
		s.until(fmt.Sprintf("%d changes are told", n), func() bool {
			told := 0
			for _, progress := range s.state {
				if progress == n {
					told++
				}
			}
			return told == n
		})
	}
	if s.resets != 1 {
		t.Error("they are told by a reset")
	}
}
