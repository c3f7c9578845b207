package cluster

import (
	"testing"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/pgserver"
	"partilha.dev/pkg/testkit"
)

func TestNoAcknowledgedSaleIsLostWhenThePrimaryDiesAndTheStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.PostgresPair(t)
	databases := map[string]string{}
	for _, service := range stage.Services {
		if err := primary.CreateDatabase(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		databases[service] = pgserver.WritableURL(service, primary, standby)
	}
	c := startCluster(t, databases)
	shop := c.openShop(t)
	load := stage.StartLoadEvery(shop, "order", pace)
	accept(t, load, "with both servers")
	load.Phase("without a primary")
	refused := load.Answered(503)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, stage.Patience, "sales are refused", func() bool { return load.Answered(503) >= refused+20 })
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	accept(t, load, "on the promoted standby") // to which no process was told to go
	acknowledged := load.Stop(t, true)
	load.Print(t)
	for ref, r := range acknowledged {
		var again stage.Receipt
		shop.Must(t, 200, "POST", "/api/v1/sales", shop.Report(ref)).Into(t, &again)
		again.Idempotent = r.Idempotent
		if again != r {
			t.Errorf("%s was acknowledged as %+v and is now %+v", ref, r, again)
		}
	}
	load.RepeatOpen(t)
	b := stage.Books{Platform: c.Platform, Shop: shop}
	b.Settle(t, load.Receipts())
	deliveredOrUnknown(t, b)
	c.keysArrive(t, shop)
}

// PostgreSQL shows a sale whose commit waited for the standby until the service gave up,
// although the standby does not have it.
func TestARepeatIsNotAnsweredBeforeTheStandbyHasTheSale(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.PostgresPair(t)
	if err := primary.CreateDatabase(t.Context(), "sales"); err != nil {
		t.Fatal(err)
	}
	const nowhere = "nats://127.0.0.1:1" // what is asked here needs no NATS
	url := pgserver.WritableURL("sales", primary, standby)
	sales := stage.NewProcess(t, "sales", append(stage.Settings("sales", url, nowhere), "MIGRATE=on")...)
	sales.Start()
	shop := stage.NewTenant(t, stage.At{Process: sales})
	shop.Stock(t)
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"a sale", "its repeat"} {
		if got := shop.Call(t, "POST", "/api/v1/sales", shop.Report("order-1")); got.Status != 503 {
			t.Errorf("without the standby %s is answered %s", when, got)
		}
	}
	if err := standby.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, stage.Patience, "the repeat is answered once the standby is back", func() bool {
		return shop.Call(t, "POST", "/api/v1/sales", shop.Report("order-1")).Status == 200
	})
}
