package webhooks

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/postgres"
)

// hold claims deliveries for this worker in the very transaction that makes them, as
// many as there are free slots for: they are sent as soon as it has committed, and
// nobody has to look for them. It marks those with the claim. The lanes of the others
// are woken by the commit.
func (d *dispatcher) hold(tx *postgres.Tx, made []claimed) {
	token, asked := uuid.New(), time.Now()
	var held []claimed
	reserved := map[lane]*reservation{}
	waiting := map[lane]time.Time{}
	running := d.enter()
	for i := range made {
		job := &made[i]
		if running && d.mayHold(reserved, job.lane) {
			job.claim, job.asked = token, asked
			held = append(held, *job)
		} else if since, ok := waiting[job.lane]; !ok || job.createdAt.Before(since) {
			waiting[job.lane] = job.createdAt
		}
	}
	slots := make(map[lane]int, len(reserved))
	for l, r := range reserved {
		slots[l] = r.slots
	}
	bursts := burstsOf(held, d.lanes, slots)
	tx.AfterCommit(func() {
		d.lanes.wake(waiting)
		d.sendHeld(bursts)
	})
	tx.AfterFailure(func() { d.letGo(token, bursts) })
	if running {
		tx.AfterCommit(d.sending.Done)
		tx.AfterFailure(d.sending.Done)
	}
}

// reservation is what a lane's new deliveries have been given.
type reservation struct {
	slots, held int
	full        bool // it got no more slots
	most        int  // deliveries, once it is full
}

// mayHold tells whether one more delivery of the lane may be claimed: each is given a slot
// of its own while there are any, and then as many more as may be claimed ahead.
func (d *dispatcher) mayHold(reserved map[lane]*reservation, l lane) bool {
	r := reserved[l]
	if r == nil {
		r = &reservation{}
		reserved[l] = r
	}
	if !r.full && d.lanes.reserve(l) {
		r.slots++
	} else if !r.full {
		r.full, r.most = true, r.slots*d.paces.ahead(l)
	}
	if r.full && r.held >= r.most {
		return false
	}
	r.held++
	return true
}

// enter tells whether the dispatcher runs. If so it goes on running until sending.Done
// is called.
func (d *dispatcher) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running {
		d.sending.Add(1)
	}
	return d.running
}

// sendHeld starts to send what is committed; when the service stops it puts it back.
func (d *dispatcher) sendHeld(held []*burst) {
	d.mu.Lock()
	running := d.running
	d.mu.Unlock()
	if running {
		d.start(context.Background(), held)
		return
	}
	for _, b := range held {
		d.putBack(b.claim, b.left)
		b.lanes.done(b.lane, b.senders)
	}
}

// letGo gives back the slots of deliveries whose transaction has failed. It may have
// committed all the same: what was claimed by it, if anything, is put back.
func (d *dispatcher) letGo(token uuid.UUID, held []*burst) {
	if len(held) == 0 {
		return
	}
	d.doubts.add(token, nil)
	for _, b := range held {
		b.lanes.done(b.lane, b.senders)
	}
	d.lanes.signal()
}
