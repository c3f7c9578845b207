package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
)

const (
	clockSkew = 30 * time.Second // between whoever made an event and the server that stored it, at most
	// restartDoubt is how far back the stream is compared after its server restarted:
	// farther than restartMargin, for a server that lost more than it should.
	restartDoubt = time.Hour
	// compareBack bounds how much a usual round compares again, whatever has waited.
	compareBack = time.Hour
	// expiring events may be gone from the stream, as they should.
	expiring = 2 * clockSkew
)

// reconcileRegularly compares the outbox with the stream event by event.
func (r *Relay) reconcileRegularly(ctx context.Context) {
	r.measureCompared(ctx)
	tick := time.NewTicker(r.tempo.reconcileEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !r.bus.Connected() {
			continue
		}
		if err := r.reconcile(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("cannot compare the outbox with the stream", zap.Error(err))
		}
	}
}

const lastComparedQuery = `select least(compared_at, now()) from outbox_stream where stream = $1 and compared_at is not null`

// measureCompared sets the metric to when the stream was compared last or, where that is
// not known, to now: that it never is shows in the metric's age as well.
func (r *Relay) measureCompared(ctx context.Context) {
	last := time.Now()
	if err := r.pool.QueryRow(ctx, lastComparedQuery, r.stream.Name).Scan(&last); err != nil && !postgres.Absent(err) && ctx.Err() == nil {
		r.log.Warn("cannot read when the stream was compared", zap.Error(err))
	}
	compared.WithLabelValues(r.stream.Name).Set(float64(last.Unix()))
}

const suspectStatement = `
update outbox_stream set suspect_since = least(suspect_since, $2), suspicions = suspicions + 1 where stream = $1`

// suspect has the stream compared event by event from where it may lack some that no
// repair has published again.
func (r *Relay) suspect(ctx context.Context, tx *postgres.Tx, before memory, now bus.Condition) error {
	var since time.Time
	switch {
	case !now.Created.Equal(before.created):
		return nil // everything is published again
	case now.Holes > before.holes:
		since = before.clock.Add(-bus.Retention)
		r.log.Warn("messages are gone from the middle of the stream; all of it is compared with the outbox",
			zap.String("stream", r.stream.Name), zap.Int("messages", now.Holes-before.holes))
	case !slices.Contains(before.servers, now.ServerID) || now.LastSeq < before.lastSeq:
		since = before.checkedAt.Add(-restartDoubt)
	default:
		return nil
	}
	if _, err := tx.Exec(ctx, suspectStatement, r.stream.Name, since); err != nil {
		return fmt.Errorf("note what is suspected: %w", err)
	}
	return nil
}

// Only one replica, or operator, reconciles at a time. However long that takes, nobody
// else waits for the transaction: until its end it only reads.
const (
	tryReconcilingQuery   = `select pg_try_advisory_xact_lock(hashtext('partilha.reconcile'))`
	awaitReconcilingQuery = `select pg_advisory_xact_lock(hashtext('partilha.reconcile')) is not null`
)

// progress is how far the stream has been compared.
type progress struct {
	now     time.Time
	done    time.Time  // every event made before was seen, or waits
	suspect *time.Time // since when all is to be compared once more; nil: nothing is suspected
	raised  int64      // how often something was suspected, ever
	last    *time.Time // when it was compared; nil: never
}

// comparedWithin tells whether the stream was compared so shortly ago. What was compared in
// the future was so before the database's clock was set back, and does not count.
func (p progress) comparedWithin(d time.Duration) bool {
	return p.last != nil && !p.last.After(p.now) && p.now.Sub(*p.last) < d
}

const progressQuery = `select now(), compared_until, suspect_since, suspicions, compared_at from outbox_stream where stream = $1`

func readProgress(ctx context.Context, tx *postgres.Tx, stream string) (p progress, err error) {
	err = tx.QueryRow(ctx, progressQuery, stream).Scan(&p.now, &p.done, &p.suspect, &p.raised, &p.last)
	if err != nil && !postgres.Absent(err) {
		return p, fmt.Errorf("read what is compared: %w", err)
	}
	return p, err
}

// What was suspected during the comparison may concern what had been read by then.
const comparedStatement = `
update outbox_stream
set compared_at = now(), compared_until = $2, missed = missed + $3,
	suspect_since = case when suspicions = $4 then $5 else least(suspect_since, $5) end
where stream = $1`

// reconcile compares what was made since the last time, or since whatever is suspected,
// unless another replica does so or has just done it.
func (r *Relay) reconcile(ctx context.Context) error {
	return postgres.Transact(ctx, r.pool, func(tx *postgres.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, tryReconcilingQuery).Scan(&mine); err != nil || !mine {
			return err
		}
		p, err := readProgress(ctx, tx, r.stream.Name)
		if postgres.Absent(err) {
			return nil // the stream has not been seen yet
		}
		if err != nil {
			return err
		}
		if p.suspect == nil && p.comparedWithin(r.tempo.reconcileEvery/2) {
			compared.WithLabelValues(r.stream.Name).Set(float64(p.last.Unix()))
			return nil
		}
		since := later(p.done.Add(-r.tempo.closeAfter), p.now.Add(-compareBack))
		if p.suspect != nil && p.suspect.Before(since) {
			since = *p.suspect
		}
		c := comparison{
			tx: tx, bus: r.bus, stream: r.stream, progress: p,
			since: since, until: p.now.Add(-r.tempo.closeAfter), atOnce: r.tempo.compareAtOnce,
		}
		found, err := c.run(ctx)
		if err != nil {
			return err
		}
		tx.AfterCommit(func() { r.report(p, found.Missing) })
		return nil
	})
}

func (r *Relay) report(p progress, missing []Logged) {
	compared.WithLabelValues(r.stream.Name).Set(float64(p.now.Unix()))
	missed.WithLabelValues(r.stream.Name).Add(float64(len(missing)))
	if len(missing) > 0 {
		r.log.Warn("the stream lacked events; they are published again", zap.String("stream", r.stream.Name),
			zap.Int("events", len(missing)), zap.Time("first", missing[0].CreatedAt), zap.Stringer("event_id", missing[0].ID))
	}
}

// ReconcileNow compares everything that the stream should hold with the outbox, queues
// again what is missing, which the running relay publishes, and returns what it found. It
// has every window counted and told again, too. It waits for a relay that is comparing,
// and fails where none has ever seen the stream.
func ReconcileNow(ctx context.Context, pool *pgxpool.Pool, b *bus.Bus, stream bus.Stream) (Comparison, error) {
	return reconcileNow(ctx, pool, b, stream, usualTempo)
}

func reconcileNow(ctx context.Context, pool *pgxpool.Pool, b *bus.Bus, stream bus.Stream, tempo tempo) (found Comparison, err error) {
	err = postgres.Transact(ctx, pool, func(tx *postgres.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, awaitReconcilingQuery).Scan(&mine); err != nil {
			return fmt.Errorf("wait for the reconciler: %w", err)
		}
		p, err := readProgress(ctx, tx, stream.Name)
		if postgres.Absent(err) {
			return ErrNeverRan
		}
		if err != nil {
			return err
		}
		c := comparison{
			tx: tx, bus: b, stream: stream, progress: p,
			since: p.now.Add(-bus.Retention), until: p.now.Add(-tempo.closeAfter), atOnce: tempo.compareAtOnce,
		}
		if found, err = c.run(ctx); err != nil {
			return err
		}
		return recount(ctx, tx)
	})
	return found, err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
