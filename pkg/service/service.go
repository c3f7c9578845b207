// Package service is what the four programs have in common: their commands, their
// environment, and a life that starts in order and stops in reverse.
package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// Deps are the servers and instruments that a service is given.
type Deps struct {
	Pool *pgxpool.Pool
	Bus  *bus.Bus
	Log  *zap.Logger
	Now  func() time.Time
	// Limiter bounds how often a key asks; nil: not at all.
	Limiter *web.Limiter
}

// Service is one of the four, wired and not yet running.
type Service interface {
	// Handler answers the service's part of the API and the system's addresses.
	Handler() http.Handler
	// Run does the background work until ctx ends.
	Run(ctx context.Context) error
	// Consumers are what it listens to; none for a service that only publishes.
	Consumers() []bus.Consumer
}

// Ready says whether a service can do its work: it needs PostgreSQL for everything,
// and NATS for all that follows an answer.
func (d Deps) Ready(ctx context.Context) web.Readiness {
	if err := postgres.Reach(ctx, d.Pool); err != nil {
		return web.Readiness{Status: "unavailable", Reasons: []string{"PostgreSQL cannot be reached"}}
	}
	if !d.Bus.Connected() {
		return web.Readiness{Status: "degraded", Reasons: []string{"NATS cannot be reached; events wait until it can"}}
	}
	return web.Readiness{Status: "ready"}
}

// RunAll runs every part until ctx ends or one of them fails, which stops the others.
func RunAll(ctx context.Context, parts ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}

// Consume runs every consumer until ctx ends, and compares what they have with what they
// were told.
func (d Deps) Consume(consumers []bus.Consumer) func(context.Context) error {
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, consumer := range consumers {
			group.Go(func() error { return d.Bus.Run(ctx, d.Pool, consumer) })
		}
		group.Go(func() error { return bus.CheckRegularly(ctx, d.Pool, consumers, d.Log) })
		return group.Wait()
	}
}

const maintainEvery = time.Hour

// Maintain makes the coming days' partitions and drops those that are past their
// time, at once and then every hour until ctx ends.
func (d Deps) Maintain(schemas []postgres.Schema) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(maintainEvery)
		defer tick.Stop()
		for {
			switch err := d.maintain(ctx, schemas); {
			case err == nil:
				noteMaintained(schemas)
			case ctx.Err() == nil:
				d.Log.Error("cannot maintain partitions", zap.Error(err))
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// maintain makes every partition before it drops one: rows need a place, whatever
// holds up the dropping. What is old is so by this process's clock and by the database's:
// a replica whose clock is ahead would drop everybody's present otherwise.
func (d Deps) maintain(ctx context.Context, schemas []postgres.Schema) error {
	if err := d.ensurePartitions(ctx, schemas); err != nil {
		return err
	}
	now, err := postgres.Clock(ctx, d.Pool)
	if err != nil {
		return err
	}
	if own := d.Now(); own.Before(now) {
		now = own
	}
	var failures []error
	for _, schema := range schemas {
		dropped, err := postgres.DropPartitions(ctx, d.Pool, schema.Partitions, now)
		if len(dropped) > 0 {
			d.Log.Info("dropped partitions", zap.Strings("partitions", dropped))
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("drop partitions of %s: %w", schema.Name, err))
		}
	}
	return errors.Join(failures...)
}

func (d Deps) ensurePartitions(ctx context.Context, schemas []postgres.Schema) error {
	for _, schema := range schemas {
		if err := postgres.EnsurePartitions(ctx, d.Pool, schema.Partitions); err != nil {
			return err
		}
	}
	return nil
}
