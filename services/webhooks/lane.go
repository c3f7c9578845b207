package webhooks

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	perEndpoint = 32  // attempts in flight to one endpoint at most
	perTenant   = 128 // attempts in flight of one tenant at most
)

// lane is the way to one endpoint.
type lane struct{ tenant, endpoint uuid.UUID }

// lanes hands out the slots in which deliveries are sent, so that a receiver that
// hangs delays only itself. It is safe for concurrent use.
//
// A lane is woken when it may have something to send, and then waits in a queue until
// it is granted slots. Nobody is granted more than half of what is left, neither a
// tenant of all slots nor an endpoint of its tenant's: however many hang, whoever has
// nothing in flight still finds a slot until the very last is gone.
type lanes struct {
	total int
	ready chan struct{} // has an element when there may be something to grant

	mu      sync.Mutex
	used    int
	tenants map[uuid.UUID]int // slots in use of each tenant
	held    map[lane]int      // slots in use of each lane
	queue   []lane
	since   map[lane]time.Time // of every queued lane: no event that waits there is older
}

func newLanes(total int) *lanes {
	return &lanes{
		total: total, ready: make(chan struct{}, 1),
		tenants: map[uuid.UUID]int{}, held: map[lane]int{}, since: map[lane]time.Time{},
	}
}

// grant lets up to slots deliveries of a lane be claimed.
type grant struct {
	lane
	slots int
	since time.Time
}

// wake queues lanes that have something to send, the oldest of it created at the given
// time. It never blocks.
func (l *lanes) wake(waiting map[lane]time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for lane, since := range waiting {
		l.enqueue(lane, since)
	}
	if len(waiting) > 0 {
		l.signal()
	}
}

func (l *lanes) enqueue(lane lane, since time.Time) {
	known, queued := l.since[lane]
	if !queued {
		l.queue = append(l.queue, lane)
	}
	if !queued || since.Before(known) {
		l.since[lane] = since
	}
}

func (l *lanes) signal() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// take grants free slots to the lanes that have waited longest. A lane that is granted
// some leaves the queue; settle brings it back if there may be more.
func (l *lanes) take() []grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	var grants []grant
	waiting := l.queue[:0]
	for i, lane := range l.queue {
		if l.used == l.total {
			waiting = append(waiting, l.queue[i:]...)
			break
		}
		slots := l.slotsFor(lane)
		if slots == 0 {
			waiting = append(waiting, lane)
			continue
		}
		grants = append(grants, grant{lane, slots, l.since[lane]})
		delete(l.since, lane)
		l.use(lane, slots)
	}
	l.queue = waiting
	return grants
}

// reserve takes one slot for a delivery that is about to be made. It gets none where the
// lane waits already: what is older goes first.
func (l *lanes) reserve(lane lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, queued := l.since[lane]; queued || l.slotsFor(lane) == 0 {
		return false
	}
	l.use(lane, 1)
	return true
}

// slotsFor is how many more slots a lane may take now.
func (l *lanes) slotsFor(lane lane) int {
	share := room(l.tenants[lane.tenant], perTenant, l.total-l.used)
	return min(share, room(l.held[lane], perEndpoint, perTenant-l.tenants[lane.tenant]))
}

// room is how many more slots one may take who holds some: up to most in all, and no
// more than are then left to others. It never exceeds what is free.
func room(held, most, free int) int {
	return max(0, min(most, (held+free+1)/2)-held)
}

// use changes how many slots a lane holds.
func (l *lanes) use(lane lane, change int) {
	l.used += change
	if l.held[lane] += change; l.held[lane] == 0 {
		delete(l.held, lane)
	}
	if l.tenants[lane.tenant] += change; l.tenants[lane.tenant] == 0 {
		delete(l.tenants, lane.tenant)
	}
	inFlight.Add(float64(change))
}

// settle gives back the slots of the grants that nothing was claimed for. A lane whose
// slots were all used may have more to send and queues again.
func (l *lanes) settle(grants []grant, claimed map[lane]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range grants {
		if claimed[g.lane] == g.slots {
			l.enqueue(g.lane, g.since)
		}
		l.use(g.lane, claimed[g.lane]-g.slots)
	}
	l.signal()
}

// refuse gives back all slots of the grants after a claim that failed, and queues their
// lanes again.
func (l *lanes) refuse(grants []grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range grants {
		l.enqueue(g.lane, g.since)
		l.use(g.lane, -g.slots)
	}
	l.signal()
}

// done gives back one slot for each lane named, as often as it is named.
func (l *lanes) done(finished []lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lane := range finished {
		l.use(lane, -1)
	}
	if len(l.queue) > 0 {
		l.signal()
	}
}
