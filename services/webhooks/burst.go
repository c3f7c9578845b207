package webhooks

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// burst is what this worker has claimed of one lane at once. As many senders as it holds
// slots share it, each of which sends one delivery after another. It is safe for
// concurrent use.
type burst struct {
	lane
	claim   uuid.UUID
	asked   time.Time // when its worker began to claim it
	lanes   *lanes    // that its slots are of
	senders int

	mu    sync.Mutex
	left  []claimed // the oldest first
	ended bool
}

// burstsOf sorts what was claimed under one token into its lanes, whose slots are in use.
func burstsOf(jobs []claimed, lanes *lanes, slots map[lane]int) []*burst {
	var list []*burst
	known := make(map[lane]*burst, len(slots))
	for _, job := range jobs {
		b := known[job.lane]
		if b == nil {
			b = &burst{lane: job.lane, claim: job.claim, asked: job.asked, lanes: lanes, senders: slots[job.lane]}
			known[job.lane] = b
			list = append(list, b)
		}
		b.left = append(b.left, job)
	}
	return list
}

// next is what a sender sends next. Its first one it is given whatever has become of the
// others', any other only while the claim is young.
func (b *burst) next(first bool) (job claimed, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.left) == 0 || !first && (b.ended || time.Since(b.asked) > aheadWithin) {
		return job, false
	}
	job, b.left = b.left[0], b.left[1:]
	return job, true
}

// end has each sender stop after what it is sending.
func (b *burst) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// leave is called by each sender when it has nothing more to send. The last one is given
// what is left, which nobody has begun to send.
func (b *burst) leave() []claimed {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.senders--; b.senders > 0 {
		return nil
	}
	return b.left
}
