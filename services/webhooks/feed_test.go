package webhooks

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
)

const eventsPath = "/api/v1/events"

// wireFeed is a piece of the feed as a caller reads it.
type wireFeed struct {
	Data       []json.RawMessage
	NextCursor *string `json:"next_cursor"`
	Position   int64
}

// ids are the events of the piece.
func (f wireFeed) ids(t *testing.T) (ids []string) {
	t.Helper()
	for _, raw := range f.Data {
		e, err := event.Open(raw)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID.String())
	}
	return ids
}

// feed asks for one piece.
func (k *stack) feed(s *Service, who member, query string) (piece wireFeed) {
	k.t.Helper()
	k.ask(s, who, "GET", eventsPath+query, "").must(200, &piece)
	return piece
}

// follow reads the feed from the beginning until a piece is empty.
func (k *stack) follow(s *Service, who member, query string) (ids []string) {
	k.t.Helper()
	next := ""
	for {
		piece := k.feed(s, who, "?"+query+next)
		if len(piece.Data) == 0 {
			return ids
		}
		ids = append(ids, piece.ids(k.t)...)
		next = "&after=" + *piece.NextCursor
	}
}

func idsOf(events []event.Sealed) (ids []string) {
	for _, e := range events {
		ids = append(ids, e.ID.String())
	}
	return ids
}

func TestTheFeedTellsEveryEventInItsOrderByteForByte(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who, stranger := k.member(uuid.New()), k.member(uuid.New())
	s := k.service(lenient)
	if piece := k.feed(s, who, ""); len(piece.Data) != 0 || piece.NextCursor != nil || piece.Position != 0 {
		t.Errorf("before anything has happened: %+v", piece)
	}
	var events []event.Sealed
	for i := range 30 { // whatever their times are, they stand in the order in which they were heard of
		e := joined(t, who.tenant, time.Now().Add(-time.Duration(rand.IntN(1000))*time.Minute))
		if i%3 == 0 {
			e = sold(t, who.tenant, e.CreatedAt)
		}
		k.fanOut(s, e)
		events = append(events, e)
	}
	for _, limit := range []string{"1", "7", "30", "100"} {
		if got := k.follow(s, who, "limit="+limit); !slices.Equal(got, idsOf(events)) {
			t.Errorf("in pieces of %s: %v, want %v", limit, got, idsOf(events))
		}
	}
	answer := k.ask(s, who, "GET", eventsPath+"?limit=100", "")
	var bodies [][]byte
	for _, e := range events {
		bodies = append(bodies, e.Body)
	}
	if !bytes.Contains(answer.Body.Bytes(), bytes.Join(bodies, []byte(","))) {
		t.Errorf("the envelopes are not told byte for byte: %s", answer.Body)
	}
	for i := 0; i < len(events)-1; i++ {
		piece := k.feed(s, who, "?limit=1&after="+events[i].ID.String())
		if piece.Position != int64(i+2) || *piece.NextCursor != events[i+1].ID.String() {
			t.Errorf("after event %d: position %d, cursor %s", i+1, piece.Position, *piece.NextCursor)
		}
	}
	if ids := k.follow(s, stranger, "limit=100"); len(ids) != 0 {
		t.Errorf("a stranger reads %v", ids)
	}
	k.ask(s, stranger, "GET", eventsPath+"?after="+events[0].ID.String(), "").refused(400, "invalid_parameter")
}

func TestTheFeedOfSomeEventsGoesOnFromWhatIsNew(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	var sales []event.Sealed
	var newest event.Sealed
	for i := range 40 {
		newest = joined(t, who.tenant, time.Now())
		if i%7 == 0 {
			sale := sold(t, who.tenant, time.Now())
			k.fanOut(s, sale)
			sales = append(sales, sale)
		}
		k.fanOut(s, newest)
	}
	if got := k.follow(s, who, "limit=2&types=sale.recorded,goal.reached"); !slices.Equal(got, idsOf(sales)) {
		t.Errorf("sales are %v, want %v", got, idsOf(sales))
	}
	if got := k.follow(s, who, "limit=9&types=sale.recorded,partner.created"); !slices.Equal(got, k.follow(s, who, "limit=100")) {
		t.Errorf("of both kinds %v is told", got)
	}
	rare := k.feed(s, who, "?types=goal.reached")
	if len(rare.Data) != 0 || *rare.NextCursor != newest.ID.String() || rare.Position != 46 {
		t.Errorf("of what has never happened: %+v, want the place of the newest event", rare)
	}
}

func TestAFeedIsAskedForRightly(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	for _, query := range []string{
		"?after=", "?after=x", "?after=evt_1", "?after=" + event.IDOf("a", "b").String(), "?types=", "?types=sale", "?types=sale.recorded,", "?types=partner.changed",
		"?types=*", "?wait=-1", "?wait=31", "?wait=x", "?wait=1.5", "?wait=300", "?limit=0", "?limit=101", "?cursor=x",
	} {
		k.ask(s, who, "GET", eventsPath+query, "").refused(400, "invalid_parameter")
	}
	everyKind := eventsPath + "?types=" + strings.Join(deliverable, ",")
	k.ask(s, who, "GET", everyKind, "").must(200, nil)
}

func TestAReaderBehindRetentionIsToldSo(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	old := joined(t, who.tenant, time.Now().AddDate(0, 0, -25))
	fresh := joined(t, who.tenant, time.Now())
	k.fanOut(s, old)
	k.fanOut(s, fresh)
	if piece := k.feed(s, who, "?after="+old.ID.String()); !slices.Equal(piece.ids(t), []string{fresh.ID.String()}) {
		t.Errorf("after what is 25 days old: %v", piece.ids(t))
	}
	k.dropIn(10) // the older one is 35 days old then
	k.ask(s, who, "GET", eventsPath+"?after="+old.ID.String(), "").refused(410, "cursor_expired")
	if got := k.follow(s, who, "limit=1"); !slices.Equal(got, []string{fresh.ID.String()}) {
		t.Errorf("from the beginning: %v", got)
	}
	k.dropIn(60) // and now nothing is left
	if piece := k.feed(s, who, "?after="+fresh.ID.String()); len(piece.Data) != 0 || piece.Position != 2 || *piece.NextCursor != fresh.ID.String() {
		t.Errorf("a reader of all is at %+v though it has missed nothing", piece)
	}
	k.ask(s, who, "GET", eventsPath+"?after="+old.ID.String(), "").refused(410, "cursor_expired")
}

// dropIn drops what is too old so many days from now.
func (k *stack) dropIn(days int) {
	k.t.Helper()
	if _, err := postgres.DropPartitions(k.t.Context(), k.pool, Migrations[len(Migrations)-1].Partitions, time.Now().AddDate(0, 0, days)); err != nil {
		k.t.Fatal(err)
	}
}

func TestADayThatIsHeldBackLeavesNoHoleInTheFeed(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	var events []event.Sealed
	for _, ago := range []int{25, 24, 0} {
		events = append(events, joined(t, who.tenant, time.Now().AddDate(0, 0, -ago)))
	}
	k.fanOut(s, events...)
	k.exec("insert into pending (tenant_id, endpoint_id, delivery_id, created_at, event_id, name) values ($1, $1, $1, $2, $1, 'x')", uuid.New(), events[0].CreatedAt)
	k.dropIn(10) // the first two are too old then
	if got := k.follow(s, who, "limit=1"); !slices.Equal(got, idsOf(events)) {
		t.Errorf("while the oldest is held back %v is read, want all", got)
	}
}

func TestAReaderIsNeverLedOverWhatIsGone(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	var events []event.Sealed
	for _, ago := range []int{5, 20, 5, 5, 20, 5, 5} { // what is 20 days old was heard of late
		events = append(events, joined(t, who.tenant, time.Now().AddDate(0, 0, -ago)))
		k.fanOut(s, events[len(events)-1])
	}
	after := func(i int) string { return "?after=" + events[i].ID.String() }
	k.ask(s, who, "GET", eventsPath+"?after="+event.IDOf("a", "b").String(), "").refused(400, "invalid_parameter")
	k.dropIn(13)

	if piece := k.feed(s, who, after(2)); !slices.Equal(piece.ids(t), idsOf(events[3:4])) || piece.Position != 4 || *piece.NextCursor != events[3].ID.String() {
		t.Errorf("before a gap: %v up to %d", piece.ids(t), piece.Position)
	}
	for _, i := range []int{0, 1, 3, 4} { // something after these is gone
		k.ask(s, who, "GET", eventsPath+after(i), "").refused(410, "cursor_expired")
	}
	if got := k.follow(s, who, "limit=1"); !slices.Equal(got, idsOf(events[5:])) {
		t.Errorf("from the beginning: %v, want all after the last gap", got)
	}
	if piece := k.feed(s, who, after(5)); !slices.Equal(piece.ids(t), idsOf(events[6:])) {
		t.Errorf("after a gap: %v", piece.ids(t))
	}
	k.fanOut(s, joined(t, who.tenant, time.Now().AddDate(0, 0, -16)))
	k.dropIn(17) // now the newest is gone
	k.ask(s, who, "GET", eventsPath+after(6), "").refused(410, "cursor_expired")
	if piece := k.feed(s, who, ""); len(piece.Data) != 0 || piece.Position != 8 {
		t.Errorf("where the newest is gone: %v up to %d", piece.ids(t), piece.Position)
	}
}

func TestAReaderOfAllGoesOnAfterASilenceThatOutlastsRetention(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	before, last := joined(t, who.tenant, time.Now().AddDate(0, 0, -26)), joined(t, who.tenant, time.Now().AddDate(0, 0, -25))
	k.fanOut(s, before, last)
	k.dropIn(10)
	next := make(chan answer)
	go func() { next <- k.ask(s, who, "GET", eventsPath+"?wait=30&after="+last.ID.String(), "") }()
	testkit.Eventually(t, soon, "a reader waits", func() bool {
		s.watch.mu.Lock()
		defer s.watch.mu.Unlock()
		return len(s.watch.readers) == 1
	})
	var events []event.Sealed
	for range 3 {
		events = append(events, joined(t, who.tenant, time.Now()))
		k.fanOut(s, events[len(events)-1])
	}
	if answer := <-next; answer.Code != 200 {
		t.Errorf("who waited for it is answered %d %s", answer.Code, answer.Body)
	}
	for _, query := range []string{"", "&types=partner.created"} {
		if piece := k.feed(s, who, "?after="+last.ID.String()+query); !slices.Equal(piece.ids(t), idsOf(events)) {
			t.Errorf("%s: after the silence %v is read", query, piece.ids(t))
		}
	}
	k.ask(s, who, "GET", eventsPath+"?after="+before.ID.String(), "").refused(410, "cursor_expired")
	k.dropIn(60)
	for _, query := range []string{"", "&types=partner.created"} {
		k.ask(s, who, "GET", eventsPath+"?after="+last.ID.String()+query, "").refused(410, "cursor_expired")
	}
}

// However many tell events to however many instances, all readers see the same events in
// the same order: each once, none after one that came later, and all in the end.
func TestReadersOfTheFeedMissNothingWhileManyWrite(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	other := uuid.New()
	instances := []*Service{k.service(lenient), k.service(lenient)}
	const writers, batches = 8, 15
	var written, reading sync.WaitGroup
	var mu sync.Mutex
	var all []string
	done := make(chan struct{})
	for w := range writers {
		written.Go(func() {
			for range batches {
				batch := append(joinedMany(t, who.tenant, 1+rand.IntN(4)), joinedMany(t, other, 2)...)
				batch = append(batch, sold(t, who.tenant, time.Now().Add(-time.Duration(rand.IntN(100))*time.Hour)))
				mine := slices.DeleteFunc(slices.Clone(batch), func(e event.Sealed) bool { return e.TenantID != who.tenant })
				mu.Lock()
				all = append(all, idsOf(mine)...)
				mu.Unlock()
				for _, s := range []*Service{instances[w%2], instances[(w+1)%2]} { // each batch comes twice
					if err := s.tell(t.Context(), slices.Clone(batch)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	seen := make([][]string, 4)
	sales := make([][]string, len(seen))
	for r := range seen {
		reading.Go(func() {
			seen[r] = k.tail(instances[r%2], who, "limit="+[]string{"1", "3", "25", "100"}[r], done)
			sales[r] = k.tail(instances[r%2], who, "types=sale.recorded&limit=5", done)
		})
	}
	written.Wait()
	close(done)
	reading.Wait()

	slices.Sort(all)
	for r, got := range seen {
		if !slices.Equal(got, seen[0]) {
			t.Errorf("reader %d sees another order than the first", r)
		}
		if !slices.Equal(sales[r], sales[0]) || len(sales[r]) != writers*batches {
			t.Errorf("reader %d sees %d sales, want %d", r, len(sales[r]), writers*batches)
		}
	}
	if sorted := slices.Sorted(slices.Values(seen[0])); !slices.Equal(sorted, all) {
		t.Errorf("%d events are seen, want %d, each once", len(sorted), len(all))
	}
}

// tail reads the feed until done is closed and nothing more is to be told.
func (k *stack) tail(s *Service, who member, query string, done <-chan struct{}) (ids []string) {
	next, position := "", int64(0)
	for {
		ended := false
		select {
		case <-done:
			ended = true
		default:
		}
		var piece wireFeed
		answer := k.ask(s, who, "GET", eventsPath+"?"+query+next, "")
		if err := json.Unmarshal(answer.Body.Bytes(), &piece); err != nil || answer.Code != 200 {
			k.t.Errorf("%d %s", answer.Code, answer.Body)
			return ids
		}
		if piece.Position < position || !strings.Contains(query, "types") && piece.Position != position+int64(len(piece.Data)) {
			k.t.Errorf("from position %d to %d with %d events", position, piece.Position, len(piece.Data))
		}
		position = piece.Position
		if piece.NextCursor != nil {
			next = "&after=" + *piece.NextCursor
		}
		for _, raw := range piece.Data {
			e, err := event.Open(raw)
			if err != nil {
				k.t.Error(err)
				return ids
			}
			ids = append(ids, e.ID.String())
		}
		if ended && len(piece.Data) == 0 {
			return ids
		}
	}
}
