package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"partilha.dev/pkg/client"
	"partilha.dev/pkg/event"
)

const (
	firstEvent  = `{"event":"goal.reached","event_id":"evt_00000000000000000000000000000001","created_at":"2026-07-14T13:06:10Z","tenant_id":"019f60b1-3400-7e63-82b7-095b0bf32c26","data":{"goal_id":"x"}}`
	secondEvent = `{"event":"sale.recorded","event_id":"evt_00000000000000000000000000000002","created_at":"2026-07-14T13:06:11Z","tenant_id":"019f60b1-3400-7e63-82b7-095b0bf32c26","data":{}}`
)

// aFeed tells two events, then nothing of what was asked for but the place of a third,
// and then nothing more.
func aFeed(w http.ResponseWriter, r *http.Request, _ int) {
	switch r.URL.Query().Get("after") {
	case "":
		say(w, 200, `{"data":[`+firstEvent+`,`+secondEvent+`],"next_cursor":"evt_00000000000000000000000000000002","position":2}`)
	default:
		select {
		case <-r.Context().Done():
			return
		case <-time.After(7 * time.Second):
		}
		say(w, 200, `{"data":[],"next_cursor":"evt_00000000000000000000000000000003","position":3}`)
	}
}

func TestEventsAreFollowedFromTheBeginningUntilTheContextEnds(t *testing.T) {
	inBubble(t, client.Options{}, aFeed, func(t *testing.T, s *server, c *client.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var told []string
		var last error
		for e, err := range c.FollowEvents(ctx, event.ID{}, event.NameGoalReached, event.NameSaleRecorded) {
			if last = err; err == nil {
				told = append(told, e.Name+" "+e.ID.String()+" "+string(e.Data))
			}
		}
		want := []string{"goal.reached evt_00000000000000000000000000000001 {\"goal_id\":\"x\"}", "sale.recorded evt_00000000000000000000000000000002 {}"}
		if !slices.Equal(told, want) || !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("told %v and then %v", told, last)
		}
		var asked []string
		for _, r := range s.requests() {
			asked = append(asked, r.what)
		}
		const types = "&limit=100&types=goal.reached%2Csale.recorded&wait=7"
		if want := []string{
			"GET /api/v1/events?" + types[1:], "GET /api/v1/events?after=evt_00000000000000000000000000000002" + types,
			"GET /api/v1/events?after=evt_00000000000000000000000000000003" + types,
		}; len(asked) < 3 || !slices.Equal(asked[:3], want) {
			t.Errorf("it asks for %v, want %v", asked, want)
		}
	})
}

func TestEventsAreFollowedFromAnIDAndLeftAtWill(t *testing.T) {
	inBubble(t, client.Options{AttemptTimeout: time.Second}, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.URL.Query().Get("after") != "evt_0000000000000000000000000000000a" || r.URL.Query().Has("types") || r.URL.Query().Get("wait") != "0" {
			t.Errorf("it asks for %s", r.URL)
		}
		say(w, 200, `{"data":[`+firstEvent+`,`+secondEvent+`],"next_cursor":"evt_00000000000000000000000000000002","position":2}`)
	}, func(t *testing.T, s *server, c *client.Client) {
		for e, err := range c.FollowEvents(t.Context(), event.ID{15: 10}) {
			if err != nil || e.Name != event.NameGoalReached {
				t.Errorf("told %v, %v", e, err)
			}
			break
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("it has asked %d times", n)
		}
	})
}

func TestAnExpiredPlaceEndsFollowing(t *testing.T) {
	inBubble(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request, _ int) {
		say(w, 410, `{"code":"cursor_expired","message":"too old","request_id":"r"}`)
	}, func(t *testing.T, s *server, c *client.Client) {
		count := 0
		for _, err := range c.FollowEvents(t.Context(), event.ID{15: 10}) {
			count++
			if refused := new(client.Error); !errors.As(err, &refused) || refused.Status != 410 || refused.Code != "cursor_expired" {
				t.Errorf("it ends with %v", err)
			}
		}
		if n := len(s.requests()); count != 1 || n != 1 {
			t.Errorf("it yields %d times after %d calls", count, n)
		}
	})
}

func TestWhoCannotWaitLooksOnceASecond(t *testing.T) {
	inBubble(t, client.Options{AttemptTimeout: time.Second}, func(w http.ResponseWriter, _ *http.Request, _ int) {
		say(w, 200, `{"data":[],"next_cursor":null,"position":0}`)
	}, func(t *testing.T, s *server, c *client.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		for _, err := range c.FollowEvents(ctx, event.ID{}) {
			if err == nil {
				t.Error("it yields nothing as an event")
			}
		}
		if n := len(s.requests()); n != 5 {
			t.Errorf("in 4.5 seconds it looks %d times, want 5", n)
		}
	})
}
