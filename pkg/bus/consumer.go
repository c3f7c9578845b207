package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
)

// Consumer is one reason to listen: a durable name, the events it hears, and what
// it does with them. Every replica of a service shares the durable name, and an
// event goes to one of them.
type Consumer struct {
	Name   string
	Events []string
	handle func(ctx context.Context, tx *postgres.Tx, events []event.Sealed) error

	counted string // the query of CountedBy; "": its receipts are counted
}

// On makes a consumer of one kind of event.
//
// The handler gets events that this consumer has not handled before, up to a few
// hundred of any tenants, in no promised order, and a transaction in which its
// effects commit together with the receipts. Whatever it returns, it cannot lose an
// event or see one twice: after an error the batch is tried again in halves, until
// the one event that cannot be handled stands alone. A fault decides that event's
// fate: Invalid, Rule, NotFound and Conflict park it; everything else has it come
// again later, for a day where it is NotYet, after which that parks it too.
func On[T event.Payload](name string, handle func(ctx context.Context, tx *postgres.Tx, events []event.Event[T]) error) Consumer {
	var kind T
	return Consumer{Name: name, Events: []string{kind.EventName()},
		handle: func(ctx context.Context, tx *postgres.Tx, sealed []event.Sealed) error {
			events := make([]event.Event[T], len(sealed))
			for i, s := range sealed {
				e, err := event.Read[T](s)
				if err != nil {
					return fault.New(fault.Invalid, "invalid_event", err.Error())
				}
				events[i] = e
			}
			return handle(ctx, tx, events)
		}}
}

// OnAny is On for a handler that takes events of several kinds as they are. The
// names must be of one stream.
func OnAny(name string, names []string, handle func(ctx context.Context, tx *postgres.Tx, events []event.Sealed) error) Consumer {
	return Consumer{Name: name, Events: slices.Clone(names), handle: handle}
}

// apply hands the events to the consumer in one transaction.
func (c Consumer) apply(ctx context.Context, pool *pgxpool.Pool, events []event.Sealed) error {
	return postgres.Transact(ctx, pool, func(tx *postgres.Tx) error {
		tx.Later(postgres.Doing("set how to plan"), postgres.PlanOnce)
		fresh, err := claim(ctx, tx, c.Name, events)
		if err != nil || len(fresh) == 0 {
			return err
		}
		for i := range fresh {
			spanContext, span := trace.Start(trace.Join(ctx, fresh[i].Traceparent), c.Name)
			fresh[i].Traceparent = trace.Parent(spanContext)
			defer span.End()
		}
		return c.handle(ctx, tx, fresh)
	})
}

// Run consumes until ctx ends, whatever happens to the server meanwhile. What had
// been taken but not committed by then is given back for another replica.
func (b *Bus) Run(ctx context.Context, pool *pgxpool.Pool, consumer Consumer) error {
	return b.newRunner(pool, consumer, usualTempo).run(ctx)
}

// Waiting tells how many events of the stream the consumer has still to handle: those
// that it was not given and those that come again. It is an error while the server is
// away, or before the consumer has run on it for the first time.
func (b *Bus) Waiting(ctx context.Context, consumer Consumer) (events int64, err error) {
	if !b.Connected() {
		return 0, errAway
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	durable, err := b.js.Consumer(ctx, streamOf(consumer.Events[0]).Name, consumer.Name)
	if err != nil {
		return 0, fmt.Errorf("ask for what waits for %s: %w", consumer.Name, err)
	}
	info := durable.CachedInfo()
	return int64(info.NumPending) + int64(info.NumAckPending), nil
}

func (b *Bus) newRunner(pool *pgxpool.Pool, consumer Consumer, tempo tempo) *runner {
	for _, count := range []*prometheus.CounterVec{handled, retried, parked} {
		count.WithLabelValues(consumer.Name) // what happens first shows as a rise from 0
	}
	return &runner{
		bus: b, pool: pool, consumer: consumer, stream: streamOf(consumer.Events[0]), tempo: tempo,
		log: b.log.With(zap.String("consumer", consumer.Name)),
	}
}
