package sales

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
)

const (
	commitSize   = 512              // sales in one statement at most
	queueSize    = 4096             // sales that may wait; one more is refused
	batchRoom    = 4096             // sales of batches that may wait
	roomWithin   = 2 * time.Second  // a batch that finds no room for so long is refused
	commitWithin = 10 * time.Second // a statement that takes longer has failed
)

// entry is one decided sale on its way into the database.
type entry struct {
	tenant  uuid.UUID
	version int64 // the tenant's catalogue_version on which it was decided
	sale    sale
	event   event.Sealed
	done    chan outcome
}

// outcome is what became of an entry. If neither recorded nor known holds, the
// catalogue has changed since the decision.
type outcome struct {
	recorded bool
	known    *sale // the sale that the same external_ref recorded before
	err      error
}

// recorder commits sales in groups: while one commit is under way the next group
// gathers. There is no timer, so an idle server commits a lone sale at once, and a
// sale waits for at most one commit that is not its own.
//
// The sales of batches wait in a queue of their own, which has half of each group
// where both wait. So no batch holds up a lone sale, and no storm of lone sales a batch.
type recorder struct {
	pool    *pgxpool.Pool
	relay   *outbox.Relay
	writers int
	queue   chan *entry
	batched chan *entry         // of batches
	room    *semaphore.Weighted // in batched, for sales that are not answered yet
	stopped chan struct{}
}

func newRecorder(pool *pgxpool.Pool, relay *outbox.Relay, writers int) *recorder {
	return &recorder{
		pool: pool, relay: relay, writers: writers, stopped: make(chan struct{}),
		queue: make(chan *entry, queueSize), batched: make(chan *entry, batchRoom), room: semaphore.NewWeighted(batchRoom),
	}
}

// submit waits until the entry is committed or refused. If ctx ends first, the
// outcome is open: the sale may still be recorded, and a repeat will tell.
func (r *recorder) submit(ctx context.Context, e *entry) (outcome, error) {
	e.done = make(chan outcome, 1)
	select {
	case r.queue <- e:
	default:
		return outcome{}, tooMany()
	}
	return r.await(ctx, e)
}

func tooMany() error {
	return fault.New(fault.Unavailable, "unavailable", "too many sales are waiting; repeat the same call")
}

// reserve waits for room for n sales of one batch, behind the batches that came before,
// or refuses them all. What it returns gives the room back.
func (r *recorder) reserve(ctx context.Context, n int) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, roomWithin)
	defer cancel()
	if r.room.Acquire(ctx, int64(n)) != nil {
		return nil, tooMany()
	}
	return func() { r.room.Release(int64(n)) }, nil
}

// submitAll is submit for sales that have room reserved: all of them wait before any is
// awaited. An outcome carries its own error.
func (r *recorder) submitAll(ctx context.Context, entries []*entry) []outcome {
	for _, e := range entries {
		e.done = make(chan outcome, 1)
		select {
		case r.batched <- e:
		case <-r.stopped: // await says so
		case <-ctx.Done():
		}
	}
	outcomes := make([]outcome, len(entries))
	for i, e := range entries {
		var err error
		outcomes[i], err = r.await(ctx, e)
		outcomes[i].err = err
	}
	return outcomes
}

// await returns what became of an entry that waits.
func (r *recorder) await(ctx context.Context, e *entry) (outcome, error) {
	select {
	case o := <-e.done:
		return o, o.err
	case <-r.stopped:
		select {
		case o := <-e.done: // it was among the last that were written
			return o, o.err
		default:
			return outcome{}, fault.New(fault.Unavailable, "unavailable", "the service is stopping; repeat the same call")
		}
	case <-ctx.Done():
		return outcome{}, fault.Unreachable(ctx.Err())
	}
}

// run writes until ctx ends and nothing is left in the queue.
func (r *recorder) run(ctx context.Context) error {
	defer close(r.stopped)
	var group errgroup.Group
	for range r.writers {
		group.Go(func() error {
			for {
				select {
				case first := <-r.queue:
					r.write(r.gather(first))
				case first := <-r.batched:
					r.write(r.gather(first))
				case <-ctx.Done():
					group := r.gather()
					if len(group) == 0 {
						return nil
					}
					r.write(group)
				}
			}
		})
	}
	return group.Wait()
}

// gather adds what waits already to a group: at least half of what a commit takes for
// either queue, and all that the other leaves.
func (r *recorder) gather(group ...*entry) []*entry {
	group = take(group, r.queue, commitSize/2)
	group = take(group, r.batched, commitSize)
	return take(group, r.queue, commitSize)
}

// take adds what waits in the queue until the group has that size.
func take(group []*entry, queue <-chan *entry, size int) []*entry {
	for len(group) < size {
		select {
		case e := <-queue:
			group = append(group, e)
		default:
			return group
		}
	}
	return group
}

// write commits a group and tells every caller what became of its sale. If the group
// fails as a whole its halves are tried, so that a sale which the database refuses
// spoils only itself. Where PostgreSQL is out of reach all of them fail, and the
// outcome of a commit that was under way is open.
func (r *recorder) write(batch []*entry) {
	ctx, cancel := context.WithTimeout(context.Background(), commitWithin)
	defer cancel()
	outcomes, err := r.commit(ctx, batch)
	if err != nil && len(batch) > 1 && fault.KindOf(err) != fault.Unavailable {
		half := len(batch) / 2
		r.write(batch[:half])
		r.write(batch[half:])
		return
	}
	groupSize.Observe(float64(len(batch)))
	for i, e := range batch {
		if err != nil {
			e.done <- outcome{err: err}
		} else {
			e.done <- outcomes[i]
		}
	}
}

// commit records what can be recorded in one statement, which is one transaction,
// and then looks up the sales that were there before.
func (r *recorder) commit(ctx context.Context, batch []*entry) ([]outcome, error) {
	recorded, err := r.insert(ctx, batch)
	if err != nil {
		return nil, fmt.Errorf("record sales: %w", postgres.Explain(err))
	}
	outcomes := make([]outcome, len(batch))
	told := make([]event.Sealed, 0, len(recorded))
	var rest []int
	for i, e := range batch {
		if recorded[e.sale.SaleID] {
			outcomes[i].recorded = true
			told = append(told, e.event)
		} else {
			rest = append(rest, i)
		}
	}
	if len(told) > 0 {
		r.relay.Committed(told)
	}
	if len(rest) == 0 {
		return outcomes, nil
	}
	known, err := findSales(ctx, r.pool, batch, rest)
	for _, i := range rest {
		if err != nil { // those that were recorded are answered all the same
			outcomes[i].err = err
		} else if s, ok := known[saleRef{batch[i].tenant, batch[i].sale.ExternalRef}]; ok {
			outcomes[i].known = &s
		}
	}
	return outcomes, nil
}

func (r *recorder) insert(ctx context.Context, batch []*entry) (map[uuid.UUID]bool, error) {
	var rows pgx.Rows
	var err error
	if len(batch) == 1 {
		rows, err = r.pool.Query(ctx, recordOneStatement, batch[0].arguments()...)
	} else {
		rows, err = r.pool.Query(ctx, recordManyStatement, columnsOf(batch)...)
	}
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	recorded := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		recorded[id] = true
	}
	return recorded, err
}
