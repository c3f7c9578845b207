// Package outbox tells the world what a transaction has done, without ever telling
// what it did not do.
//
// An event is stored in the transaction that it tells of. After the commit a relay
// publishes it from memory; a sweep publishes whatever that missed, for example
// because the process died. The log keeps every event for longer than the stream
// does, so that a stream which lost some is filled again.
package outbox

import (
	"embed"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

//go:embed migrations/*.sql
var migrations embed.FS

// keepDays is longer than a stream keeps a message.
const keepDays = int(bus.Retention/(24*time.Hour)) + 1

// Schema are the tables of a service that publishes.
var Schema = postgres.Schema{
	Name: "outbox", FS: postgres.Embedded(migrations),
	Partitions: []postgres.Partition{{
		Table: "outbox", Days: keepDays,
		KeepWhile: `select exists (select from outbox_pending where created_at >= $1 and created_at < $2)`,
	}},
}

const addStatement = `
with added as (
	insert into outbox (created_at, event_id, name, tenant_id, body, traceparent)
	select * from unnest($1::timestamptz[], $2::uuid[], $3::text[], $4::uuid[], $5::bytea[], $6::text[])
	returning created_at, event_id)
insert into outbox_pending (created_at, event_id) select created_at, event_id from added`

// Add stores events in tx, at its end or with its next statement, and has the relay publish
// them as soon as it commits. An event that is stored already, with the same time, fails
// the transaction: a fact is told once.
func (r *Relay) Add(tx *postgres.Tx, events ...event.Sealed) {
	if len(events) == 0 {
		return
	}
	c := NewColumns(len(events))
	for _, e := range events {
		c.Append(e)
	}
	tx.Later(postgres.Doing("add to outbox"), addStatement, c.CreatedAt, c.ID, c.Name, c.Tenant, c.Body, c.Traceparent)
	tx.AfterCommit(func() { r.Committed(events) })
}

// Columns are events as the arrays that a multi-row statement takes, of types that pgx
// encodes without reflection.
type Columns struct {
	CreatedAt   []time.Time
	ID          [][16]byte
	Name        []string
	Tenant      [][16]byte
	Body        pgtype.FlatArray[[]byte]
	Traceparent []string
}

// NewColumns makes room for n events.
func NewColumns(n int) *Columns {
	return &Columns{
		CreatedAt: make([]time.Time, 0, n), ID: make([][16]byte, 0, n), Name: make([]string, 0, n),
		Tenant: make([][16]byte, 0, n), Body: make(pgtype.FlatArray[[]byte], 0, n), Traceparent: make([]string, 0, n),
	}
}

// Append adds one event to every column.
func (c *Columns) Append(e event.Sealed) {
	c.CreatedAt = append(c.CreatedAt, e.CreatedAt)
	c.ID = append(c.ID, e.ID)
	c.Name = append(c.Name, e.Name)
	c.Tenant = append(c.Tenant, e.TenantID)
	c.Body = append(c.Body, e.Body)
	c.Traceparent = append(c.Traceparent, e.Traceparent)
}
