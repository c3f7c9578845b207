package e2e

import (
	"testing"

	"partilha.dev/pkg/testkit"
)

// salesMeanwhile is how many sales are accepted in every phase of an outage.
const salesMeanwhile = 40

func TestSalesGoOnWhileAnotherServiceIsStopped(t *testing.T) {
	t.Parallel()
	p, shop, receipts := sellThroughOutages(t, (*process).stop)
	b := books{p, shop}
	b.settle(t, receipts)
	b.allDelivered(t) // a service that is asked to stop finishes what it has begun
}

func TestSalesGoOnWhileAnotherServiceIsKilled(t *testing.T) {
	t.Parallel()
	p, shop, receipts := sellThroughOutages(t, (*process).kill)
	b := books{p, shop}
	b.settle(t, receipts)
	states := b.states(t)
	if states["delivered"]+states["unknown"] != len(b.eventIDs(t, "true")) {
		t.Errorf("deliveries are %v, want delivered or, where the worker died, unknown", states)
	}
	counts := shop.receiver.counts()
	for _, id := range b.eventIDs(t, "state = 'delivered'") {
		if counts[id] != 1 {
			t.Errorf("%s is delivered and was received %d times", id, counts[id])
		}
	}
}

// sellThroughOutages ends commissions, goals and webhooks one after the other while
// sales are reported, and starts each again.
func sellThroughOutages(t *testing.T, end func(*process)) (*platform, *shop, map[string]receipt) {
	t.Helper()
	p := startPlatform(t, "WEBHOOKS_TIMEOUT=2s", "WEBHOOKS_LEASE=4s")
	shop := openShop(t, p)
	load := startLoad(shop, "order")
	accept := func(when string) {
		t.Helper()
		before := load.answered(201)
		testkit.Eventually(t, patience, "sales are accepted "+when, func() bool { return load.answered(201) >= before+salesMeanwhile })
	}
	accept("while all is well")
	for _, service := range []string{"commissions", "goals", "webhooks"} {
		end(p.processes[service])
		accept("without " + service)
		p.processes[service].start()
		accept("after " + service + " has come back")
	}
	return p, shop, load.stop(t, false)
}
