package bus

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

//go:embed migrations/*.sql
var migrations embed.FS

// receiptDays is longer than any outbox can publish an event again, so that a
// receipt outlives every delivery of its event.
const receiptDays = 9

// Schema are the tables of a service that consumes: receipts and parked events.
var Schema = postgres.Schema{
	Name: "bus", FS: postgres.Embedded(migrations),
	Partitions: []postgres.Partition{{Table: "receipts", Days: receiptDays}},
}

// Replicas that claim the same events, each in an order of its own, would wait for
// one another: so all claim in the order of the key.
const claimStatement = `
insert into receipts (created_at, event_id, consumer)
select created_at, event_id, $3 from unnest($1::timestamptz[], $2::uuid[]) as claim (created_at, event_id)
order by created_at, event_id
on conflict do nothing
returning event_id`

// claim records that consumer handles these events and returns those that it had
// not handled before, each once. The receipts count only if tx commits; so do those that
// were there already, since what they stand for is acknowledged then.
func claim(ctx context.Context, tx *postgres.Tx, consumer string, events []event.Sealed) ([]event.Sealed, error) {
	days := make([]time.Time, len(events))
	ids := make([][16]byte, len(events))
	for i, e := range events {
		days[i], ids[i] = e.CreatedAt, e.ID
	}
	rows, err := tx.Query(ctx, claimStatement, days, ids, consumer)
	if err != nil {
		return nil, fmt.Errorf("claim receipts: %w", err)
	}
	claimed, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return nil, fmt.Errorf("claim receipts: %w", err)
	}
	mine := make(map[event.ID]bool, len(claimed))
	for _, id := range claimed {
		mine[id] = true
	}
	fresh := make([]event.Sealed, 0, len(claimed))
	for _, e := range events {
		if mine[e.ID] {
			fresh = append(fresh, e)
			delete(mine, e.ID)
		}
	}
	if len(fresh) < len(events) {
		tx.Vouch()
	}
	return fresh, nil
}
