package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// compareAtOnce bounds what a comparison keeps in memory: some 30 MB.
const compareAtOnce = 250_000

// comparison goes through the log, a part of it at a time, and looks for each part on
// the stream. A part is found as soon as the stream has shown the last of it, so that both
// are read about once where the stream got its events in the order of the log; where it
// got them long after they were made, each part reads up to where it stands by now.
type comparison struct {
	tx     *postgres.Tx
	bus    *bus.Bus
	stream bus.Stream
	progress
	since  time.Time // created_at of the first event that is looked for
	until  time.Time // and of the first that is not
	atOnce int       // events that a part has, and that may be missing before the rest is left

	last    Logged              // of the log, that was read
	logRead bool                // to its end
	wanted  map[event.ID]Logged // of this part, and not seen on the stream
	waiting time.Time           // created_at of the first event that is still to be published; zero: none
	events  int
	missing []Logged
}

// Logged is one event of the log.
type Logged struct {
	CreatedAt time.Time
	ID        event.ID
	Name      string
}

// Comparison is what comparing the outbox with the stream has found.
type Comparison struct {
	Since   time.Time
	Until   time.Time // the relay compares what is younger, at once where very many were missing
	Events  int       // that should be on the stream
	Missing []Logged  // the oldest first; they are queued to be published again
}

// run compares, has what is missing published again, and remembers how far it came. Where
// very many are missing it leaves the rest to be compared by the relay's next rounds.
func (c *comparison) run(ctx context.Context) (Comparison, error) {
	if earliest := c.now.Add(expiring - bus.Retention); c.since.Before(earliest) {
		c.since = earliest
	}
	c.last.CreatedAt = c.since
	for !c.logRead && len(c.missing) < c.atOnce {
		if err := c.part(ctx); err != nil {
			return Comparison{}, err
		}
	}
	if !c.logRead {
		c.until = c.last.CreatedAt
	}
	return Comparison{Since: c.since, Until: c.until, Events: c.events, Missing: c.missing}, c.keep(ctx)
}

// part reads the next part of the log and looks for it on the stream. By the time it reads
// the stream all of that has reached it, or waits.
func (c *comparison) part(ctx context.Context) error {
	first := c.last.CreatedAt
	c.wanted = map[event.ID]Logged{}
	for end := c.events + c.atOnce; !c.logRead && c.events < end; {
		if err := c.readLog(ctx, min(end-c.events, logAtOnce)); err != nil {
			return err
		}
	}
	if err := c.find(ctx, first); err != nil {
		return err
	}
	c.missing = slices.AppendSeq(c.missing, maps.Values(c.wanted))
	slices.SortFunc(c.missing, func(a, b Logged) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return nil
}

// find reads the stream, from what it may have got of the events made since, to the last
// that is wanted or else to its end.
func (c *comparison) find(ctx context.Context, since time.Time) error {
	if len(c.wanted) == 0 {
		return nil
	}
	reader, err := c.bus.Read(ctx, c.stream, since.Add(-clockSkew))
	if err != nil {
		return err
	}
	defer reader.Close(ctx)
	for len(c.wanted) > 0 {
		stored, err := reader.Next(ctx)
		if err != nil || len(stored) == 0 {
			return err
		}
		for _, s := range stored {
			delete(c.wanted, s.ID)
		}
	}
	return nil
}

const logAtOnce = 10000

const logQuery = `
select o.created_at, o.event_id, o.name, p.event_id is not null
from (
	select created_at, event_id, name from outbox
	where (created_at, event_id) > ($1, $2) and created_at >= $1 and created_at < $3
	order by created_at, event_id limit $4) o
left join outbox_pending p using (created_at, event_id)
order by created_at, event_id`

// readLog reads the next events of the log, at most so many. What waits to be published is
// not missing.
func (c *comparison) readLog(ctx context.Context, most int) error {
	rows, err := c.tx.Query(ctx, logQuery, c.last.CreatedAt, [16]byte(c.last.ID), c.until, most)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	var e Logged
	var id [16]byte
	var pending bool
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&e.CreatedAt, &id, &e.Name, &pending}, func() error {
		e.ID = id
		c.last = e
		n++
		switch {
		case !pending:
			c.wanted[e.ID] = e
		case c.waiting.IsZero():
			c.waiting = e.CreatedAt
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	c.events += n
	c.logRead = n < most
	return nil
}

const requeueTheseStatement = `
with repair as (
	update outbox_stream set repairs = repairs + 1 where stream = $1 returning repairs)
insert into outbox_pending (created_at, event_id, repair)
select missing.created_at, missing.event_id, repair.repairs
from repair, unnest($2::timestamptz[], $3::uuid[]) as missing (created_at, event_id)
on conflict (created_at, event_id) do update set repair = excluded.repair`

// keep queues what is missing and notes what was compared. What was left is suspected.
func (c *comparison) keep(ctx context.Context) error {
	if len(c.missing) > 0 {
		days, ids := make([]time.Time, len(c.missing)), make([][16]byte, len(c.missing))
		for i, e := range c.missing {
			days[i], ids[i] = e.CreatedAt, e.ID
		}
		if _, err := c.tx.Exec(ctx, requeueTheseStatement, c.stream.Name, days, ids); err != nil {
			return fmt.Errorf("queue missing events: %w", err)
		}
	}
	until := c.until
	if !c.waiting.IsZero() {
		until = c.waiting
	}
	var left *time.Time
	if !c.logRead {
		left = &c.until
	}
	if _, err := c.tx.Exec(ctx, comparedStatement, c.stream.Name, until, len(c.missing), c.raised, left); err != nil {
		return fmt.Errorf("note what was compared: %w", err)
	}
	return nil
}
