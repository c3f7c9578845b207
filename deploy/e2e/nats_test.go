package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

func TestWithoutNATSSalesAreAcceptedAndEverythingFollowsOnceItIsBack(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	receipts := shop.SellMany(t, "before", 5)
	p.NATS.Stop()
	for _, service := range stage.Services {
		testkit.Eventually(t, stage.Soon, service+" says that it is degraded", func() bool { return readiness(t, p, service) == "200 degraded" })
	}
	maps.Copy(receipts, shop.SellMany(t, "meanwhile", 30))
	p.NATS.Start()
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, receipts)
	b.AllDelivered(t)
	for _, service := range stage.Services {
		testkit.Eventually(t, stage.Soon, service+" is ready again", func() bool { return readiness(t, p, service) == "200 ready" })
	}
}

func TestAfterALossOfAllMessagesEverythingFollowsAndNothingIsPostedAgain(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	b := stage.Books{Platform: p, Shop: shop}
	receipts := shop.SellMany(t, "settled", 10)
	b.Settle(t, receipts)

	// These are published, so that no outbox waits to publish them, and handled by nobody.
	listeners := []string{"commissions", "goals", "webhooks"}
	for _, service := range listeners {
		p.Processes[service].Stop()
	}
	maps.Copy(receipts, shop.SellMany(t, "published", 40))
	testkit.Eventually(t, stage.Soon, "every sale is published", func() bool {
		return p.Query(t, "sales", "select count(*)::text from outbox_pending")[0] == "0"
	})
	p.NATS.Kill()
	p.NATS.Wipe()
	maps.Copy(receipts, shop.SellMany(t, "meanwhile", 30))
	p.NATS.Start()
	for _, service := range listeners {
		p.Processes[service].Start()
	}
	b.Settle(t, receipts)
	b.AllDelivered(t)
}

func TestAPlatformStartsAndSellsWithoutNATS(t *testing.T) {
	t.Parallel()
	p := stage.NewPlatform(t)
	p.NATS.Stop()
	p.Start()
	for _, service := range stage.Services {
		if got := readiness(t, p, service); got != "200 degraded" {
			t.Errorf("without NATS %s says %s", service, got)
		}
	}
	shop := stage.NewTenant(t, p)
	shop.Stock(t)
	sold := shop.Sell(t, "order-1")
	p.NATS.Start()
	shop.AwaitKey(t)
	testkit.Eventually(t, stage.Patience, "the commission can be read once NATS is there", func() bool {
		return shop.Call(t, "GET", "/api/v1/commissions/"+sold.CommissionID, nil).Status == 200
	})
}

// readiness is the status of a process's /readyz, in numbers and in its own word.
func readiness(t testing.TB, p *stage.Platform, service string) string {
	t.Helper()
	got := p.SystemAddress(t, service, "/readyz")
	var told struct {
		Status  string
		Reasons []string
	}
	if err := json.Unmarshal(got.Body, &told); err != nil {
		t.Fatalf("read %s: %v", got, err)
	}
	if (told.Status == "ready") != (len(told.Reasons) == 0) {
		t.Errorf("%s gives the reasons %q", got, told.Reasons)
	}
	return fmt.Sprint(got.Status, " ", told.Status)
}
