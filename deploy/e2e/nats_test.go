package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"partilha.dev/pkg/testkit"
)

func TestWithoutNATSSalesAreAcceptedAndEverythingFollowsOnceItIsBack(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	shop := openShop(t, p)
	receipts := shop.sellMany(t, "before", 5)
	p.nats.Stop()
	for _, service := range services {
		testkit.Eventually(t, soon, service+" says that it is degraded", func() bool { return readiness(t, p, service) == "200 degraded" })
	}
	maps.Copy(receipts, shop.sellMany(t, "meanwhile", 30))
	p.nats.Start()
	b := books{p, shop}
	b.settle(t, receipts)
	b.allDelivered(t)
	for _, service := range services {
		testkit.Eventually(t, soon, service+" is ready again", func() bool { return readiness(t, p, service) == "200 ready" })
	}
}

func TestAfterALossOfAllMessagesEverythingFollowsAndNothingIsPostedAgain(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	shop := openShop(t, p)
	b := books{p, shop}
	receipts := shop.sellMany(t, "settled", 10)
	b.settle(t, receipts)

	// These are published, so that no outbox waits to publish them, and handled by nobody.
	listeners := []string{"commissions", "goals", "webhooks"}
	for _, service := range listeners {
		p.processes[service].stop()
	}
	maps.Copy(receipts, shop.sellMany(t, "published", 40))
	testkit.Eventually(t, soon, "every sale is published", func() bool {
		return p.query(t, "sales", "select count(*)::text from outbox_pending")[0] == "0"
	})
	p.nats.Kill()
	p.nats.Wipe()
	maps.Copy(receipts, shop.sellMany(t, "meanwhile", 30))
	p.nats.Start()
	for _, service := range listeners {
		p.processes[service].start()
	}
	b.settle(t, receipts)
	b.allDelivered(t)
}

func TestAPlatformStartsAndSellsWithoutNATS(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.nats.Stop()
	p.start()
	for _, service := range services {
		if got := readiness(t, p, service); got != "200 degraded" {
			t.Errorf("without NATS %s says %s", service, got)
		}
	}
	shop := newTenant(t, p)
	shop.must(t, 201, "POST", "/api/v1/partners", object{"name": "Ana", "referral_code": referralCode}).into(t, shop)
	shop.must(t, 201, "POST", "/api/v1/campaigns", object{"name": "Lançamento"}).into(t, shop)
	shop.must(t, 201, "POST", "/api/v1/campaigns/"+shop.CampaignID+"/plans", object{"name": "Cinco", "commission_pct": 5}).into(t, shop)
	shop.must(t, 204, "PUT", "/api/v1/campaigns/"+shop.CampaignID+"/partners/"+shop.PartnerID, nil)
	sold := shop.sell(t, "order-1")
	p.nats.Start()
	shop.awaitKey(t)
	testkit.Eventually(t, patience, "the commission can be read once NATS is there", func() bool {
		return shop.call(t, "GET", "/api/v1/commissions/"+sold.CommissionID, nil).status == 200
	})
}

// readiness is the status of a process's /readyz, in numbers and in its own word.
func readiness(t testing.TB, p *platform, service string) string {
	t.Helper()
	got := p.systemAddress(t, service, "/readyz")
	var told struct {
		Status  string
		Reasons []string
	}
	if err := json.Unmarshal(got.body, &told); err != nil {
		t.Fatalf("read %s: %v", got, err)
	}
	if (told.Status == "ready") != (len(told.Reasons) == 0) {
		t.Errorf("%s gives the reasons %q", got, told.Reasons)
	}
	return fmt.Sprint(got.status, " ", told.Status)
}
