package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
)

const listAtOnce = 200

// parkedCommands let an operator see to events that a consumer could not handle: a
// parked sale is a commission that somebody misses.
func (p Program) parkedCommands() []Command {
	return []Command{
		{Usage: "parked list", About: "the newest events that could not be handled", Run: listParked},
		{Usage: "parked show EVENT_ID", About: "one of them, with its reason and its body", Run: showParked},
		{Usage: "parked retry EVENT_ID", About: "handle it once more, after the cause is mended", Run: p.retryParked},
		{Usage: "parked drop EVENT_ID", About: "forget it for good: what it told stays missing", Run: dropParked},
	}
}

func listParked(ctx context.Context, deps Deps, args []string) error {
	if len(args) != 0 {
		return errUsage
	}
	events, err := bus.ListParked(ctx, deps.Pool, listAtOnce)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PARKED AT\tEVENT ID\tEVENT\tCONSUMER\tTENANT\tTIMES\tREASON")
	for _, e := range events {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", e.ParkedAt.Format(time.RFC3339), e.ID, e.Name, e.Consumer, e.TenantID, e.Times, e.Reason)
	}
	return table.Flush()
}

func showParked(ctx context.Context, deps Deps, args []string) error {
	id, err := eventArgument(args)
	if err != nil {
		return err
	}
	events, err := bus.ShowParked(ctx, deps.Pool, id)
	if err != nil {
		return err
	}
	for _, e := range events {
		fmt.Printf("event     %s (%s)\ntenant    %s\nconsumer  %s\nparked    %s, %d times\nreason    %s\nbody      %s\n\n",
			e.ID, e.Name, e.TenantID, e.Consumer, e.ParkedAt.Format(time.RFC3339), e.Times, e.Reason, e.Body)
	}
	return nil
}

func (p Program) retryParked(ctx context.Context, deps Deps, args []string) error {
	id, err := eventArgument(args)
	if err != nil {
		return err
	}
	s, err := p.make(ctx, deps)
	if err != nil {
		return err
	}
	if err := bus.RetryParked(ctx, deps.Pool, s.Consumers(), id); err != nil {
		return err
	}
	fmt.Printf("%s is handled\n", id)
	return nil
}

func dropParked(ctx context.Context, deps Deps, args []string) error {
	id, err := eventArgument(args)
	if err != nil {
		return err
	}
	if err := bus.DropParked(ctx, deps.Pool, id); err != nil {
		return err
	}
	fmt.Printf("%s is dropped\n", id)
	return nil
}

func eventArgument(args []string) (id event.ID, err error) {
	if len(args) != 1 {
		return id, errors.New("name one event by its id")
	}
	return id, id.UnmarshalText([]byte(args[0]))
}
