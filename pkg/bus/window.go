package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
)

// A consumer is given its stream's windows among its events, so that it hears of a window
// only after it was given what is counted there, however far behind it is. What was given
// back and comes again later has the time of grace to do so.

// CountedBy has the consumer's windows checked by what it has made of its events, instead
// of by its receipts alone. The query returns one row for the events made known from $1
// on and before $2 whose names are in $3: how many are here, the sum of their amount_brl
// and that of their commission_amount_brl, in centavos; null for a sum that is not known.
func (c Consumer) CountedBy(query string) Consumer {
	c.counted = query
	return c
}

// hears are the subjects of the consumer: its events, and its stream's windows.
func (c Consumer) hears(stream Stream) []string {
	return append(slices.Clone(c.Events), stream.WindowName())
}

const hearStatement = `
insert into windows (consumer, started_at, ended_at, stream, counted_at, events, centavos, commission_centavos)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (consumer, started_at) do update
set counted_at = excluded.counted_at, heard_at = excluded.heard_at, agrees = false,
	events = excluded.events, centavos = excluded.centavos, commission_centavos = excluded.commission_centavos
where windows.counted_at < excluded.counted_at`

// hear notes what the stream's owner has told of a window.
func (c Consumer) hear(ctx context.Context, pool *pgxpool.Pool, stream Stream, w event.Window) error {
	sum := w.Of(c.Events)
	if time.Since(w.End) > windowsKept {
		return nil
	}
	_, err := pool.Exec(ctx, hearStatement, c.Name, w.Start, w.End, stream.Name, w.CountedAt, sum.Count, sum.Centavos, sum.Commissions)
	if err != nil {
		return fmt.Errorf("note window: %w", postgres.Explain(err))
	}
	return nil
}

// takeWindow hears one message that tells of a window. One that cannot be read says
// nothing, and is let go.
func (r *runner) takeWindow(ctx context.Context, m jetstream.Msg) {
	w, err := event.OpenWindow(m.Data())
	if err != nil {
		r.log.Error("a window cannot be read", zap.Error(err))
		_ = m.TermWithReason("not a window")
		return
	}
	if err := r.consumer.hear(ctx, r.pool, r.stream, w); err != nil {
		if ctx.Err() == nil && fault.KindOf(err) != fault.Unavailable {
			r.log.Error("cannot note a window yet", zap.Error(err))
		}
		_ = m.NakWithDelay(windowAgain)
		return
	}
	_ = m.Ack() // where that gets lost the window comes again
}
