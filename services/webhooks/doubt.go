package webhooks

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// doubt is a claim of this worker's that may be in the database though nothing of it is
// or will be sent.
type doubt struct {
	token uuid.UUID
	ids   []uuid.UUID // of the deliveries; nil: all that was claimed under the token
	since time.Time
}

// doubts puts such claims back. The commit of a transaction of which no answer came may
// land after somebody has looked for it, so each is looked for until no lease of it can
// be left. It is safe for concurrent use.
type doubts struct {
	pool  *pgxpool.Pool
	lease time.Duration

	mu      sync.Mutex
	fresh   []doubt
	settled []doubt // were put back, as far as they were there
}

// add remembers a claim that began before now.
func (d *doubts) add(token uuid.UUID, ids []uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fresh = append(d.fresh, doubt{token, ids, time.Now()})
}

// settle puts back what nobody has looked for so far.
func (d *doubts) settle() error {
	d.mu.Lock()
	fresh := d.fresh
	d.fresh = nil
	d.mu.Unlock()
	done, err := d.release(fresh)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settled = append(d.settled, fresh[:done]...)
	d.fresh = append(d.fresh, fresh[done:]...)
	return err
}

// review puts back all of them once more, and forgets those that are older than the lease.
func (d *doubts) review() error {
	if err := d.settle(); err != nil {
		return err
	}
	d.mu.Lock()
	settled := slices.Clone(d.settled)
	d.mu.Unlock()
	began := time.Now()
	if _, err := d.release(settled); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settled = slices.DeleteFunc(d.settled, func(one doubt) bool { return began.Sub(one.since) > d.lease })
	return nil
}

// release returns how many it has put back, which is all of them without an error.
func (d *doubts) release(list []doubt) (done int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), claimWithin)
	defer cancel()
	for i, one := range list {
		if err := release(ctx, d.pool, one.token, one.ids); err != nil {
			return i, err
		}
	}
	return len(list), nil
}
