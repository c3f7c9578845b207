package e2e

import (
	"testing"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

// salesMeanwhile is how many sales are accepted in every phase of an outage.
const salesMeanwhile = 40

func TestSalesGoOnWhileAnotherServiceIsStopped(t *testing.T) {
	t.Parallel()
	p, shop, receipts := sellThroughOutages(t, (*stage.Process).Stop)
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, receipts)
	b.AllDelivered(t) // a service that is asked to stop finishes what it has begun
}

func TestSalesGoOnWhileAnotherServiceIsKilled(t *testing.T) {
	t.Parallel()
	p, shop, receipts := sellThroughOutages(t, (*stage.Process).Kill)
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, receipts)
	states := b.States(t)
	if states["delivered"]+states["unknown"] != len(b.EventIDs(t, "true")) {
		t.Errorf("deliveries are %v, want delivered or, where the worker died, unknown", states)
	}
	counts := shop.Receiver.Counts()
	for _, id := range b.EventIDs(t, "state = 'delivered'") {
		if counts[id] != 1 {
			t.Errorf("%s is delivered and was received %d times", id, counts[id])
		}
	}
}

// sellThroughOutages ends commissions, goals and webhooks one after the other while
// sales are reported, and starts each again.
func sellThroughOutages(t *testing.T, end func(*stage.Process)) (*stage.Platform, *stage.Shop, map[string]stage.Receipt) {
	t.Helper()
	p := stage.StartPlatform(t, "WEBHOOKS_TIMEOUT=2s", "WEBHOOKS_LEASE=4s")
	shop := stage.OpenShop(t, p)
	load := stage.StartLoad(shop, "order")
	accept := func(when string) {
		t.Helper()
		before := load.Answered(201)
		testkit.Eventually(t, stage.Patience, "sales are accepted "+when, func() bool { return load.Answered(201) >= before+salesMeanwhile })
	}
	accept("while all is well")
	for _, service := range []string{"commissions", "goals", "webhooks"} {
		end(p.Processes[service])
		accept("without " + service)
		p.Processes[service].Start()
		accept("after " + service + " has come back")
	}
	return p, shop, load.Stop(t, false)
}
