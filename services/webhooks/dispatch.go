package webhooks

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"partilha.dev/pkg/service"
	"partilha.dev/pkg/trace"
)

const (
	claimWithin = 10 * time.Second
	claimEvery  = 2 * time.Millisecond   // so that where much waits a claim finds more than one free slot
	claimPause  = 250 * time.Millisecond // after a claim that failed
	recordGrace = 5 * time.Second        // for the database to come back when the service stops
)

// dispatcher sends what is ready: it claims, waits for the commit, signs and posts, once
// for each claim.
type dispatcher struct {
	pool     *pgxpool.Pool
	log      *zap.Logger
	sealer   *sealer
	sender   *sender
	paces    *paces
	health   *health
	lanes    *lanes // of first attempts
	again    *lanes // of all others
	retrier  retrier
	recorder *recorder
	doubts   *doubts
	lease    time.Duration  // at least twice what an attempt may take
	sending  sync.WaitGroup // senders, and transactions that may start some
	underWay atomic.Int64   // senders
	stopping atomic.Bool    // nothing more is begun to be sent

	mu      sync.Mutex
	running bool
}

func newDispatcher(deps service.Deps, sealer *sealer, sender *sender, concurrency int, lease time.Duration) *dispatcher {
	d := &dispatcher{
		pool: deps.Pool, log: deps.Log, sealer: sealer, sender: sender,
		paces: newPaces(deps.Now), health: newHealth(deps.Pool, deps.Log), retrier: retrier{backoff},
		doubts: &doubts{pool: deps.Pool, lease: lease}, lease: lease,
	}
	first, again := share(concurrency)
	d.lanes, d.again = newLanes(first, d.paces), newLanes(again, d.paces)
	d.recorder = newRecorder(deps.Pool, deps.Log, aheadOfQuick*concurrency) // room for all that may be claimed at once
	return d
}

// run sends until ctx ends. It returns after every attempt under way has ended, which
// takes no longer than one may last, and its outcome is recorded. Where the database is
// away it waits recordGrace for it and gives up. It runs once.
func (d *dispatcher) run(ctx context.Context) error {
	recording, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		d.recorder.run(recording)
	}()

	defer context.AfterFunc(ctx, func() {
		d.stopping.Store(true)
		// Senders may wait for room to tell what came of their attempts.
		time.AfterFunc(d.sender.timeout+recordGrace, giveUp)
	})()
	d.setRunning(true)
	var claiming sync.WaitGroup
	claiming.Go(func() { d.serve(ctx, d.lanes, take) })
	claiming.Go(func() { d.serve(ctx, d.again, takeAgain) })
	claiming.Wait()
	d.setRunning(false)
	d.sending.Wait()
	time.AfterFunc(recordGrace, giveUp)
	close(d.recorder.attempts)
	<-recorded
	d.sender.close()
	if err := d.doubts.review(); err != nil {
		d.log.Error("cannot put claimed deliveries back", zap.Error(err))
	}
	return nil
}

// serve claims and sends whenever the lanes have something to grant, until ctx ends. The
// first claim after a rest is made at once.
func (d *dispatcher) serve(ctx context.Context, lanes *lanes, take taker) {
	var last time.Time
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-lanes.ready:
			pause(ctx, claimEvery-time.Since(last))
			d.dispatch(ctx, lanes, take)
			last = time.Now()
		}
	}
}

func (d *dispatcher) setRunning(running bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = running
}

// dispatch claims and starts to send as much as there are free slots for.
func (d *dispatcher) dispatch(ctx context.Context, lanes *lanes, take taker) {
	if err := d.doubts.settle(); err != nil {
		d.log.Error("cannot put claimed deliveries back yet", zap.Error(err))
		pause(ctx, claimPause)
		lanes.signal()
		return
	}
	grants := lanes.take()
	if len(grants) == 0 {
		return
	}
	token := uuid.New()
	jobs, err := d.claim(take, grants, token)
	if err != nil {
		d.log.Error("cannot claim deliveries yet", zap.Int("endpoints", len(grants)), zap.Error(err))
		d.doubts.add(token, nil)
		pause(ctx, claimPause)
		lanes.refuse(grants)
		return
	}
	if ctx.Err() != nil { // the service stops, and nothing of this has been sent
		d.putBack(token, jobs)
		lanes.refuse(grants)
		return
	}
	count := make(map[lane]int, len(grants))
	last := make(map[lane]time.Time, len(grants))
	for _, job := range jobs { // the oldest of a lane first
		count[job.lane]++
		last[job.lane] = job.createdAt.Truncate(time.Millisecond)
	}
	for i, g := range grants {
		if at, ok := last[g.lane]; ok && at.After(g.since) {
			grants[i].since = at // what was ready before that has been claimed
		}
	}
	d.start(ctx, burstsOf(jobs, lanes, lanes.settle(grants, count)))
}

// claim takes deliveries under the token. Its outcome must be known even where the
// service stops meanwhile, so that this does not interrupt it.
func (d *dispatcher) claim(take taker, grants []grant, token uuid.UUID) ([]claimed, error) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), claimWithin)
	defer cancel()
	jobs, err := take(ctx, d.pool, grants, token)
	for i := range jobs {
		jobs[i].asked = asked
	}
	return jobs, err
}

// start sends what is in each burst, on a goroutine for each of its slots.
func (d *dispatcher) start(ctx context.Context, bursts []*burst) {
	for _, b := range bursts {
		d.underWay.Add(int64(b.senders))
		for range b.senders {
			d.sending.Go(func() { d.work(ctx, b) })
		}
	}
}

// work sends one delivery of the burst after another on one of its slots, for as long as
// its receiver does well, the claim is young, and the service runs. What is not sent then is put back, and
// waits for its turn as before.
func (d *dispatcher) work(ctx context.Context, b *burst) {
	for first := true; ; first = false {
		job, ok := b.next(first)
		if !ok {
			break
		}
		if goOn := d.attempt(ctx, job); !goOn || d.stopping.Load() {
			b.end()
		}
	}
	if left := b.leave(); len(left) > 0 {
		d.putBack(b.claim, left)
		b.lanes.wake(map[lane]time.Time{b.lane: left[0].createdAt.Truncate(time.Millisecond)})
	}
	b.lanes.done(b.lane, 1)
	if d.underWay.Add(-1) == 0 {
		d.recorder.hurry()
	}
}

// attempt sends a job and has its outcome recorded, and tells whether to go on with the
// next one: the receiver does well, or has nothing to do with it. A job whose secret cannot
// be opened is put back for the sweep to find: it must not be sent unsigned, and is no
// failure of its receiver's. So is one that this process, stopped meanwhile, comes to when
// others may think it dead.
func (d *dispatcher) attempt(ctx context.Context, job claimed) (goOn bool) {
	if age := time.Since(job.asked); age > d.lease/2 { // an attempt may take the other half
		d.log.Warn("a claim is too old to be sent under", zap.Stringer("delivery_id", job.id), zap.Duration("age", age))
		d.putBack(job.claim, []claimed{job})
		return true
	}
	signed, err := d.sealer.sign(job.endpoint, job.sealed, job.eventID, time.Now(), job.body)
	if err != nil {
		d.log.Error("cannot sign a delivery", zap.Stringer("tenant_id", job.tenant), zap.Stringer("delivery_id", job.id), zap.Error(err))
		d.putBack(job.claim, []claimed{job})
		return true
	}
	a := d.send(ctx, job, signed)
	d.paces.note(job.lane, a.outcome)
	d.health.note(job, a.outcome)
	d.recorder.attempts <- a // whoever cannot be recorded holds up what comes next
	return a.Delivered && a.Held < slowly
}

func (d *dispatcher) send(ctx context.Context, job claimed, signed signatures) attempt {
	ctx, span := trace.Start(trace.Join(ctx, job.traceparent), "POST webhook")
	defer span.End()
	got := d.sender.send(ctx, compose(job.url, job.name, job.body, signed))
	return attempt{claimed: job, outcome: got, signature: signed.text(), again: d.retrier.again(job, got)}
}

// putBack makes jobs of one claim ready again of which no byte was sent. Where that fails
// it is tried again later; only if the lease ends before it succeeds, or the process does,
// do they become unknown, and nobody is told that they can safely be sent again.
func (d *dispatcher) putBack(claim uuid.UUID, jobs []claimed) {
	if len(jobs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimWithin)
	defer cancel()
	ids := make([]uuid.UUID, len(jobs))
	for i, job := range jobs {
		ids[i] = job.id
	}
	if err := release(ctx, d.pool, claim, ids); err != nil {
		d.log.Error("cannot put claimed deliveries back yet", zap.Int("deliveries", len(jobs)), zap.Error(err))
		d.doubts.add(claim, ids)
	}
}
