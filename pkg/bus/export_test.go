package bus

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/event"
)

// Apply hands events to the consumer as one batch, without a message.
func (c Consumer) Apply(ctx context.Context, pool *pgxpool.Pool, events ...event.Sealed) error {
	return c.apply(ctx, pool, events)
}

// RunHastily is Run with less patience than a service has.
func (b *Bus) RunHastily(ctx context.Context, pool *pgxpool.Pool, consumer Consumer, ackWait, stalledAfter time.Duration) error {
	return b.newRunner(pool, consumer, tempo{ackWait: ackWait, watchEvery: stalledAfter / 4, stalledAfter: stalledAfter}).run(ctx)
}

// InboxOf is the prefix of the inboxes of a client of that name.
var InboxOf = inboxOf
