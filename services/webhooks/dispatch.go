package webhooks

import (
	"context"
	"sync"
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
	sending  sync.WaitGroup // attempts, and transactions that may start some

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
	d.recorder = &recorder{
		pool: deps.Pool, log: deps.Log, attempts: make(chan attempt, concurrency),
	}
	return d
}

// run sends until ctx ends. It returns after every attempt under way has ended, which
// takes no longer than one may last, and its outcome is recorded. It runs once.
func (d *dispatcher) run(ctx context.Context) error {
	recording, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		d.recorder.run(recording)
	}()

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
		d.putBack(jobs)
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
	lanes.settle(grants, count)
	d.start(ctx, jobs)
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

// start sends each job on a goroutine of its own. A job whose secret cannot be opened
// is put back: it must not be sent unsigned, and is no failure of its receiver's. So is
// one that this process, stopped meanwhile, comes to when others may think it dead.
func (d *dispatcher) start(ctx context.Context, jobs []claimed) {
	var unsigned []claimed
	for _, job := range jobs {
		signed, err := d.sealer.sign(job.endpoint, job.sealed, job.eventID, time.Now(), job.body)
		if err != nil {
			d.log.Error("cannot sign a delivery", zap.Stringer("tenant_id", job.tenant), zap.Stringer("delivery_id", job.id), zap.Error(err))
			unsigned = append(unsigned, job)
			continue
		}
		d.sending.Go(func() {
			if age := time.Since(job.asked); age > d.lease/2 { // an attempt may take the other half
				d.log.Warn("a claim is too old to be sent under", zap.Stringer("delivery_id", job.id), zap.Duration("age", age))
				d.putBack([]claimed{job})
				d.done(job)
				return
			}
			a := d.send(ctx, job, signed)
			d.paces.note(job.lane, a.outcome)
			d.health.note(job, a.outcome)
			d.recorder.attempts <- a
			d.done(job) // whoever cannot be recorded holds up what comes next
		})
	}
	if len(unsigned) == 0 {
		return
	}
	d.putBack(unsigned)
	d.done(unsigned...)
}

// done gives back the slots of the jobs.
func (d *dispatcher) done(jobs ...claimed) {
	var first, again []lane
	for _, job := range jobs {
		if job.attempts == 0 {
			first = append(first, job.lane)
		} else {
			again = append(again, job.lane)
		}
	}
	d.lanes.done(first)
	d.again.done(again)
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
func (d *dispatcher) putBack(jobs []claimed) {
	if len(jobs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimWithin)
	defer cancel()
	ids := make([]uuid.UUID, len(jobs))
	for i, job := range jobs {
		ids[i] = job.id
	}
	if err := release(ctx, d.pool, jobs[0].claim, ids); err != nil {
		d.log.Error("cannot put claimed deliveries back yet", zap.Int("deliveries", len(jobs)), zap.Error(err))
		d.doubts.add(jobs[0].claim, ids)
	}
}
