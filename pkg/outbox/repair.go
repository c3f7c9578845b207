package outbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// restartMargin is how far back events are published again after the server
// restarted: it must exceed the server's sync_interval, which is how much an
// acknowledged message may be younger than the disk.
const restartMargin = time.Minute

// watchStream compares the stream with what it was, and has published again what
// the server may have lost. Consumers recognise what they had.
func (r *Relay) watchStream(ctx context.Context) {
	if r.bus.EnsureStream(ctx, r.stream) != nil {
		return // ctx has ended
	}
	tick := time.NewTicker(r.tempo.watchEvery)
	defer tick.Stop()
	for {
		if r.bus.Connected() {
			if err := r.compare(ctx); err != nil && ctx.Err() == nil {
				r.log.Warn("cannot compare the stream with the outbox", zap.Error(err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// compare requeues what the stream may lack since it was last seen, and remembers
// its condition, in one transaction. Replicas do so in turn, each with a condition
// younger than what is remembered.
func (r *Relay) compare(ctx context.Context) error {
	return postgres.Transact(ctx, r.pool, func(tx *postgres.Tx) error {
		before, known, err := r.recall(ctx, tx)
		if err != nil {
			return err
		}
		now, err := r.bus.Inspect(ctx, r.stream)
		if err != nil {
			return err
		}
		if known {
			if err := r.repair(ctx, tx, before, now); err != nil {
				return err
			}
			if err := r.suspect(ctx, tx, before, now); err != nil {
				return err
			}
		}
		return r.remember(ctx, tx, before, now)
	})
}

func (r *Relay) repair(ctx context.Context, tx *postgres.Tx, before memory, now bus.Condition) error {
	since, reason := lostSince(before, now)
	if reason == "" {
		return nil
	}
	n, err := Republish(ctx, tx, since)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() {
		repairs.WithLabelValues(r.stream.Name).Inc()
		repaired.WithLabelValues(r.stream.Name).Add(float64(n))
	})
	r.log.Info("the stream may lack events; they are published again",
		zap.String("stream", r.stream.Name), zap.String("reason", reason), zap.Time("since", since), zap.Int64("events", n))
	return nil
}

// memory is the condition in which the stream was seen last.
type memory struct {
	servers   []string // every process that it was seen on, the last one at the end
	created   time.Time
	firstSeq  uint64
	lastSeq   uint64
	holes     int
	checkedAt time.Time
	drained   *time.Time // the oldest event that was published late, in the minute before checkedAt or since; nil: none
	clock     time.Time  // now
}

const recallQuery = `
select servers, created, first_seq, last_seq, holes, checked_at, (select min(oldest) from outbox_drained), now()
from outbox_stream where stream = $1 for update`

func (r *Relay) recall(ctx context.Context, tx *postgres.Tx) (m memory, known bool, err error) {
	var firstSeq, lastSeq int64
	err = tx.QueryRow(ctx, recallQuery, r.stream.Name).Scan(
		&m.servers, &m.created, &firstSeq, &lastSeq, &m.holes, &m.checkedAt, &m.drained, &m.clock)
	if postgres.Absent(err) {
		return memory{}, false, nil
	}
	if err != nil {
		return memory{}, false, fmt.Errorf("recall the stream's condition: %w", err)
	}
	m.firstSeq, m.lastSeq = uint64(firstSeq), uint64(lastSeq)
	return m, true, nil
}

// serversKept is more than one cluster has members between two restarts of one.
const serversKept = 32

const rememberStatement = `
insert into outbox_stream (stream, servers, created, first_seq, last_seq, holes) values ($1, $2, $3, $4, $5, $6)
on conflict (stream) do update
set servers = excluded.servers, created = excluded.created, first_seq = excluded.first_seq, last_seq = excluded.last_seq,
	holes = excluded.holes, checked_at = now()`

const forgetDrainedStatement = `delete from outbox_drained where drained_at < now() - $1::interval`

func (r *Relay) remember(ctx context.Context, tx *postgres.Tx, before memory, now bus.Condition) error {
	servers := before.servers
	if !slices.Contains(servers, now.ServerID) {
		servers = append(servers, now.ServerID)
		servers = servers[max(len(servers)-serversKept, 0):]
	}
	_, err := tx.Exec(ctx, rememberStatement, r.stream.Name, servers, now.Created, int64(now.FirstSeq), int64(now.LastSeq), now.Holes)
	if err == nil {
		_, err = tx.Exec(ctx, forgetDrainedStatement, restartMargin)
	}
	if err != nil {
		return fmt.Errorf("remember the stream's condition: %w", err)
	}
	return nil
}

// lostSince tells from when on the stream may lack events, and why; an empty reason
// means that it lacks none. Nothing older than the stream's retention is due: the
// receipts that make a repetition harmless do not live for ever.
func lostSince(before memory, now bus.Condition) (since time.Time, reason string) {
	earliest := before.clock.Add(-bus.Retention)
	switch {
	case !now.Created.Equal(before.created):
		return earliest, "the stream is a new one"
	case now.FirstSeq > max(before.firstSeq, before.lastSeq):
		return earliest, "the stream was emptied"
	case now.LastSeq < before.lastSeq && now.LastTime.IsZero():
		return earliest, "the stream is empty"
	case now.LastSeq < before.lastSeq:
		since, reason = now.LastTime.Add(-restartMargin), "the stream is shorter than it was"
	case !slices.Contains(before.servers, now.ServerID):
		since, reason = before.checkedAt.Add(-restartMargin), "the server has restarted"
	default:
		return time.Time{}, ""
	}
	if before.drained != nil && before.drained.Before(since) {
		since = *before.drained
	}
	if since.Before(earliest) {
		since = earliest
	}
	return since, reason
}

const repairMark = ":r"

// messageID is the id under which the stream gets an event: its own at first, and
// another one for each repair.
func messageID(id event.ID, repair int) string {
	if repair == 0 {
		return id.String()
	}
	return id.String() + repairMark + strconv.Itoa(repair)
}

// repairOf returns the repair for which messageID made the id, or 0.
func repairOf(messageID string) int {
	_, number, _ := strings.Cut(messageID, repairMark)
	repair, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return repair
}

const requeueStatement = `
with repair as (
	update outbox_stream set repairs = repairs + 1 returning repairs)
insert into outbox_pending (created_at, event_id, repair)
select o.created_at, o.event_id, repair.repairs from outbox o, repair where o.created_at >= $1
on conflict (created_at, event_id) do update set repair = excluded.repair`

// Republish has every event that was made since then published again, under message
// ids that the stream has not seen, and returns how many that are. The relay does so by
// itself where it sees that the stream lost something; an operator does it for a gap
// that the relay could not see. Nothing is published before a relay has run once.
func Republish(ctx context.Context, db execer, since time.Time) (events int64, err error) {
	tag, err := db.Exec(ctx, requeueStatement, since)
	if err != nil {
		return 0, fmt.Errorf("queue events again: %w", postgres.Explain(err))
	}
	return tag.RowsAffected(), nil
}

const waitingQuery = `select count(*) from outbox_pending`

// Waiting tells how many events the stream has not acknowledged yet.
func Waiting(ctx context.Context, pool *pgxpool.Pool) (events int64, err error) {
	if err := pool.QueryRow(ctx, waitingQuery).Scan(&events); err != nil {
		return 0, fmt.Errorf("count what waits to be published: %w", postgres.Explain(err))
	}
	return events, nil
}
