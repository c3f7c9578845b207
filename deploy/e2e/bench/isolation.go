package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

const (
	healthyEndpoints = 100 // each of a tenant of its own
	hangingEndpoints = 10  // of the first of those tenants
	hangingBacklog   = 100_000
	isolationRate    = 200 // events a second
	publishers       = 16
)

// measureIsolation shows what healthy endpoints notice of others that hang and of what
// waits for those.
func measureIsolation(ctx context.Context, g *ground, o options) error {
	fmt.Printf(`
Webhooks of %d endpoints beside %d that never answer, for which %d deliveries wait, on the webhooks service alone, NATS in a process
of its own, %d events a second: ms from the moment at which an event was due in the stream until its receiver had it, and MiB that the
service occupies in the end: median (least–greatest) of %d rounds of %d s, the two in turns
  alone      nobody hangs and nothing waits
  beside     those %d endpoints belong to tenants of the others

`, healthyEndpoints, hangingEndpoints, hangingBacklog, isolationRate, o.rounds, o.openFor, hangingEndpoints)
	var alone, beside isolation
	for range o.rounds {
		if err := alone.round(ctx, g, o, 0); err != nil {
			return fmt.Errorf("alone: %w", err)
		}
		if err := beside.round(ctx, g, o, hangingEndpoints); err != nil {
			return fmt.Errorf("beside others: %w", err)
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "\tp50\tp99\tslowest\tMiB\tp99, of that alone")
	for _, row := range []struct {
		name string
		isolation
	}{{"alone", alone}, {"beside", beside}} {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", row.name, row.p50.spread("%.1f"), row.p99.spread("%.1f"), row.slowest.spread("%.1f"),
			row.memory.spread("%.0f"), row.p99.over(alone.p99).spread("%.2f"))
	}
	return table.Flush()
}

// isolation are the rounds with so many who hang.
type isolation struct{ p50, p99, slowest, memory series }

func (r *isolation) round(ctx context.Context, g *ground, o options, hanging int) (err error) {
	heard := newArrivals()
	healthy, err := listenAll(healthyEndpoints, heard.note)
	if err != nil {
		return err
	}
	defer healthy.close()
	silent, err := listenAll(hanging, func([]byte) bool { return false })
	if err != nil {
		return err
	}
	defer silent.close()
	tenants := newTenants(healthyEndpoints)
	var hooks []hook
	for i, url := range healthy.urls {
		hooks = append(hooks, hook{i, url, event.NameCommissionAvailable})
	}
	for i, url := range silent.urls {
		hooks = append(hooks, hook{i, url, event.NamePartnerCreated})
	}
	if err := registerHooks(ctx, g, tenants, hooks); err != nil {
		return err
	}
	if hanging > 0 {
		if err := fillHooks(ctx, g, event.NamePartnerCreated, hangingBacklog); err != nil {
			return err
		}
	}
	stream, err := startChild(g, assignment{Role: roleNATS})
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, stream.stop()); err == nil {
			err = stream.discard()
		}
	}()
	publisher, err := bus.Connect(bus.Config{URL: "nats://" + stream.Address}, zap.NewNop())
	if err != nil {
		return err
	}
	defer publisher.Close()
	if err := ensureStreams(ctx, publisher); err != nil {
		return err
	}
	c, err := startChild(g, assignment{Role: roleWebhooks, DatabaseURL: g.postgres.URL(webhooksDatabase), NATSURL: "nats://" + stream.Address})
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, c.stop()); err == nil {
			err = errors.Join(heard.expect(ctx, g), c.discard())
		}
	}()
	if _, err := heard.publish(ctx, publisher, tenants, warmUp); err != nil {
		return err
	}
	took, err := heard.publish(ctx, publisher, tenants, time.Duration(o.openFor)*time.Second)
	if err != nil {
		return err
	}
	if hanging > 0 && silent.total.Load() < int64(hanging) {
		return fmt.Errorf("only %d posts hang", silent.total.Load())
	}
	r.p50, r.p99 = append(r.p50, took.quantile(0.5)), append(r.p99, took.quantile(0.99))
	r.slowest = append(r.slowest, took.quantile(1))
	r.memory = append(r.memory, float64(residentMiB(c.cmd.Process.Pid)))
	return nil
}

// ensureStreams makes the streams that the webhooks service hears, in place of their owners,
// as soon as the server answers.
func ensureStreams(ctx context.Context, b *bus.Bus) error {
	for !b.Connected() {
		if err := pass(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	for _, stream := range []bus.Stream{bus.Sales, bus.Commissions, bus.Goals} {
		if err := b.EnsureStream(ctx, stream); err != nil {
			return err
		}
	}
	return nil
}

// arrivals remember when each event first came to a receiver.
type arrivals struct {
	mu       sync.Mutex
	at       map[event.ID]time.Time
	repeated int
}

func newArrivals() *arrivals { return &arrivals{at: map[event.ID]time.Time{}} }

var eventIDMember = []byte(`"event_id":"`)

// note hears of a webhook, which it always answers.
func (a *arrivals) note(body []byte) bool {
	now := time.Now()
	var id event.ID
	const length = len("evt_") + 2*len(id)
	at := bytes.Index(body, eventIDMember) + len(eventIDMember)
	if at < len(eventIDMember) || len(body) < at+length || id.UnmarshalText(body[at:at+length]) != nil {
		return true // it is none of the events, and so will be missed
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.at[id]; known {
		a.repeated++
		return true
	}
	a.at[id] = now
	return true
}

func (a *arrivals) count() (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.repeated > 0 {
		return 0, fmt.Errorf("%d webhooks came twice", a.repeated)
	}
	return int64(len(a.at)), nil
}

// expect fails unless exactly what has arrived is recorded as delivered, once the service
// has stopped.
func (a *arrivals) expect(ctx context.Context, g *ground) error {
	n, err := a.count()
	if err != nil {
		return err
	}
	return g.expect(ctx, "deliveries", webhooksDatabase, `select count(*) from deliveries where state = 'delivered'`, n)
}

// publish tells events to the stream at the steady rate for d, of the tenants in turn, and
// waits until all have come. It returns how long after the moment at which it was due each
// did, in milliseconds.
func (a *arrivals) publish(ctx context.Context, b *bus.Bus, tenants []uuid.UUID, d time.Duration) (took series, err error) {
	before, err := a.count()
	if err != nil {
		return nil, err
	}
	n := int(isolationRate * d.Seconds())
	ids, due := make([]event.ID, n), make([]time.Time, n)
	err = atRate(ctx, isolationRate, n, publishers, func(_, i int, at time.Time) error {
		commission := uuid.New()
		e, err := event.Seal(tenants[i%len(tenants)], commission.String(), at, event.CommissionAvailable{
			CommissionID: commission, PartnerID: uuid.New(), Amount: money.BRL(3242), CampaignID: uuid.New(),
			Kind: "sale", Status: "available", AvailableAt: event.Instant(at),
		}, "")
		if err != nil {
			return err
		}
		ids[i], due[i] = e.ID, at
		_, err = b.Publish(ctx, []bus.Outgoing{{Sealed: e, MessageID: e.ID.String()}})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := await(ctx, "webhooks", 10*time.Millisecond, before+int64(n), a.count); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, id := range ids {
		at, ok := a.at[id]
		if !ok {
			return nil, fmt.Errorf("event %s has no webhook", id)
		}
		took = append(took, milliseconds(at.Sub(due[i])))
	}
	return took, nil
}
