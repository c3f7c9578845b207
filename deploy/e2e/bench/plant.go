package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// plant is the whole chain at work: all four services in one process, a shop that
// sells, and the receiver of its webhooks.
type plant struct {
	ground   *ground
	child    *child
	stopped  bool
	receiver *receiver
	load     *load
}

var stackDatabases = []string{salesDatabase, commissionsDatabase, goalsDatabase, "partilha_webhooks"}

// startPlant starts the chain on fresh databases, with that many connections to it.
// The services write a CPU profile if cpuProfile names a file.
func startPlant(ctx context.Context, g *ground, clients int, cpuProfile string) (_ *plant, err error) {
	p := &plant{ground: g}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	for _, database := range stackDatabases {
		if err := g.drop(ctx, database); err != nil {
			return nil, err
		}
	}
	if p.receiver, err = newReceiver(); err != nil {
		return nil, err
	}
	a := assignment{Role: roleStack, DatabaseURL: g.postgres.URL("postgres"), CPUProfile: cpuProfile}
	if p.child, err = startChild(g, a); err != nil {
		return nil, err
	}
	s, err := openShop(ctx, p.child)
	if err != nil {
		return nil, err
	}
	if err := s.extend(ctx, p.receiver.url()); err != nil {
		return nil, err
	}
	p.receiver.trust(s.Secret)
	if err := g.settle(ctx); err != nil {
		return nil, err
	}
	p.load, err = connect(s, clients) // last: the service does not wait long for a request
	return p, err
}

// stop ends the services. It may be called more than once.
func (p *plant) stop() error {
	if p.load != nil {
		p.load.close()
		p.load = nil
	}
	var err error
	if p.child != nil && !p.stopped {
		p.stopped = true
		err = p.child.stop()
	}
	if p.receiver != nil {
		p.receiver.close()
	}
	return err
}

// standstill is how long the chain may bring nothing forth while work is left.
const standstill = time.Minute

// drain waits until every answered sale's webhook is there and every other effect is
// in its database.
func (p *plant) drain(ctx context.Context) error {
	want := p.load.total()
	const (
		factsQuery     = `select count(*) from facts`
		deliveredQuery = `select count(*) from deliveries where state = 'delivered'`
	)
	err := await(ctx, "webhooks", 5*time.Millisecond, want, func() (int64, error) { return p.receiver.standing().sales, nil })
	if err != nil {
		return err
	}
	err = await(ctx, "goal facts", 100*time.Millisecond, want, func() (int64, error) {
		return p.ground.number(ctx, goalsDatabase, factsQuery)
	})
	if err != nil {
		return err
	}
	return await(ctx, "deliveries", 100*time.Millisecond, want, func() (int64, error) {
		return p.ground.number(ctx, "partilha_webhooks", deliveredQuery)
	})
}

// await looks every so often until count is at least want, and fails when it stands
// still.
func await(ctx context.Context, what string, every time.Duration, want int64, count func() (int64, error)) error {
	best, moved := int64(-1), time.Now()
	for {
		now, err := count()
		switch {
		case err != nil:
			return err
		case now >= want:
			return nil
		case now > best:
			best, moved = now, time.Now()
		case time.Since(moved) > standstill:
			return fmt.Errorf("%s: only %d of %d, and no more for %s", what, now, want, standstill)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// verdict are the numbers that must agree when the chain has come to rest.
type verdict struct {
	sales, outbox, commissions, facts, progress, delivered int64
	webhooks                                               standing
}

// judge stops the services, so that nothing more can come, and compares every sale,
// commission, goal fact and webhook with what was answered. It names every mismatch.
func (p *plant) judge(ctx context.Context) (v verdict, err error) {
	var recorded []uuid.UUID
	for _, one := range p.load.recorded {
		recorded = append(recorded, one...)
	}
	if err := p.stop(); err != nil {
		return v, err
	}
	want := int64(len(recorded))
	v.webhooks = p.receiver.standing()
	var missing int64
	for _, sale := range recorded {
		if _, ok := p.receiver.when(sale); !ok {
			missing++
		}
	}
	var failures []error
	read := func(into *int64, database, query string) {
		n, err := p.ground.number(ctx, database, query)
		*into, failures = n, append(failures, err)
	}
	same := func(what string, got, want int64) {
		if got != want {
			failures = append(failures, fmt.Errorf("%s: %d, want %d", what, got, want))
		}
	}
	read(&v.sales, salesDatabase, `select count(*) from sales`)
	read(&v.outbox, salesDatabase, `select count(*) from outbox where name = 'sale.recorded'`)
	read(&v.commissions, commissionsDatabase, `select count(*) from commissions`)
	read(&v.facts, goalsDatabase, `select count(*) from facts`)
	read(&v.progress, goalsDatabase, progressOfAllQuery)
	read(&v.delivered, "partilha_webhooks", `select count(*) from deliveries where state = 'delivered'`)
	same("sales", v.sales, want)
	same("events of sales", v.outbox, want)
	same("commissions", v.commissions, want)
	same("goal facts", v.facts, want)
	same("progress of the goal", v.progress, want)
	same("deliveries that are delivered", v.delivered, want)
	same("sales with a webhook", v.webhooks.sales, want)
	same("answered sales without a webhook", missing, 0)
	same("webhooks that came twice", v.webhooks.repeated, 0)
	same("webhooks that were not believed", v.webhooks.refused, 0)

	var leftOver, sold, earned, soldIDs, earnedIDs, countedIDs, factIDs int64
	read(&leftOver, "partilha_webhooks", `select (select count(*) from deliveries where state <> 'delivered') + (select count(*) from pending)`)
	same("deliveries in another state", leftOver, 0)
	for _, database := range stackDatabases[1:] {
		read(&leftOver, database, `select count(*) from parked_events`)
		same("parked events in "+database, leftOver, 0)
	}
	// The same commissions with the same centavos, and the same sales, in every
	// database: a sum of hashes differs where one of them does.
	read(&sold, salesDatabase, `select coalesce(sum(commission_centavos), 0)::bigint from sales`)
	read(&earned, commissionsDatabase, `select coalesce(sum(commission_amount_centavos), 0)::bigint from commissions`)
	same("centavos of commissions", earned, sold)
	const hash = `select coalesce(sum(hashtext(%s::text)::bigint), 0)::bigint from %s`
	read(&soldIDs, salesDatabase, fmt.Sprintf(hash, "commission_id", "sales"))
	read(&earnedIDs, commissionsDatabase, fmt.Sprintf(hash, "commission_id", "commissions"))
	same("hash of the ids of commissions", earnedIDs, soldIDs)
	read(&countedIDs, salesDatabase, fmt.Sprintf(hash, "sale_id", "sales"))
	read(&factIDs, goalsDatabase, fmt.Sprintf(hash, "source_id", "facts"))
	same("hash of the ids of counted sales", factIDs, countedIDs)
	if err := errors.Join(failures...); err != nil {
		return v, err
	}
	return v, p.child.discard()
}
