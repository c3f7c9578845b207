package goals

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	lookEvery   = 250 * time.Millisecond // for changes, while somebody listens
	renewEvery  = kept / 4               // what says that somebody does
	forgetEvery = kept / 4
	queueLength = 32 // news that a listener may be behind
)

// listeners are all who listen to goals on this replica. One look at the database serves
// all of them; where nobody listens there is none.
type listeners struct {
	service *Service

	mu        sync.Mutex
	audiences map[goalKey]*audience
}

// audience is who listens to one goal.
type audience struct {
	goal     *goal
	position int64     // the horizon of the last look; 0: there was none that saw all
	renewed  time.Time // zero: not yet
	members  map[*listener]bool
}

// listener is one stream. Its queue is bounded: who does not keep up is dropped, and
// resumes from what it has seen.
type listener struct {
	from    *int64 // has seen everything before this horizon; nil: nothing
	news    chan news
	hears   bool   // news are sent to it
	dropped string // why the queue was closed
}

// news is what a look has found: a frame that is ready to be sent; or how far the listener,
// who has come again, has to catch up by itself; or that it is to be told how things stand.
type news struct {
	frame   []byte
	from    *int64 // what is to be caught up with begins here; nil: nothing is
	horizon int64  // and ends here
}

func newListeners(s *Service) *listeners {
	return &listeners{service: s, audiences: map[goalKey]*audience{}}
}

// join adds a listener to the goal's audience, until leave. It hears from the next look on.
func (ls *listeners) join(g *goal, from *int64) *listener {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	key := goalKey{g.tenantID, g.id}
	a := ls.audiences[key]
	if a == nil {
		a = &audience{goal: g, members: map[*listener]bool{}}
		ls.audiences[key] = a
	}
	l := &listener{from: from, news: make(chan news, queueLength)}
	a.members[l] = true
	return l
}

// leave ends what join began, also for a listener that was dropped meanwhile.
func (ls *listeners) leave(g *goal, l *listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	key := goalKey{g.tenantID, g.id}
	if a := ls.audiences[key]; a != nil {
		if delete(a.members, l); len(a.members) == 0 {
			delete(ls.audiences, key)
		}
	}
}

// heard is the horizon up to which the listener has been told all there was; 0 where it
// has not yet, or has still to take what waits in its queue.
func (ls *listeners) heard(g *goal, l *listener) int64 {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	a := ls.audiences[goalKey{g.tenantID, g.id}]
	if a == nil || !a.members[l] || !l.hears || len(l.news) > 0 {
		return 0
	}
	return a.position
}

// present is the goal as it was when it was read last: for its audience, or by the caller.
func (ls *listeners) present(g *goal) *goal {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if a := ls.audiences[goalKey{g.tenantID, g.id}]; a != nil {
		return a.goal
	}
	return g
}

// tell sends news to those who hear, or to one of them. Whoever's queue is full is
// dropped. The lock is held.
func (a *audience) tell(n news, to ...*listener) {
	if to == nil {
		for l := range a.members {
			if l.hears {
				to = append(to, l)
			}
		}
	}
	for _, l := range to {
		select {
		case l.news <- n:
		default:
			a.drop(l, "too slow; come again with the last id")
		}
	}
}

// drop ends a listener. The lock is held.
func (a *audience) drop(l *listener, why string) {
	l.dropped = why
	close(l.news)
	delete(a.members, l)
}

// run looks for changes until ctx ends.
func (ls *listeners) run(ctx context.Context) error {
	looking, forgetting := time.NewTicker(lookEvery), time.NewTicker(forgetEvery)
	defer looking.Stop()
	defer forgetting.Stop()
	well := true
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-looking.C:
			err = ls.look(ctx)
		case <-forgetting.C:
			err = forget(ctx, ls.service.deps.Pool)
		}
		if err != nil && well && ctx.Err() == nil {
			ls.service.deps.Log.Warn("cannot look for changes of goals; trying on", zap.Error(err))
		}
		well = err == nil
	}
}

// look finds what has changed and tells it.
func (ls *listeners) look(ctx context.Context) error {
	if err := ls.renew(ctx); err != nil {
		return err
	}
	keys, positions := ls.listened()
	if len(keys) == 0 {
		return nil
	}
	seen, err := look(ctx, ls.service.deps.Pool, keys, positions)
	if err != nil {
		return err
	}
	for i := range seen { // one goal's trouble is not the others'
		err = errors.Join(err, ls.report(ctx, seen[i]))
	}
	return err
}

// renew says in the database which goals are listened to here, where that is due, and
// reads them again. A goal that is gone loses its audience.
func (ls *listeners) renew(ctx context.Context) error {
	now := time.Now()
	var due []goalKey
	ls.mu.Lock()
	for key, a := range ls.audiences {
		if now.Sub(a.renewed) >= renewEvery {
			due = append(due, key)
		}
	}
	ls.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	exist, err := listen(ctx, ls.service.deps.Pool, due)
	if err != nil {
		return err
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, key := range due {
		a := ls.audiences[key]
		switch {
		case a == nil: // everybody has left
		case exist[key] != nil:
			a.renewed, a.goal = now, exist[key]
		default:
			for l := range a.members {
				a.drop(l, "the goal is gone")
			}
			delete(ls.audiences, key)
		}
	}
	return nil
}

// listened are the goals with an audience, and where each was looked at last.
func (ls *listeners) listened() (keys []goalKey, positions []int64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for key, a := range ls.audiences {
		keys, positions = append(keys, key), append(positions, a.position)
	}
	return keys, positions
}

// report tells the goal's audience what was seen. Its members hear from a horizon on,
// before which every change is written down or can be seen in the totals.
func (ls *listeners) report(ctx context.Context, s sight) error {
	ls.mu.Lock()
	a := ls.audiences[s.goalKey]
	if a == nil {
		ls.mu.Unlock()
		return nil
	}
	position, goal := a.position, a.goal
	ls.mu.Unlock()

	var found []news
	whole := true
	switch {
	case s.since == nil: // what said that we listen has run out, or a look came in between
		ls.update(s.goalKey, func(a *audience) { a.renewed = time.Time{} })
		return nil
	case s.horizon < *s.since:
		return nil // somebody may still be counting who does not know that we listen
	case position < *s.since:
		whole = position == 0 // nobody has heard anything yet
	case s.changed:
		var err error
		if found, whole, err = ls.changes(ctx, goal, position, s.horizon); err != nil {
			return err
		}
	}
	ls.update(s.goalKey, func(a *audience) {
		a.position = s.horizon
		if !whole {
			a.tell(news{horizon: s.horizon})
		}
		for _, n := range found {
			a.tell(n)
		}
		for l := range a.members {
			if !l.hears {
				l.hears = true
				a.tell(news{from: l.from, horizon: s.horizon}, l)
			}
		}
	})
	return nil
}

// changes are the news of what has changed between two horizons; whole is false where some
// of it is forgotten, or where it is too much, and then there are none.
func (ls *listeners) changes(ctx context.Context, g *goal, from, until int64) (found []news, whole bool, err error) {
	whole, err = ls.service.eachChange(ctx, g, from, until, func(rows []progressBody) error {
		frame, err := changedFrame(rows)
		if len(frame) > 0 {
			found = append(found, news{frame: frame, horizon: until})
		}
		return err
	})
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("read changes: %w", err)
	case !whole:
		return nil, false, nil
	}
	if len(found) > 0 {
		id, err := ls.service.idFrame(g, until)
		if err != nil {
			return nil, false, err
		}
		last := &found[len(found)-1]
		last.frame = append(last.frame, id...)
	}
	return found, true, nil
}

// update changes the goal's audience, if there still is one.
func (ls *listeners) update(key goalKey, change func(*audience)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if a := ls.audiences[key]; a != nil {
		change(a)
	}
}
