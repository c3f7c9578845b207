package service

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/outbox"
)

// reconcileCommands show whether what a service has told has arrived, and whether it has
// what others have told.
func (p Program) reconcileCommands() []Command {
	return []Command{
		{Usage: "outbox status", About: "what waits to be published, and whether all has arrived", Run: p.outboxStatus},
		{Usage: "reconcile now", About: "compare everything now, and publish again what is missing", Run: p.reconcileNow},
	}
}

func (p Program) outboxStatus(ctx context.Context, deps Deps, args []string) error {
	if len(args) != 0 {
		return errUsage
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	if p.has(outbox.Schema) {
		s, err := outbox.ReadStatus(ctx, deps.Pool)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "pending\t%d events\n", s.Pending)
		fmt.Fprintf(table, "oldest\t%s\n", s.Oldest)
		fmt.Fprintf(table, "stream\t%s, up to message %d when looked at %s\n", s.Stream, s.LastSeq, stamp(&s.CheckedAt))
		fmt.Fprintf(table, "compared\t%s\n", stamp(s.ComparedAt))
		if s.Suspect != nil {
			fmt.Fprintf(table, "suspected\twhat was made since %s is compared once more\n", stamp(s.Suspect))
		}
		fmt.Fprintf(table, "missing\t%d events so far, published again\n", s.Missed)
		fmt.Fprintf(table, "repairs\t%d\n", s.Repairs)
		fmt.Fprintf(table, "last window\t%s\n", stamp(s.LastWindow))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if !p.has(bus.Schema) {
		return nil
	}
	found, err := bus.Differences(ctx, deps.Pool)
	if err != nil {
		return err
	}
	return printDifferences(found)
}

// stamp writes a time, or that there is none.
func stamp(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

func printDifferences(found []bus.Difference) error {
	if len(found) == 0 {
		_, err := fmt.Println("no window differs")
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "WINDOW\tUNTIL\tCONSUMER\tDIFFERENCE")
	for _, d := range found {
		text := d.Text
		if d.Fresh {
			text += " (not long ago: it may still come)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", d.Window(), stamp(&d.End), d.Consumer, text)
	}
	return table.Flush()
}

// shownMissing is how many missing events are printed one by one.
const shownMissing = 20

func (p Program) reconcileNow(ctx context.Context, deps Deps, args []string) error {
	if len(args) != 0 {
		return errUsage
	}
	if p.has(outbox.Schema) {
		if err := reconcileOutbox(ctx, deps); err != nil {
			return err
		}
	}
	if !p.has(bus.Schema) {
		return nil
	}
	s, err := p.make(ctx, deps)
	if err != nil {
		return err
	}
	windows, found, err := bus.CheckNow(ctx, deps.Pool, s.Consumers())
	if err != nil {
		return err
	}
	fmt.Printf("%d windows that others told are compared\n", windows)
	return printDifferences(found)
}

func reconcileOutbox(ctx context.Context, deps Deps) error {
	s, err := outbox.ReadStatus(ctx, deps.Pool)
	if err != nil {
		return err
	}
	if err := awaitConnection(ctx, deps.Bus); err != nil {
		return err
	}
	found, err := outbox.ReconcileNow(ctx, deps.Pool, deps.Bus, bus.Stream{Name: s.Stream})
	if err != nil {
		return err
	}
	fmt.Printf("%d events since %s and before %s are compared with %s; %d were missing\n",
		found.Events, stamp(&found.Since), stamp(&found.Until), s.Stream, len(found.Missing))
	for i, e := range found.Missing {
		if i == shownMissing {
			fmt.Printf("  and %d more\n", len(found.Missing)-i)
			break
		}
		fmt.Printf("  %s  %s  %s\n", stamp(&e.CreatedAt), e.ID, e.Name)
	}
	if len(found.Missing) > 0 {
		fmt.Println("they are queued; the running service publishes them")
	}
	fmt.Println("the running service counts every window again, and tells it")
	return nil
}

// connectWithin is how long a command waits for NATS.
const connectWithin = 5 * time.Second

// awaitConnection waits until NATS can be reached.
func awaitConnection(ctx context.Context, b *bus.Bus) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !b.Connected() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("NATS cannot be reached within %s", connectWithin)
		case <-tick.C:
		}
	}
	return nil
}
