package bus

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/event"
)

// Apply hands events to the consumer as one batch, without a message.
func (c Consumer) Apply(ctx context.Context, pool *pgxpool.Pool, events ...event.Sealed) error {
	return c.apply(ctx, pool, events)
}

// RunHastily is Run with less patience than a service has.
func (b *Bus) RunHastily(ctx context.Context, pool *pgxpool.Pool, consumer Consumer, ackWait, stalledAfter time.Duration) error {
	return b.newRunner(pool, consumer, tempo{ackWait: ackWait, watchEvery: stalledAfter / 4, stalledAfter: stalledAfter, awaited: awaited}).run(ctx)
}

// RunAwaiting is Run for events that wait for their cause for so many deliveries only.
func (b *Bus) RunAwaiting(ctx context.Context, pool *pgxpool.Pool, consumer Consumer, deliveries uint64) error {
	hasty := usualTempo
	hasty.awaited = deliveries
	return b.newRunner(pool, consumer, hasty).run(ctx)
}

// CheckHastily is CheckRegularly with less patience than a service has.
func CheckHastily(ctx context.Context, pool *pgxpool.Pool, consumers []Consumer, log *zap.Logger, grace time.Duration) error {
	return checkRegularly(ctx, pool, consumers, log, checkTempo{every: 50 * time.Millisecond, grace: grace})
}

// InboxOf is the prefix of the inboxes of a client of that name.
var InboxOf = inboxOf
