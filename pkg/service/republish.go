package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partilha.dev/pkg/outbox"
)

// republishCommand is for an operator who knows of events that NATS has lost and no
// relay could notice. Consumers recognise what they had, so that it never does harm.
var republishCommand = Command{
	Usage: "republish SINCE",
	About: "publish again every event made since a time, such as 2026-07-14T10:00:00Z",
	Run: func(ctx context.Context, deps Deps, args []string) error {
		if len(args) != 1 {
			return errors.New("name one time, such as 2026-07-14T10:00:00Z")
		}
		since, err := time.Parse(time.RFC3339, args[0])
		if err != nil {
			return fmt.Errorf("%q is not a time such as 2026-07-14T10:00:00Z", args[0])
		}
		events, err := outbox.Republish(ctx, deps.Pool, since)
		if err != nil {
			return err
		}
		fmt.Printf("%d events are queued; the running service publishes them\n", events)
		return nil
	},
}
