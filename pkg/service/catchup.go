package service

import (
	"context"
	"fmt"
	"os"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
)

const (
	catchUpLook  = 250 * time.Millisecond
	catchUpTell  = 5 * time.Second
	catchUpQuiet = 3 * time.Second // longer than any background work pauses
	catchUpStuck = time.Minute     // longer than an event that failed waits until it comes again
)

// catchUpCommand brings a restored database up to what the others know, before anybody
// is served. Every event that the log has is published again, however old the backup
// is: receipts, of which none is dropped meanwhile, tell those that were handled. What
// follows from the others is made now, so that whoever comes behind finds it made. A
// service that publishes nothing only handles what waits: once it serves, the days of
// an old backup are dropped, and events of them have no place any more.
//
// A database that lacks a migration is refused: nothing could be handled on it.
func (p Program) catchUpCommand() Command {
	return Command{
		Usage: "catch-up", About: "after a restore, before serve: publish all events and handle all that wait",
		Run: func(ctx context.Context, deps Deps, args []string) error {
			if len(args) != 0 {
				return errUsage
			}
			if err := postgres.CheckMigrated(ctx, deps.Pool.Config().ConnString(), p.Schemas...); err != nil {
				return err
			}
			if err := deps.ensurePartitions(ctx, p.Schemas); err != nil {
				return err
			}
			s, err := p.make(ctx, deps)
			if err != nil {
				return err
			}
			if p.has(outbox.Schema) {
				if _, err := outbox.Republish(ctx, deps.Pool, time.Time{}); err != nil {
					return err
				}
			}
			working, stop := context.WithCancel(ctx)
			defer stop()
			return RunAll(working, s.Run, func(ctx context.Context) error {
				defer stop()
				left, err := awaitQuiet(ctx, func(ctx context.Context) (backlog, error) { return p.left(ctx, deps, s.Consumers()) })
				if err == nil {
					fmt.Println(left.outcome())
				}
				return err
			})
		},
	}
}

// awaitQuiet returns once nothing is to be published, and either nothing is to be handled
// or what is comes again and again without success: an event whose cause is parked would
// wait for ever. It says now and then how much there is.
func awaitQuiet(ctx context.Context, look func(context.Context) (backlog, error)) (left backlog, err error) {
	tick := time.NewTicker(catchUpLook)
	defer tick.Stop()
	changed, told := time.Now(), time.Now()
	for {
		before := left
		left, err = look(ctx)
		if err != nil || left.publish > 0 || left != before {
			changed = time.Now()
		}
		switch quiet := time.Since(changed); {
		case quiet >= catchUpStuck, quiet >= catchUpQuiet && left.handle == 0:
			return left, nil
		}
		if time.Since(told) > catchUpTell {
			told = time.Now()
			fmt.Fprintln(os.Stderr, left.told(err))
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-tick.C:
		}
	}
}

// backlog is how many events are still to be published, and to be handled.
type backlog struct{ publish, handle int64 }

func (b backlog) told(err error) string {
	if err != nil {
		return fmt.Sprintf("waiting: %v", err)
	}
	return fmt.Sprintf("%d events are to be published, %d to be handled", b.publish, b.handle)
}

// outcome is what is said in the end.
func (b backlog) outcome() string {
	const all = "every event is published, and handled or parked"
	if b.handle == 0 {
		return all
	}
	return fmt.Sprintf("%s, but for %d that cannot be handled yet: parked list names those that they may wait for", all, b.handle)
}

// left is an error as long as PostgreSQL or NATS cannot be reached, or a consumer is not
// there yet.
func (p Program) left(ctx context.Context, deps Deps, consumers []bus.Consumer) (b backlog, err error) {
	if err := deps.Pool.Ping(ctx); err != nil {
		return b, fmt.Errorf("reach the database: %w", err)
	}
	if p.has(outbox.Schema) {
		if b.publish, err = outbox.Waiting(ctx, deps.Pool); err != nil {
			return b, err
		}
	}
	for _, consumer := range consumers {
		waiting, err := deps.Bus.Waiting(ctx, consumer)
		if err != nil {
			return b, err
		}
		b.handle += waiting
	}
	return b, nil
}
