package e2e

import (
	"maps"
	"testing"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

// TestAfterNATSHadAFullDiskAndARestartEverythingFollows is what the runbook promises of a
// full disk: sales are answered all the while, their events wait in the outbox, and once
// there is room and NATS has been restarted nothing is missing.
func TestAfterNATSHadAFullDiskAndARestartEverythingFollows(t *testing.T) {
	t.Parallel()
	p := stage.NewPlatform(t)
	p.NATS.Stop()
	disk := p.NATS.MoveToDisk(24)
	p.NATS.Start()
	p.Start()
	shop := stage.OpenShop(t, p)
	b := stage.Books{Platform: p, Shop: shop}
	receipts := shop.SellMany(t, "before", 5)
	b.Settle(t, receipts)

	disk.Fill()
	maps.Copy(receipts, shop.SellMany(t, "meanwhile", 100))
	testkit.Eventually(t, stage.Patience, "events wait, since NATS refuses them", func() bool {
		return p.Query(t, "sales", "select (count(*) > 10)::text from outbox_pending where created_at < clock_timestamp() - interval '5 seconds'")[0] == "true"
	})
	disk.MakeRoom()
	p.NATS.Stop()
	p.NATS.Start()
	b.Settle(t, receipts)
	b.AllDelivered(t)
}
