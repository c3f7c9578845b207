package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"partilha.dev/pkg/fault"
)

func TestTheServersLimitsOfTimeAreThePublishedOnes(t *testing.T) {
	s := newServer(t.Context(), http.NotFoundHandler())
	for what, limit := range map[string][2]time.Duration{
		"head": {s.ReadHeaderTimeout, 5 * time.Second}, "request": {s.ReadTimeout, 10 * time.Second},
		"answer": {s.WriteTimeout, 15 * time.Second}, "idle": {s.IdleTimeout, 60 * time.Second},
	} {
		if limit[0] != limit[1] {
			t.Errorf("%s: %v, want %v", what, limit[0], limit[1])
		}
	}
}

// wait is over after a minute, or as soon as the call's context ends.
func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fault.Unreachable(ctx.Err())
	case <-time.After(time.Minute):
		return nil
	}
}

func TestACallThatWaitsForTooLongIsAnsweredBeforeTheServerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.outcome = func(c *Call) (Answer, error) { return Answer{Status: 204}, wait(c.Context()) }
		start := time.Now()
		s.call("GET", outcome, "").refused("a call that waits", 503, "unavailable")
		if took := time.Since(start); took != answerWithin || took >= writeWithin {
			t.Errorf("answered after %v", took)
		}
	})
}

func TestWhoListensIsNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.outcome = func(c *Call) (Answer, error) { return Answer{Status: 204}, wait(c.Context()) }
		if a := s.call("GET", "/api/v1/news/x", ""); a.status != 204 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func TestAnAnswerThatIsStreamedIsNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.outcome = func(c *Call) (Answer, error) {
			return Answer{Status: 200, Stream: &Stream{Type: "text/csv", Write: func(to io.Writer) error {
				io.WriteString(to, "all of it")
				return wait(c.Context())
			}}}, nil
		}
		if a := s.call("GET", outcome, ""); a.status != 200 || a.body != "all of it" {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func TestACallerWhoHasLeftIsNobodysFailure(t *testing.T) {
	s := newShop(t)
	var err error
	var leave func()
	s.outcome = func(c *Call) (Answer, error) {
		leave()
		if err == nil {
			panic("a defect")
		}
		return Answer{}, err
	}
	for _, row := range []struct {
		what   string
		leaves bool
		err    error
		status int
		errors int
	}{
		{"what it waited for was cancelled", true, context.Canceled, 499, 0},
		{"what it waited for is called unavailable", true, fault.Unreachable(context.Canceled), 499, 0},
		{"an outage", false, fault.Unreachable(context.Canceled), 503, 1},
		{"a defect", true, nil, 500, 1},
		{"a refusal", true, NotFound(), 404, 0},
	} {
		s.logs.TakeAll()
		err = row.err
		ctx, cancel := context.WithCancel(t.Context())
		if leave = cancel; !row.leaves {
			leave = func() {}
		}
		r := httptest.NewRequestWithContext(ctx, "GET", outcome, nil)
		r.Header.Set("Authorization", "Bearer "+s.key)
		a := s.send(r)
		cancel()
		if got := s.logs.FilterLevelExact(zap.ErrorLevel).Len(); a.status != row.status || got != row.errors {
			t.Errorf("%s: %d with %d errors logged, want %d with %d", row.what, a.status, got, row.status, row.errors)
		}
		if n := s.logs.FilterMessage("request").All(); len(n) != 1 || n[0].ContextMap()["status"] != int64(row.status) {
			t.Errorf("%s: it is measured as %v", row.what, n)
		}
	}
}

func TestReadsLeaveConnectionsToOtherCalls(t *testing.T) {
	limits := usual
	limits.Connections = 8
	l := NewLimiter(limits)
	synctest.Test(t, func(t *testing.T) {
		enter := func(at lane) error {
			ctx, cancel := context.WithTimeout(t.Context(), answerWithin)
			defer cancel()
			return l.enter(ctx, at, http.Header{})
		}
		one, two, three := uuid.New(), uuid.New(), uuid.New()
		for range limits.Connections / 4 {
			for _, tenant := range []uuid.UUID{one, two} {
				if err := enter(lane{tenant, reader}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := enter(lane{one, reader}); fault.KindOf(err) != fault.Limited {
			t.Errorf("more than a quarter for one tenant: %v", err)
		}
		if err := enter(lane{three, reader}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("more than half for all: %v", err)
		}
		if err := enter(lane{one, single}); err != nil {
			t.Errorf("what is no read: %v", err)
		}
		l.leave(lane{two, reader})
		if err := enter(lane{three, reader}); err != nil {
			t.Errorf("once a read has ended: %v", err)
		}
		for _, at := range []lane{{one, reader}, {one, reader}, {two, reader}, {three, reader}, {one, single}} {
			l.leave(at)
		}
		if len(l.underWay) != 0 || !l.reading.TryAcquire(4) {
			t.Errorf("still under way: %v", l.underWay)
		}
	})
}

func TestWhatIsAskedWithGETIsARead(t *testing.T) {
	s := newShop(t)
	s.outcome = func(c *Call) (Answer, error) {
		s.limiter.mu.Lock()
		defer s.limiter.mu.Unlock()
		if s.limiter.underWay[lane{c.Tenant(), reader}] == nil {
			t.Error("it is not under way as a read")
		}
		return Answer{Status: 204}, nil
	}
	s.call("GET", outcome, "")
}
