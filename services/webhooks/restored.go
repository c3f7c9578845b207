package webhooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
)

func restoredCommand(ctx context.Context, deps service.Deps, args []string) error {
	if len(args) != 1 {
		return errors.New("name the moment of the restore: now, or a time such as 2026-07-14T10:00:00Z")
	}
	now := deps.Now()
	if args[0] == "now" {
		return restored(ctx, deps.Pool, now, os.Stdout)
	}
	at, err := time.Parse(time.RFC3339, args[0])
	if err != nil {
		return fmt.Errorf("%q is neither now nor a time such as 2026-07-14T10:00:00Z", args[0])
	}
	if at.After(now) {
		return fmt.Errorf("%s is still to come", args[0])
	}
	return restored(ctx, deps.Pool, at, os.Stdout)
}

const (
	muteStatement = `
update endpoints set restored_at = greatest(restored_at, $1)
where deleted_at is null and created_at < $1`

	stopReplaysStatement = `update replays set state = 'stopped', ended_at = $1 where state = 'running'`

	forsakeStatement = `
with unfinished as (
	select tenant_id, endpoint_id, delivery_id from pending
	where created_at < $1
	limit $2 for update),
lost as (
	delete from pending p using unfinished u
	where p.tenant_id = u.tenant_id and p.endpoint_id = u.endpoint_id and p.delivery_id = u.delivery_id
	returning p.*)
insert into deliveries (tenant_id, delivery_id, created_at, event_id, endpoint_id, name, state)
select tenant_id, delivery_id, created_at, event_id, endpoint_id, name, 'unknown' from lost`
)

const forsakeAtOnce = 5000

// restored is for a database that was restored from a backup: what it takes for
// unfinished may have been sent since the backup was made. Deliveries of events from
// before the moment become unknown, replays stop, and events from before it that are
// heard of once more are kept for the feed and sent to nobody. It can be broken off and
// begun anew, and must have ended before the service starts.
func restored(ctx context.Context, pool *pgxpool.Pool, at time.Time, out io.Writer) error {
	err := postgres.Transact(ctx, pool, func(tx *postgres.Tx) error {
		if _, err := tx.Exec(ctx, muteStatement, at); err != nil {
			return fmt.Errorf("mute endpoints: %w", err)
		}
		if _, err := tx.Exec(ctx, stopReplaysStatement, at); err != nil {
			return fmt.Errorf("stop replays: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	total := int64(0)
	for more := true; more; {
		forsaken, err := pool.Exec(ctx, forsakeStatement, at, forsakeAtOnce)
		if err != nil {
			return fmt.Errorf("end deliveries: %w", postgres.Explain(err))
		}
		total += forsaken.RowsAffected()
		more = forsaken.RowsAffected() == forsakeAtOnce
	}
	fmt.Fprintf(out, "%d deliveries are unknown now; events from before %s are sent to nobody\n", total, at.UTC().Format(time.RFC3339))
	return nil
}
