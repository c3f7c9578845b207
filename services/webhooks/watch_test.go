package webhooks

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"partilha.dev/pkg/testkit"
	"partilha.dev/pkg/web"
)

// asked counts the questions of a watch, and answers them.
type asked struct {
	mu        sync.Mutex
	tops      map[uuid.UUID]int64
	questions int
	most      int // tenants in one question
	fails     bool
}

func (a *asked) answer(_ context.Context, tenants []uuid.UUID) (map[uuid.UUID]int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.questions++
	a.most = max(a.most, len(tenants))
	if a.fails {
		return nil, errors.New("the database is away")
	}
	found := map[uuid.UUID]int64{}
	for _, tenant := range tenants {
		found[tenant] = a.tops[tenant]
	}
	return found, nil
}

func (a *asked) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func told(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func TestOneQuestionServesAllWhoWaitAndNoneIsAskedForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenants := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
		a := &asked{tops: map[uuid.UUID]int64{tenants[0]: 7}}
		w := newWatch(nil, zap.NewNop())
		w.tops = a.answer
		time.Sleep(time.Hour)
		a.set(func() {
			if a.questions != 0 {
				t.Errorf("%d questions are asked though nobody waits", a.questions)
			}
		})
		over := make(chan struct{})
		var waiting []<-chan struct{}
		for i := range 90 {
			waiting = append(waiting, w.beyond(over, tenants[i%3], 7))
		}
		time.Sleep(10*watchEvery + watchEvery/2)
		a.set(func() {
			if a.questions != 10 || a.most != 3 {
				t.Errorf("%d questions of up to %d tenants are asked in %s, want 10 of 3", a.questions, a.most, 10*watchEvery)
			}
			a.tops[tenants[1]] = 8
		})
		for i, channel := range waiting {
			if told(channel) {
				t.Errorf("reader %d is told of nothing", i)
			}
		}
		time.Sleep(watchEvery)
		for i, channel := range waiting {
			if told(channel) != (i%3 == 1) {
				t.Errorf("reader %d: told %t", i, told(channel))
			}
		}
		a.set(func() { a.fails = true })
		time.Sleep(time.Second)
		a.set(func() { a.fails, a.tops[tenants[2]] = false, 9 })
		time.Sleep(watchEvery)
		if !told(waiting[2]) {
			t.Error("after the database was away nobody is told")
		}
		close(over)
		time.Sleep(time.Second)
		a.set(func() { a.questions = 0 })
		time.Sleep(time.Hour)
		w.mu.Lock()
		defer w.mu.Unlock()
		a.set(func() {
			if a.questions != 0 || len(w.readers) != 0 {
				t.Errorf("%d questions are asked for %d readers that are gone", a.questions, len(w.readers))
			}
		})
	})
}

func TestAReaderThatWaitsIsToldAtOnceWhicheverInstanceHeardIt(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	here, there := k.service(lenient), k.service(lenient)
	pieces := make(chan wireFeed)
	wait := func(query string) {
		go func() { pieces <- k.feed(here, who, query) }()
		testkit.Eventually(t, soon, "somebody waits", func() bool {
			here.watch.mu.Lock()
			defer here.watch.mu.Unlock()
			return len(here.watch.readers) > 0
		})
	}
	wait("?wait=30") // before anything has ever happened
	first := joined(t, who.tenant, time.Now())
	k.fanOut(there, first)
	if piece := <-pieces; !slices.Equal(piece.ids(t), []string{first.ID.String()}) {
		t.Errorf("told %v", piece.ids(t))
	}
	wait("?wait=30&types=sale.recorded&after=" + first.ID.String())
	for position := int64(3); position <= 7; position += 2 { // which nobody has asked for
		k.fanOut(there, joinedMany(t, who.tenant, 2)...)
		testkit.Eventually(t, soon, "they are passed over", func() bool {
			here.watch.mu.Lock()
			defer here.watch.mu.Unlock()
			for r := range here.watch.readers {
				if r.position == position {
					return true
				}
			}
			return false
		})
	}
	sale := sold(t, who.tenant, time.Now())
	k.fanOut(there, sale)
	if piece := <-pieces; !slices.Equal(piece.ids(t), []string{sale.ID.String()}) || piece.Position != 8 {
		t.Errorf("told %v of position %d", piece.ids(t), piece.Position)
	}
	begun := time.Now()
	if piece := k.feed(here, who, "?wait=30&limit=1"); !slices.Equal(piece.ids(t), []string{first.ID.String()}) {
		t.Errorf("told %v", piece.ids(t))
	}
	nothing := k.feed(here, who, "?wait=1&after="+sale.ID.String())
	if took := time.Since(begun); len(nothing.Data) != 0 || *nothing.NextCursor != sale.ID.String() || took < time.Second || took > soon {
		t.Errorf("after %s: %+v", took, nothing)
	}
}

func TestReadersThatWaitKeepNobodyElseFromTheDatabase(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	e := joined(t, who.tenant, time.Now())
	k.fanOut(s, e)
	const readers = 40 // of 8 connections
	pieces := make(chan wireFeed, readers)
	for range readers {
		go func() { pieces <- k.feed(s, who, "?wait=30&after="+e.ID.String()) }()
	}
	testkit.Eventually(t, soon, "all wait", func() bool {
		s.watch.mu.Lock()
		defer s.watch.mu.Unlock()
		return len(s.watch.readers) == readers
	})
	testkit.Eventually(t, soon, "no connection is held", func() bool { return s.deps.Pool.Stat().AcquiredConns() == 0 })
	k.deliveries(s, who, "")
	k.fanOut(s, joined(t, who.tenant, time.Now()))
	for range readers {
		if piece := <-pieces; len(piece.Data) != 1 {
			t.Errorf("told %+v", piece)
		}
	}
}

func TestAReaderThatWaitsIsAnsweredWhenTheServiceStops(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	s := k.service(lenient)
	e := joined(t, who.tenant, time.Now())
	k.fanOut(s, e)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ctx, listener, s.Handler()) }()
	answered := make(chan *http.Response, 1)
	go func() {
		defer close(answered)
		request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+listener.Addr().String()+eventsPath+"?wait=30&after="+e.ID.String(), nil)
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Authorization", "Bearer "+who.key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		_ = response.Body.Close()
		answered <- response
	}()
	testkit.Eventually(t, soon, "it waits", func() bool {
		s.watch.mu.Lock()
		defer s.watch.mu.Unlock()
		return len(s.watch.readers) == 1
	})
	begun := time.Now()
	stop()
	if response := <-answered; response != nil && response.StatusCode != 200 {
		t.Errorf("the reader is answered %s", response.Status)
	}
	if err := <-ended; err != nil || time.Since(begun) > 5*time.Second {
		t.Errorf("the server ends after %s with %v", time.Since(begun), err)
	}
}
