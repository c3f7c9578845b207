package goals

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"partilha.dev/pkg/postgres"
)

// turns lets calls that change goals wait for their tenant here, where that costs
// nothing: in PostgreSQL each of them would wait on a connection of its own, until none
// is left for anybody else.
type turns struct {
	mu       sync.Mutex
	byTenant map[uuid.UUID]*turn
}

type turn struct {
	free   *semaphore.Weighted
	wanted int // calls that have it or wait for it
}

// take waits until no other call of this process changes goals of the tenant, until done
// is called. Its error is that ctx has ended before.
func (t *turns) take(ctx context.Context, tenant uuid.UUID) (done func(), err error) {
	t.mu.Lock()
	one := t.byTenant[tenant]
	if one == nil {
		one = &turn{free: semaphore.NewWeighted(1)}
		t.byTenant[tenant] = one
	}
	one.wanted++
	t.mu.Unlock()
	forgo := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.wanted--; one.wanted == 0 {
			delete(t.byTenant, tenant)
		}
	}
	if err := one.free.Acquire(ctx, 1); err != nil {
		forgo()
		return nil, fmt.Errorf("wait for the tenant's turn: %w", err)
	}
	return func() {
		one.free.Release(1)
		forgo()
	}, nil
}

// alone is postgres.Transact for a transaction that is to hold the tenant.
func (s *Service) alone(ctx context.Context, tenant uuid.UUID, do func(*postgres.Tx) error) error {
	done, err := s.turns.take(ctx, tenant)
	if err != nil {
		return postgres.Explain(err)
	}
	defer done()
	return postgres.Transact(ctx, s.deps.Pool, do)
}
