package e2e

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"partilha.dev/deploy/e2e/stage"
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

	p := stage.StartPlatform(t, "WEBHOOKS_TIMEOUT=2s", "WEBHOOKS_LEASE=4s")
	shop := stage.OpenShop(t, p)
	shop.Receiver.Delay = func() time.Duration { return rand.N(thinksAtMost) }
	worker := p.Processes["webhooks"]
	load := stage.StartLoad(shop, "order")
	for range rounds {
		for range 1 + chance.IntN(20) {
			select {
			case <-shop.Receiver.Arrival():
			case <-time.After(stage.Patience):
				t.Fatal("no webhook comes")
			}
		}
		<-time.After(time.Duration(chance.Int64N(int64(thinksAtMost))))
		worker.Kill()
		worker.Start()
	}
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, load.Stop(t, false))

	states := b.States(t)
	t.Logf("deliveries: %v", states)
	if states["unknown"] == 0 {
		t.Errorf("no delivery is unknown after %d kills: the kills have tested nothing", rounds)
	}
	if total := len(b.EventIDs(t, "true")); states["delivered"]+states["unknown"] != total {
		t.Errorf("deliveries are %v, want %d delivered or unknown", states, total)
	}
	counts := shop.Receiver.Counts()
	for _, id := range b.EventIDs(t, "state = 'delivered'") {
		if counts[id] != 1 {
			t.Errorf("%s is delivered and was received %d times", id, counts[id])
		}
	}

	// A new life takes up what can be taken up, and nothing else.
	unknown := b.EventIDs(t, "state = 'unknown'")
	worker.Stop()
	worker.Start()
	before := len(shop.Receiver.Of("commission.available"))
	shop.Sell(t, "after everything")
	testkit.Eventually(t, stage.Patience, "the new sale's webhook comes", func() bool {
		return len(shop.Receiver.Of("commission.available")) > before
	})
	b.Await(t, "webhooks", "no delivery is under way", 0,
		"select count(*)::text from pending where tenant_id = $1")
	stage.SameRows(t, "unknown deliveries after another restart", unknown, b.EventIDs(t, "state = 'unknown'"))
	after := shop.Receiver.Counts()
	for _, id := range unknown {
		if after[id] != counts[id] {
			t.Errorf("%s was unknown and has been posted again", id)
		}
	}
	shop.Receiver.AssertOnce(t)
	if !slices.Contains(b.EventIDs(t, "state = 'delivered'"), shop.Receiver.Of("commission.available")[before].ID) {
		t.Error("the new sale's webhook came, and its delivery is not recorded")
	}
}
