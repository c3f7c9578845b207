package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
)

// lone is one service that listens, at work without the others. NATS has a process of
// its own, and this one takes the place of the sales service: it announces the key of
// the only tenant and publishes what was sold.
type lone struct {
	ground   *ground
	role     role
	database string
	nats     *child
	bus      *bus.Bus
	announce func() // ends the announcing of the key
	service  *child // nil: it does not run
	shop     *shop
	tenant   uuid.UUID
}

// startLone starts the service on a fresh database and an empty stream.
func startLone(ctx context.Context, g *ground, r role, database string) (_ *lone, err error) {
	l := &lone{ground: g, role: r, database: database, tenant: uuid.Must(uuid.NewV7())}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.stop())
		}
	}()
	if err := g.fresh(ctx, database); err != nil {
		return nil, err
	}
	if l.nats, err = startChild(g, assignment{Role: roleNATS}); err != nil {
		return nil, err
	}
	if l.bus, err = bus.Connect(bus.Config{URL: l.natsURL(), Name: "bench"}, zap.NewNop()); err != nil {
		return nil, err
	}
	for _, stream := range []bus.Stream{bus.Sales, bus.Commissions, bus.Goals} {
		if err := l.bus.EnsureStream(ctx, stream); err != nil {
			return nil, err
		}
	}
	if err := l.announceKey(ctx); err != nil {
		return nil, err
	}
	if err := l.resume(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *lone) natsURL() string { return "nats://" + l.nats.Address }

// announceKey tells of a new key, as the sales service would, until the service stops.
func (l *lone) announceKey(ctx context.Context) error {
	text, id, hash, err := auth.NewSecret()
	if err != nil {
		return err
	}
	l.shop = &shop{key: text, TenantID: l.tenant.String()}
	keys := []auth.Key{{ID: id, Hash: hash, TenantID: l.tenant, Scopes: auth.AllScopes, Version: 1}}
	announcer := auth.NewAnnouncer(l.bus, zap.NewNop(), func(context.Context, int64) ([]auth.Key, error) { return keys, nil })
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = announcer.Run(ctx) // it never fails
	}()
	l.announce = func() {
		cancel()
		<-ended
	}
	return nil
}

// pause stops the service. What is published meanwhile waits in the stream.
func (l *lone) pause() error {
	if l.service == nil {
		return nil
	}
	stopped := l.service
	l.service = nil
	if err := stopped.stop(); err != nil {
		return err
	}
	return stopped.discard()
}

// resume starts the service again.
func (l *lone) resume() (err error) {
	a := assignment{Role: l.role, DatabaseURL: l.ground.postgres.URL(l.database), NATSURL: l.natsURL()}
	if l.service, err = startChild(l.ground, a); err == nil {
		l.shop.address = l.service.Address
	}
	return err
}

// stop ends everything.
func (l *lone) stop() error {
	err := l.pause()
	if l.announce != nil {
		l.announce()
	}
	if l.bus != nil {
		l.bus.Close()
	}
	if l.nats != nil {
		if err = errors.Join(err, l.nats.stop()); err == nil {
			err = l.nats.discard()
		}
	}
	return err
}

// call makes one call of the service's API.
func (l *lone) call(ctx context.Context, method, path string, body, into any) error {
	return l.shop.untilKnown(ctx, func() error { return l.shop.call(ctx, l.shop.key, method, path, body, into) })
}

const publishAtOnce = 2000

// publish puts the events into their stream.
func (l *lone) publish(ctx context.Context, events []event.Sealed) error {
	for len(events) > 0 {
		n := min(len(events), publishAtOnce)
		outgoing := make([]bus.Outgoing, n)
		for i, e := range events[:n] {
			outgoing[i] = bus.Outgoing{Sealed: e, MessageID: e.ID.String()}
		}
		if _, err := l.bus.Publish(ctx, outgoing); err != nil {
			return fmt.Errorf("publish a backlog: %w", err)
		}
		events = events[n:]
	}
	return nil
}

// workOff measures how fast the service, which is paused, handles what has been
// published for its consumer: from its start until it has acknowledged the last event,
// which it does after the commit.
func (l *lone) workOff(ctx context.Context, consumer string, backlog []event.Sealed) (m measured, err error) {
	if err := l.publish(ctx, backlog); err != nil {
		return m, err
	}
	if err := l.ground.settle(ctx); err != nil {
		return m, err
	}
	if err := l.resume(); err != nil {
		return m, err
	}
	events, start := int64(len(backlog)), time.Now()
	service, nats := l.service.cmd.Process.Pid, l.nats.cmd.Process.Pid
	before := l.ground.effort(service, nats)
	err = await(ctx, "events that were handled", 20*time.Millisecond, events, func() (int64, error) {
		return l.handled(ctx, consumer, events)
	})
	took := time.Since(start)
	m = measured{float64(events) / took.Seconds(), l.ground.effort(service, nats).since(before).perSale(events)}
	return m, err
}

// handled is how many of so many sales the consumer has acknowledged.
func (l *lone) handled(ctx context.Context, consumer string, of int64) (int64, error) {
	durable, err := l.bus.JetStream().Consumer(ctx, bus.Sales.Name, consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) { // the service is about to make it
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("inspect consumer %s: %w", consumer, err)
	}
	info := durable.CachedInfo() // as of this moment
	return of - int64(info.NumPending) - int64(info.NumAckPending), nil
}
