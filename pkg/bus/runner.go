package bus

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
)

const (
	batchSize = 500             // events in one transaction at most
	heartbeat = 2 * time.Second // a pull without a sign of life for twice this is renewed
	handOver  = time.Second     // what a runner that stops takes at most to give back its messages

	longestDelay = 30 * time.Second                      // of an event that comes again
	awaited      = uint64(24 * time.Hour / longestDelay) // deliveries, which take a day
)

// tempo is how patient a runner is.
type tempo struct {
	ackWait      time.Duration // a message that is neither acknowledged nor refused by then comes again
	watchEvery   time.Duration
	stalledAfter time.Duration // messages are pending for so long, and none arrives
	awaited      uint64        // an event whose cause has not arrived is parked when it has been delivered so often
}

var usualTempo = tempo{ackWait: 30 * time.Second, watchEvery: 5 * time.Second, stalledAfter: 15 * time.Second, awaited: awaited}

var errStalled = errors.New("messages are pending and none arrives")

type runner struct {
	bus      *Bus
	pool     *pgxpool.Pool
	consumer Consumer
	stream   Stream
	tempo    tempo
	log      *zap.Logger
}

func (r *runner) run(ctx context.Context) error {
	waits := false // for the owner of the stream, which may start later
	for ctx.Err() == nil {
		err := r.consume(ctx)
		if ctx.Err() != nil {
			break
		}
		missing := errors.Is(err, jetstream.ErrStreamNotFound)
		switch {
		case missing && !waits:
			r.log.Info("consumer waits until its stream is made", zap.String("stream", r.stream.Name))
		case !missing && r.bus.Connected():
			r.log.Warn("consumer starts again", zap.Error(err))
		}
		waits = missing
		pause(ctx, 250*time.Millisecond)
	}
	return nil
}

// consume takes messages until the consumer fails or stalls.
func (r *runner) consume(ctx context.Context) error {
	if !r.bus.Connected() {
		return errAway
	}
	durable, err := r.durable(ctx)
	if err != nil {
		return err
	}
	messages := make(chan jetstream.Msg, 4*batchSize)
	failed := make(chan error, 1)
	stopped := make(chan struct{})
	subscription, err := durable.Consume(
		func(m jetstream.Msg) {
			select {
			case messages <- m:
			case <-stopped:
				giveBack(m)
			}
		},
		jetstream.PullMaxMessages(2*batchSize), jetstream.PullExpiry(10*time.Second), jetstream.PullHeartbeat(heartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case failed <- err:
			default:
			}
		}),
	)
	if err != nil {
		return err
	}
	defer func() {
		close(stopped)
		subscription.Drain()
		select {
		case <-subscription.Closed():
		case <-time.After(handOver):
		}
		for len(messages) > 0 {
			giveBack(<-messages)
		}
	}()

	watch := time.NewTicker(r.tempo.watchEvery)
	defer watch.Stop()
	lastSeen := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			for len(messages) > 0 { // what has arrived need not wait for ackWait
				r.process(ctx, r.drain(<-messages, messages))
			}
			return err
		case first := <-messages:
			r.process(ctx, r.drain(first, messages))
			lastSeen = time.Now()
		case <-watch.C:
			info, err := durable.Info(ctx)
			if err != nil {
				return err
			}
			lag.WithLabelValues(r.consumer.Name).Set(float64(info.NumPending))
			if info.NumPending > 0 && time.Since(lastSeen) > r.tempo.stalledAfter {
				return errStalled
			}
		}
	}
}

func (r *runner) durable(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return r.bus.js.CreateOrUpdateConsumer(ctx, r.stream.Name, jetstream.ConsumerConfig{
		Durable: r.consumer.Name, FilterSubjects: r.consumer.hears(r.stream),
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: r.tempo.ackWait, MaxDeliver: -1, MaxAckPending: 20 * batchSize, Replicas: r.bus.replicas,
	})
}

// drain adds what is there already to first: a lone event does not wait for more.
func (r *runner) drain(first jetstream.Msg, more <-chan jetstream.Msg) []jetstream.Msg {
	batch := []jetstream.Msg{first}
	for len(batch) < batchSize {
		select {
		case m := <-more:
			batch = append(batch, m)
		default:
			return batch
		}
	}
	return batch
}

// delivery is a message together with the event that it carries.
type delivery struct {
	message jetstream.Msg
	event   event.Sealed
}

// process handles every message: each is acknowledged after the commit, parked, or
// left to come again.
func (r *runner) process(ctx context.Context, batch []jetstream.Msg) {
	deliveries := make([]delivery, 0, len(batch))
	var windows []jetstream.Msg
	for _, m := range batch {
		if m.Subject() == r.stream.WindowName() {
			windows = append(windows, m)
			continue
		}
		e, err := event.Open(m.Data())
		if err != nil {
			r.park(ctx, delivery{m, event.Sealed{Name: m.Subject(), ID: event.IDOf(m.Subject(), string(m.Data())), Body: m.Data()}}, err)
			continue
		}
		e.Traceparent = m.Headers().Get(traceHeader)
		deliveries = append(deliveries, delivery{m, e})
	}
	if len(deliveries) > 0 {
		r.handle(ctx, deliveries)
	}
	for _, m := range windows {
		r.takeWindow(ctx, m)
	}
}

func (r *runner) handle(ctx context.Context, batch []delivery) {
	events := make([]event.Sealed, len(batch))
	for i, d := range batch {
		events[i] = d.event
	}
	start := time.Now()
	err := r.consumer.apply(ctx, r.pool, events)
	switch {
	case err == nil:
		for _, d := range batch {
			if err := d.message.Ack(); err != nil {
				break // it comes again, and its receipt says that it is done
			}
		}
		handled.WithLabelValues(r.consumer.Name).Add(float64(len(batch)))
		r.log.Debug("handled", zap.Int("events", len(batch)), zap.Duration("took", time.Since(start)))
	case ctx.Err() != nil:
		for _, d := range batch { // the service stops; another replica takes over
			giveBack(d.message)
		}
	case fault.KindOf(err) == fault.Unavailable:
		r.again(batch, err)
	case len(batch) > 1:
		half := len(batch) / 2
		r.handle(ctx, batch[:half])
		r.handle(ctx, batch[half:])
	case postgres.NoPartition(err) || permanent(fault.KindOf(err)) || r.waitsInVain(batch[0], err):
		r.park(ctx, batch[0], err)
	default:
		r.again(batch, err)
	}
}

// permanent tells whether a message that failed so can never succeed.
func permanent(kind fault.Kind) bool {
	switch kind {
	case fault.Invalid, fault.Rule, fault.NotFound, fault.Conflict:
		return true
	default:
		return false
	}
}

// waitsInVain tells whether an event has come so often without its cause that this will
// not arrive by itself: it is parked, or lost. So the event is parked too, before its
// stream forgets it. Its age would not tell: after an outage every event is old.
func (r *runner) waitsInVain(d delivery, reason error) bool {
	return fault.KindOf(reason) == fault.NotYet && deliveries(d.message) >= r.tempo.awaited
}

// deliveries is how often the message has been delivered.
func deliveries(m jetstream.Msg) uint64 {
	meta, err := m.Metadata()
	if err != nil {
		return 1
	}
	return meta.NumDelivered
}

// giveBack has a message delivered again at once.
func giveBack(m jetstream.Msg) {
	_ = m.Nak() // if it gets lost, the message comes again after ackWait
}

// again has messages delivered later: after a quarter of a second, then twice as
// long each time, up to half a minute.
func (r *runner) again(batch []delivery, reason error) {
	kind := fault.KindOf(reason)
	for _, d := range batch {
		delay := min(250*time.Millisecond<<min(deliveries(d.message)-1, 7), longestDelay)
		if err := d.message.NakWithDelay(delay); err != nil {
			break // it comes again after ackWait
		}
	}
	retried.WithLabelValues(r.consumer.Name).Add(float64(len(batch)))
	if kind == fault.NotYet {
		return
	}
	r.log.Error("cannot handle events yet", zap.Int("events", len(batch)),
		zap.String("event_id", batch[0].event.ID.String()), zap.String("tenant_id", batch[0].event.TenantID.String()), zap.Error(reason))
}

func (r *runner) park(ctx context.Context, d delivery, reason error) {
	if err := park(ctx, r.pool, r.consumer.Name, d.event, reason); err != nil {
		r.again([]delivery{d}, err)
		return
	}
	if err := d.message.TermWithReason("parked"); err != nil {
		r.log.Warn("cannot terminate a parked message; it will be parked again", zap.Error(err))
	}
	parked.WithLabelValues(r.consumer.Name).Inc()
	r.log.Error("event parked", zap.String("event", d.event.Name), zap.String("event_id", d.event.ID.String()),
		zap.String("tenant_id", d.event.TenantID.String()), zap.Error(reason))
}
