package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/postgres"
)

// Status is how an outbox stands to its stream.
type Status struct {
	Pending   int64         // events that the stream has not acknowledged
	Oldest    time.Duration // age of the oldest of them; 0: there is none
	Stream    string
	CheckedAt time.Time // when its condition was looked at last
	LastSeq   uint64    // of its newest message by then

	ComparedAt *time.Time // when it was last compared with the log event by event; nil: never
	Suspect    *time.Time // since when all is to be compared once more; nil: nothing is suspected
	Missed     int64      // events that such comparisons found missing, ever
	Repairs    int        // how often events were published again, for whatever reason

	LastWindow *time.Time // the beginning of the last window that was told; nil: none was
}

// ErrNeverRan means that no relay has seen its stream on this database.
var ErrNeverRan = errors.New("no service has run on this database and seen its stream yet")

const statusQuery = `
select (select count(*) from outbox_pending), (select coalesce(extract(epoch from now() - min(created_at)), 0)::bigint from outbox_pending),
	stream, checked_at, last_seq, compared_at, suspect_since, missed, repairs, (select max(started_at) from outbox_windows)
from outbox_stream`

// ReadStatus returns how things stand, or ErrNeverRan.
func ReadStatus(ctx context.Context, pool *pgxpool.Pool) (s Status, err error) {
	var seconds, lastSeq int64
	err = pool.QueryRow(ctx, statusQuery).Scan(&s.Pending, &seconds, &s.Stream, &s.CheckedAt, &lastSeq,
		&s.ComparedAt, &s.Suspect, &s.Missed, &s.Repairs, &s.LastWindow)
	if postgres.Absent(err) {
		return Status{}, ErrNeverRan
	}
	if err != nil {
		return Status{}, fmt.Errorf("read the outbox's status: %w", err)
	}
	s.Oldest, s.LastSeq = time.Duration(seconds)*time.Second, uint64(lastSeq)
	return s, nil
}
