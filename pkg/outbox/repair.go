package outbox

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
)

const (
	watchStreamEvery = 2 * time.Second
	// restartMargin is how far back events are published again after the server
	// restarted: it must exceed the server's sync_interval, which is how much an
	// acknowledged message may be younger than the disk.
	restartMargin = time.Minute
)

// watchStream compares the stream with what it was, and has published again what
// the server may have lost. Consumers recognise what they had.
func (r *Relay) watchStream(ctx context.Context) {
	tick := time.NewTicker(watchStreamEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		if !r.bus.Connected() {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		now, err := r.bus.Inspect(ctx, r.stream)
		if err == nil {
			err = r.compare(ctx, now)
		}
		if err != nil && ctx.Err() == nil {
			r.log.Warn("cannot inspect the stream", zap.Error(err))
		}
	}
}

const seenQuery = `
select server_id, created, last_seq, checked_at, now() from outbox_stream where stream = $1 for update`

const rememberStatement = `
insert into outbox_stream (stream, server_id, created, last_seq) values ($1, $2, $3, $4)
on conflict (stream) do update
set server_id = excluded.server_id, created = excluded.created, last_seq = excluded.last_seq, checked_at = now()`

// compare requeues what the stream may lack since it was last seen, and remembers
// its condition, in one transaction that replicas take in turn.
func (r *Relay) compare(ctx context.Context, now bus.Condition) error {
	return postgres.Transact(ctx, r.pool, func(tx *postgres.Tx) error {
		var before bus.Condition
		var lastSeq int64
		var checkedAt, clock time.Time
		err := tx.QueryRow(ctx, seenQuery, r.stream.Name).Scan(&before.ServerID, &before.Created, &lastSeq, &checkedAt, &clock)
		if err != nil && !postgres.Absent(err) {
			return fmt.Errorf("read the stream's last condition: %w", err)
		}
		if err == nil {
			before.LastSeq = uint64(lastSeq)
			if since, reason := lostSince(before, now, checkedAt, clock); reason != "" {
				n, err := r.requeue(ctx, tx, since)
				if err != nil {
					return err
				}
				r.log.Info("the stream may lack events; they are published again",
					zap.String("stream", r.stream.Name), zap.String("reason", reason), zap.Time("since", since), zap.Int64("events", n))
			}
		}
		if _, err := tx.Exec(ctx, rememberStatement, r.stream.Name, now.ServerID, now.Created, int64(now.LastSeq)); err != nil {
			return fmt.Errorf("remember the stream's condition: %w", err)
		}
		return nil
	})
}

// lostSince tells from when on the stream may lack events, and why; an empty reason
// means that it lacks none. Nothing older than the stream's retention is due: the
// receipts that make a repetition harmless do not live for ever.
func lostSince(before, now bus.Condition, checkedAt, clock time.Time) (since time.Time, reason string) {
	earliest := clock.Add(-bus.Retention)
	switch {
	case !now.Created.Equal(before.Created):
		return earliest, "the stream is a new one"
	case now.LastSeq < before.LastSeq && now.LastTime.IsZero():
		return earliest, "the stream is empty"
	case now.LastSeq < before.LastSeq:
		since, reason = now.LastTime.Add(-restartMargin), "the stream is shorter than it was"
	case now.ServerID != before.ServerID:
		since, reason = checkedAt.Add(-restartMargin), "the server has restarted"
	default:
		return time.Time{}, ""
	}
	if since.Before(earliest) {
		since = earliest
	}
	return since, reason
}

const requeueStatement = `
with repair as (
	update outbox_stream set repairs = repairs + 1 where stream = $1 returning repairs)
insert into outbox_pending (created_at, event_id, repair)
select o.created_at, o.event_id, repair.repairs from outbox o, repair where o.created_at >= $2
on conflict (created_at, event_id) do update set repair = excluded.repair`

// requeue has every event since then published again, under message ids that the
// stream has not seen.
func (r *Relay) requeue(ctx context.Context, tx *postgres.Tx, since time.Time) (int64, error) {
	tag, err := tx.Exec(ctx, requeueStatement, r.stream.Name, since)
	if err != nil {
		return 0, fmt.Errorf("requeue events: %w", err)
	}
	return tag.RowsAffected(), nil
}

// Republish has every event that was made since then published again, for an
// operator who knows of a gap that the relay could not see. It returns how many.
func Republish(ctx context.Context, r *Relay, since time.Time) (events int64, err error) {
	err = postgres.Transact(ctx, r.pool, func(tx *postgres.Tx) error {
		events, err = r.requeue(ctx, tx, since)
		return err
	})
	return events, err
}
