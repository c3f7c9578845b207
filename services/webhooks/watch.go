package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/postgres"
)

const (
	watchEvery  = 250 * time.Millisecond
	watchWithin = 10 * time.Second
)

// watch tells readers of feeds when their tenants have something new, whichever replica
// has kept it. While somebody waits it asks one question every quarter of a second for
// all who do, and otherwise none. It is safe for concurrent use.
type watch struct {
	tops func(context.Context, []uuid.UUID) (map[uuid.UUID]int64, error)
	log  *zap.Logger

	mu      sync.Mutex
	readers map[*reader]struct{}
	asking  bool // there is somebody who asks, and ends once nobody waits
}

// reader waits for what its tenant's feed has beyond a position.
type reader struct {
	tenant   uuid.UUID
	position int64
	over     <-chan struct{}
	told     chan struct{}
}

func newWatch(pool *pgxpool.Pool, log *zap.Logger) *watch {
	return &watch{
		log: log, readers: map[*reader]struct{}{},
		tops: func(ctx context.Context, tenants []uuid.UUID) (map[uuid.UUID]int64, error) {
			return topsOf(ctx, pool, tenants)
		},
	}
}

const topsQuery = `select tenant_id, position from tenants where tenant_id = any($1::uuid[])`

// topsOf returns the position of the newest event of each tenant that has one.
func topsOf(ctx context.Context, pool *pgxpool.Pool, tenants []uuid.UUID) (map[uuid.UUID]int64, error) {
	rows, err := pool.Query(ctx, topsQuery, tenants)
	if err != nil {
		return nil, fmt.Errorf("look for new events: %w", postgres.Explain(err))
	}
	tops := map[uuid.UUID]int64{}
	var tenant uuid.UUID
	var top int64
	_, err = pgx.ForEachRow(rows, []any{&tenant, &top}, func() error {
		tops[tenant] = top
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for new events: %w", postgres.Explain(err))
	}
	return tops, nil
}

// beyond returns a channel that is closed once the tenant has an event after the
// position, within about watchEvery. Nobody waits for it any more when over is closed.
func (w *watch) beyond(over <-chan struct{}, tenant uuid.UUID, position int64) <-chan struct{} {
	r := &reader{tenant: tenant, position: position, over: over, told: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readers[r] = struct{}{}
	if !w.asking {
		w.asking = true
		go w.ask()
	}
	return r.told
}

// ask looks for news until nobody waits for any.
func (w *watch) ask() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for range tick.C {
		tenants := w.wanted()
		if len(tenants) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), watchWithin)
		tops, err := w.tops(ctx, tenants)
		cancel()
		if err != nil {
			w.log.Error("cannot look for new events", zap.Error(err))
			continue
		}
		w.tell(tops)
	}
}

// wanted forgets readers that are gone and lists the tenants of the others. Where there
// are none, whoever asked ends.
func (w *watch) wanted() (tenants []uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[uuid.UUID]bool{}
	for r := range w.readers {
		select {
		case <-r.over:
			delete(w.readers, r)
			continue
		default:
		}
		if !seen[r.tenant] {
			seen[r.tenant] = true
			tenants = append(tenants, r.tenant)
		}
	}
	w.asking = len(tenants) > 0
	return tenants
}

// tell wakes the readers for whom there is something new.
func (w *watch) tell(tops map[uuid.UUID]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.readers {
		if tops[r.tenant] > r.position {
			close(r.told)
			delete(w.readers, r)
		}
	}
}
