package outbox

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
)

// NewHastyRelay is NewRelay with less patience than a service has.
func NewHastyRelay(pool *pgxpool.Pool, b *bus.Bus, stream bus.Stream, log *zap.Logger) *Relay {
	r := NewRelay(pool, b, stream, log)
	r.tempo = tempo{sweepEvery: 50 * time.Millisecond, sweepAge: 200 * time.Millisecond, watchEvery: 100 * time.Millisecond}
	return r
}

// Forget settles what the stream has acknowledged.
var Forget = forget

// MessageID is the id under which the stream gets an event.
var MessageID = messageID
