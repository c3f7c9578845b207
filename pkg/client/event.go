package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/webhook"
)

const (
	eventsPath = "/api/v1/events"

	// longestWait is how many seconds Partilha holds back an answer at most.
	longestWait = 30
	// restless is the pause between two looks where attempts are too short to wait in.
	restless = time.Second
)

// feed is a piece of the feed.
type feed struct {
	Data       []webhook.Event `json:"data"`
	NextCursor *event.ID       `json:"next_cursor"`
}

// FollowEvents yields every event that comes after the one whose id is given, the oldest
// first and each once, whether it was sent as a webhook or not: those that there are, and
// then each as it happens, until ctx ends. The zero id begins with the oldest event that
// is kept. Names narrow it to events of these names; none means all.
//
// Store the ID of an event together with what you made of it, and begin there the next
// time: so nothing is missed and nothing told twice, however often you stop. An id that
// is older than events are kept, 30 days by default, is an *[Error] with the code
// "cursor_expired"; begin with the zero id then. An error is the last that it yields; the
// end of ctx is one.
//
// It waits in calls of half an attempt's timeout, see [Options].
func (c *Client) FollowEvents(ctx context.Context, after event.ID, names ...string) iter.Seq2[webhook.Event, error] {
	return func(yield func(webhook.Event, error) bool) {
		wait := min(longestWait, int(c.timeout/time.Second)/2)
		query := url.Values{"limit": {pageSize}, "wait": {strconv.Itoa(wait)}}
		if len(names) > 0 {
			query.Set("types", strings.Join(names, ","))
		}
		if after != (event.ID{}) {
			query.Set("after", after.String())
		}
		for {
			got, err := send[feed](ctx, c, call{what: "follow events", method: http.MethodGet, path: eventsPath, query: query, repeatable: true})
			if err != nil {
				yield(webhook.Event{}, err)
				return
			}
			for _, told := range got.Data {
				if !yield(told, nil) {
					return
				}
			}
			if got.NextCursor != nil {
				query.Set("after", got.NextCursor.String())
			}
			if len(got.Data) == 0 && wait == 0 {
				select {
				case <-ctx.Done():
				case <-time.After(restless):
				}
			}
		}
	}
}
