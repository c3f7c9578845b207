package goals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"partilha.dev/pkg/web"
)

const (
	mediaEvents = "text/event-stream"
	beatEvery   = 15 * time.Second
	resetRows   = 100 // of the leaderboard, with which a stream begins
)

// streamProgress answers GET /api/v1/goals/{goal_id}/progress/stream: events for as long
// as the caller listens.
func (s *Service) streamProgress(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("goal_id")
	if err != nil {
		return web.Answer{}, err
	}
	g, err := s.find(call.Context(), call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{
		Status: http.StatusOK,
		Header: map[string]string{"Cache-Control": "no-store", "X-Accel-Buffering": "no"}, // the second is for proxies that would collect it
		Stream: &web.Stream{Type: mediaEvents, Live: true, Write: func(to io.Writer) error {
			return s.tell(call, g, s.streamIDs.horizon(g, call.Header.Get("Last-Event-ID")), to)
		}},
	}, nil
}

// tell writes what happens to the goal, from a horizon on or anew, until the call is over.
func (s *Service) tell(call *web.Call, g *goal, from *int64, to io.Writer) error {
	l := s.listeners.join(g, from)
	defer s.listeners.leave(g, l)
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-call.Over():
			return nil
		case n, open := <-l.news:
			if !open {
				_, err = fmt.Fprintf(to, ": %s\n\n", l.dropped)
				return err
			}
			err = s.deliver(call, s.listeners.present(g), n, to)
		case <-beat.C:
			err = s.writeBeat(to, g, s.listeners.heard(g, l))
		}
		if err != nil {
			return err
		}
	}
}

// deliver writes one of a listener's news. What is caught up with has no id before all of
// it has been written: till then the listener comes again with its last one.
func (s *Service) deliver(call *web.Call, g *goal, n news, to io.Writer) error {
	ctx := call.Context()
	switch {
	case n.frame != nil:
		_, err := to.Write(n.frame)
		return err
	case n.from != nil && *n.from <= n.horizon:
		whole, err := s.eachChange(ctx, g, *n.from, n.horizon, func(rows []progressBody) error {
			select {
			case <-call.Over():
				return errOver
			default:
			}
			frame, err := changedFrame(rows)
			if err == nil && len(frame) > 0 {
				_, err = to.Write(frame)
			}
			return err
		})
		switch {
		case errors.Is(err, errOver):
			return nil
		case err != nil:
			return err
		case whole:
			frame, err := s.idFrame(g, n.horizon)
			if err == nil {
				_, err = to.Write(frame)
			}
			return err
		}
	}
	frame, err := s.resetFrame(ctx, g, n.horizon)
	if err != nil {
		return err
	}
	_, err = to.Write(frame)
	return err
}

// errOver ends a catch-up whose call is over.
var errOver = errors.New("the call is over")

// changedFrame is an event for each row.
func changedFrame(rows []progressBody) ([]byte, error) {
	var frame bytes.Buffer
	for _, row := range rows {
		raw, err := json.Marshal(row)
		if err != nil {
			return nil, fmt.Errorf("write a changed row: %w", err)
		}
		fmt.Fprintf(&frame, "event: progress\ndata: %s\n\n", raw)
	}
	return frame.Bytes(), nil
}

// idFrame says that everything before the horizon has been told.
func (s *Service) idFrame(g *goal, horizon int64) ([]byte, error) {
	id, err := s.streamIDs.of(g, horizon)
	return fmt.Appendf(nil, "id: %s\n\n", id), err
}

// resetFrame is an event with the first page of the leaderboard as it is now, in place
// of all that was told before.
func (s *Service) resetFrame(ctx context.Context, g *goal, horizon int64) ([]byte, error) {
	present, err := g.presentSpan(s.deps.Now())
	if err != nil {
		return nil, err
	}
	page, err := s.leaderboard(ctx, g, top(g.id, present.start), web.FirstPage(progressPattern, resetRows))
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(page.Body)
	if err != nil {
		return nil, fmt.Errorf("write the leaderboard: %w", err)
	}
	id, err := s.streamIDs.of(g, horizon)
	return fmt.Appendf(nil, "id: %s\nevent: reset\ndata: %s\n\n", id, raw), err
}

// writeBeat shows that the stream lives, and moves its id on where nothing happens, so
// that it can be resumed after a long silence.
func (s *Service) writeBeat(to io.Writer, g *goal, horizon int64) error {
	beat := []byte("\n")
	if horizon > 0 {
		var err error
		if beat, err = s.idFrame(g, horizon); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(to, ": nothing new\n%s", beat)
	return err
}
