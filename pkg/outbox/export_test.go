package outbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
)

// NewHastyRelay is NewRelay with less patience than a service has.
func NewHastyRelay(pool *pgxpool.Pool, b *bus.Bus, stream bus.Stream, log *zap.Logger) *Relay {
	r := NewRelay(pool, b, stream, log)
	r.tempo = tempo{
		sweepEvery: 50 * time.Millisecond, sweepAge: 200 * time.Millisecond, watchEvery: 100 * time.Millisecond,
		measureEvery: 50 * time.Millisecond, reconcileEvery: time.Hour, closeAfter: time.Second, compareAtOnce: compareAtOnce,
	}
	return r
}

// NewReconcilingRelay is NewHastyRelay for a service that reconciles all the time.
func NewReconcilingRelay(pool *pgxpool.Pool, b *bus.Bus, stream bus.Stream, log *zap.Logger) *Relay {
	r := NewHastyRelay(pool, b, stream, log)
	r.tempo.reconcileEvery = 200 * time.Millisecond
	return r
}

// TellWindows tells of the windows that are to be counted.
func (r *Relay) TellWindows(ctx context.Context) error { return r.tellWindows(ctx) }

// CompareLittle has the relay keep only so many events in memory while it compares.
func (r *Relay) CompareLittle(events int) { r.tempo.compareAtOnce = events }

// ReconcileALittle is ReconcileNow with a relay's patience and memory.
func (r *Relay) ReconcileALittle(ctx context.Context) (Comparison, error) {
	return reconcileNow(ctx, r.pool, r.bus, r.stream, r.tempo)
}

// Forget settles what the stream has acknowledged.
var Forget = forget

// MessageID is the id under which the stream gets an event.
var MessageID = messageID
