package webhooks

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// bounds are how many attempts may be in flight on this worker.
type bounds struct{ total, perTenant, perEndpoint int }

const (
	// perEndpoint is the most that is in flight to one endpoint, and perTenant of one
	// tenant. What is attempted again has its own part of both, so that however much that
	// is, first attempts never wait for it.
	perEndpoint, perTenant           = 28, 112
	againPerEndpoint, againPerTenant = 4, 16
	// againPart is the part of all slots that is for what is attempted again.
	againPart = 8
)

// share divides so many slots, two at least, between first attempts and all others.
func share(concurrency int) (first, again bounds) {
	others := max(1, concurrency/againPart)
	return bounds{concurrency - others, perTenant, perEndpoint}, bounds{others, againPerTenant, againPerEndpoint}
}

// lane is the way to one endpoint.
type lane struct{ tenant, endpoint uuid.UUID }

// lanes hands out the slots in which deliveries are sent, so that a receiver that
// hangs delays only itself. It is safe for concurrent use.
//
// A lane is woken when it may have something to send, and then waits in its tenant's
// queue until it is granted slots. The tenants take turns, and so do the lanes of each
// at its tenant's. Nobody is granted more than half of what is left, neither a tenant of
// all slots nor an endpoint of its tenant's: however many hang, whoever has nothing in
// flight still finds a slot until the very last is gone, and where all tenants have much
// to send all come to hold the same.
type lanes struct {
	bounds
	paces *paces
	ready chan struct{} // has an element when there may be something to grant

	mu      sync.Mutex
	used    int
	tenants map[uuid.UUID]int // slots in use of each tenant
	held    map[lane]int      // slots in use of each lane
	turns   []uuid.UUID       // the tenants that have lanes in their queues
	queues  map[uuid.UUID][]lane
	since   map[lane]time.Time // of every queued lane: no event that waits there is older
}

func newLanes(most bounds, paces *paces) *lanes {
	return &lanes{
		bounds: most, paces: paces, ready: make(chan struct{}, 1),
		tenants: map[uuid.UUID]int{}, held: map[lane]int{}, queues: map[uuid.UUID][]lane{}, since: map[lane]time.Time{},
	}
}

// grant lets deliveries of a lane be claimed, so many for each of its slots.
type grant struct {
	lane
	slots, ahead int
	since        time.Time
}

func (g grant) most() int { return g.slots * g.ahead }

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
		if len(l.queues[lane.tenant]) == 0 {
			l.turns = append(l.turns, lane.tenant)
		}
		l.queues[lane.tenant] = append(l.queues[lane.tenant], lane)
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

// take grants free slots to the tenants in turn, at each turn to the lane that has waited
// longest. A lane that is granted some leaves the queue; settle brings it back if there
// may be more.
func (l *lanes) take() []grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	var grants []grant
	for before := -1; before < len(grants); {
		before = len(grants)
		for range len(l.turns) {
			if l.used == l.total {
				return grants
			}
			tenant := l.turns[0]
			l.turns = l.turns[1:]
			if g, ok := l.grant(tenant); ok {
				grants = append(grants, g)
			}
			if len(l.queues[tenant]) > 0 {
				l.turns = append(l.turns, tenant)
			}
		}
	}
	return grants
}

// grant gives slots to the first lane of the tenant's queue that may have some.
func (l *lanes) grant(tenant uuid.UUID) (grant, bool) {
	if l.shareOf(tenant) == 0 {
		return grant{}, false // none of its lanes may
	}
	queue := l.queues[tenant]
	for i, lane := range queue {
		slots := l.slotsFor(lane)
		if slots == 0 {
			continue
		}
		if l.queues[tenant] = slices.Delete(queue, i, i+1); len(queue) == 1 {
			delete(l.queues, tenant)
		}
		g := grant{lane, slots, l.paces.ahead(lane), l.since[lane]}
		delete(l.since, lane)
		l.use(lane, slots)
		return g, true
	}
	return grant{}, false
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

// shareOf is how many more slots a tenant may take now.
func (l *lanes) shareOf(tenant uuid.UUID) int {
	return room(l.tenants[tenant], l.perTenant, l.total-l.used)
}

// slotsFor is how many more slots a lane may take now. Where other lanes of its tenant
// have something in flight or to send, it leaves them a quarter of what the tenant may have.
func (l *lanes) slotsFor(lane lane) int {
	held, ofTenant := l.held[lane], l.tenants[lane.tenant]
	share := l.shareOf(lane.tenant)
	most := l.paces.most(lane, l.perEndpoint)
	others := len(l.queues[lane.tenant])
	if _, queued := l.since[lane]; queued {
		others--
	}
	if others > 0 || ofTenant > held {
		all := ofTenant + share
		most = min(most, max(1, all-(all+3)/4))
	}
	return min(share, room(held, most, l.perTenant-ofTenant))
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

// settle gives back the slots of the grants that nothing was claimed for, and returns how
// many are in use. A lane of which as much was claimed as could be may have more to send
// and queues again.
func (l *lanes) settle(grants []grant, claimed map[lane]int) (inUse map[lane]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inUse = make(map[lane]int, len(claimed))
	for _, g := range grants {
		if claimed[g.lane] == g.most() {
			l.enqueue(g.lane, g.since)
		}
		inUse[g.lane] = min(claimed[g.lane], g.slots)
		l.use(g.lane, inUse[g.lane]-g.slots)
	}
	l.signal()
	return inUse
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

// done gives back slots of a lane.
func (l *lanes) done(lane lane, slots int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(lane, -slots)
	if len(l.turns) > 0 {
		l.signal()
	}
}
