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
	waiting := map[lane]time.Time{}
	running := d.enter()
	for i := range made {
		job := &made[i]
		if running && d.lanes.reserve(job.lane) {
			job.claim, job.asked = token, asked
			held = append(held, *job)
		} else if since, ok := waiting[job.lane]; !ok || job.createdAt.Before(since) {
			waiting[job.lane] = job.createdAt
		}
	}
	tx.AfterCommit(func() {
		d.lanes.wake(waiting)
		d.sendHeld(held)
	})
	tx.AfterFailure(func() { d.letGo(token, held) })
	if running {
		tx.AfterCommit(d.sending.Done)
		tx.AfterFailure(d.sending.Done)
	}
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
func (d *dispatcher) sendHeld(held []claimed) {
	d.mu.Lock()
	running := d.running
	d.mu.Unlock()
	if running {
		d.start(context.Background(), held)
	} else {
		d.putBack(held)
		d.done(held...)
	}
}

// letGo gives back the slots of deliveries whose transaction has failed. It may have
// committed all the same: what was claimed by it, if anything, is put back.
func (d *dispatcher) letGo(token uuid.UUID, held []claimed) {
	if len(held) == 0 {
		return
	}
	d.doubts.add(token, nil)
	d.done(held...)
	d.lanes.signal()
}
