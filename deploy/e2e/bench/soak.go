package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// soakEvery is how often a soak says how it is doing.
const soakEvery = 10 * time.Second

// soak keeps the whole chain at full load for minutes, lets it come to rest, and
// counts. Any mismatch is an error.
func soak(ctx context.Context, g *ground, o options) (err error) {
	p, err := startPlant(ctx, g, chainClients, o.cpuProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	fmt.Printf("\nsoak         the whole chain at %d clients for %d minutes\n\n", chainClients, o.minutes)
	fmt.Println("   time   sales/s   webhooks/s    backlog   services' memory")
	start := time.Now()
	stopTelling := p.tell(start)
	answered, err := p.load.closed(ctx, time.Duration(o.minutes)*time.Minute)
	if err == nil {
		err = p.drain(ctx)
	}
	stopTelling()
	if err != nil {
		return err
	}
	v, err := p.judge(ctx)
	took := v.webhooks.last.Sub(start)
	fmt.Printf(`
answered 201           %9d   (%.0f a second for %.0f s)
sales                  %9d
events in the outbox   %9d
commissions            %9d
goal facts             %9d
progress of the goal   %9d
webhooks sent          %9d
webhooks received      %9d   (%d twice, %d not believed)
whole chain            %9.0f   sales a second, %.0f s to the last webhook
`, answered.sales, answered.perSecond(), answered.took.Seconds(), v.sales, v.outbox, v.commissions, v.facts, v.progress,
		v.delivered, v.webhooks.sales, v.webhooks.repeated, v.webhooks.refused, float64(answered.sales)/took.Seconds(), took.Seconds())
	if err != nil {
		return fmt.Errorf("the soak does not add up: %w", err)
	}
	fmt.Println("Everything adds up: each answered sale has one sale, commission, goal fact and webhook.")
	return nil
}

// tell prints a line every ten seconds until it is stopped.
func (p *plant) tell(start time.Time) (stop func()) {
	pid, load := p.child.cmd.Process.Pid, p.load
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(soakEvery)
		defer tick.Stop()
		var salesBefore, webhooksBefore int64
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			sales, webhooks := load.total(), p.receiver.standing().sales
			fmt.Printf("%5.0f s   %7.0f   %10.0f   %8d   %12d MiB\n", time.Since(start).Seconds(),
				float64(sales-salesBefore)/soakEvery.Seconds(), float64(webhooks-webhooksBefore)/soakEvery.Seconds(), sales-webhooks, residentMiB(pid))
			salesBefore, webhooksBefore = sales, webhooks
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
