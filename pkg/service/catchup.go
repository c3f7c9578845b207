package service

import (
	"context"
	"fmt"
	"os"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/outbox"
)

const (
	catchUpLook  = 250 * time.Millisecond
	catchUpTell  = 5 * time.Second
	catchUpQuiet = 3 * time.Second // longer than any background work pauses
)

// catchUpCommand brings a restored database up to what the others know, before anybody
// is served. Every event that the log has is published again, however old the backup
// is: receipts, of which none is dropped meanwhile, tell those that were handled. What
// follows from the others is made now, so that whoever comes behind finds it made. A
// service that publishes nothing only handles what waits: once it serves, the days of
// an old backup are dropped, and events of them have no place any more.
func (p Program) catchUpCommand() Command {
	return Command{
		Usage: "catch-up", About: "after a restore, before serve: publish all events and handle all that wait",
		Run: func(ctx context.Context, deps Deps, args []string) error {
			if len(args) != 0 {
				return errUsage
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
				return p.awaitQuiet(ctx, deps, s.Consumers())
			})
		},
	}
}

// awaitQuiet returns once nothing is to be published and nothing to be handled, and has
// not been for a while, and says now and then how much there is.
func (p Program) awaitQuiet(ctx context.Context, deps Deps, consumers []bus.Consumer) error {
	tick := time.NewTicker(catchUpLook)
	defer tick.Stop()
	busy, told := time.Now(), time.Now()
	for time.Since(busy) < catchUpQuiet {
		left, err := p.left(ctx, deps, consumers)
		if err != nil || left != (backlog{}) {
			busy = time.Now()
		}
		if time.Since(told) > catchUpTell {
			told = time.Now()
			fmt.Fprintln(os.Stderr, left.told(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	fmt.Println("every event is published, and handled or parked")
	return nil
}

// backlog is how many events are still to be published, and to be handled.
type backlog struct{ publish, handle int64 }

func (b backlog) told(err error) string {
	if err != nil {
		return fmt.Sprintf("waiting: %v", err)
	}
	return fmt.Sprintf("%d events are to be published, %d to be handled", b.publish, b.handle)
}

// left is an error as long as NATS cannot be reached, or a consumer is not there yet.
func (p Program) left(ctx context.Context, deps Deps, consumers []bus.Consumer) (b backlog, err error) {
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
