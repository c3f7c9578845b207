package e2e

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"partilha.dev/pkg/testkit"
)

// The receiver thinks for a while about every answer, so that a kill often falls
// between a POST and the record of what came of it.
const thinksAtMost = 40 * time.Millisecond

func TestNoEventIsPostedTwiceHoweverOftenTheWorkerIsKilled(t *testing.T) {
	t.Parallel()
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))

	p := startPlatform(t, "WEBHOOKS_TIMEOUT=2s", "WEBHOOKS_LEASE=4s")
	shop := openShop(t, p)
	shop.receiver.delay = func() time.Duration { return rand.N(thinksAtMost) }
	worker := p.processes["webhooks"]
	load := startLoad(shop, "order")
	for range rounds {
		for range 1 + chance.IntN(20) {
			select {
			case <-shop.receiver.arrival():
			case <-time.After(patience):
				t.Fatal("no webhook comes")
			}
		}
		<-time.After(time.Duration(chance.Int64N(int64(thinksAtMost))))
		worker.kill()
		worker.start()
	}
	b := books{p, shop}
	b.settle(t, load.stop(t, false))

	states := b.states(t)
	t.Logf("deliveries: %v", states)
	if states["unknown"] == 0 {
		t.Errorf("no delivery is unknown after %d kills: the kills have tested nothing", rounds)
	}
	if total := len(b.eventIDs(t, "true")); states["delivered"]+states["unknown"] != total {
		t.Errorf("deliveries are %v, want %d delivered or unknown", states, total)
	}
	counts := shop.receiver.counts()
	for _, id := range b.eventIDs(t, "state = 'delivered'") {
		if counts[id] != 1 {
			t.Errorf("%s is delivered and was received %d times", id, counts[id])
		}
	}

	// A new life takes up what can be taken up, and nothing else.
	unknown := b.eventIDs(t, "state = 'unknown'")
	worker.stop()
	worker.start()
	before := len(shop.receiver.of("commission.available"))
	shop.sell(t, "after everything")
	testkit.Eventually(t, patience, "the new sale's webhook comes", func() bool {
		return len(shop.receiver.of("commission.available")) > before
	})
	b.await(t, "webhooks", "no delivery is under way", 0,
		"select count(*)::text from pending where tenant_id = $1")
	sameRows(t, "unknown deliveries after another restart", unknown, b.eventIDs(t, "state = 'unknown'"))
	after := shop.receiver.counts()
	for _, id := range unknown {
		if after[id] != counts[id] {
			t.Errorf("%s was unknown and has been posted again", id)
		}
	}
	shop.receiver.assertOnce(t)
	if !slices.Contains(b.eventIDs(t, "state = 'delivered'"), shop.receiver.of("commission.available")[before].id) {
		t.Error("the new sale's webhook came, and its delivery is not recorded")
	}
}
