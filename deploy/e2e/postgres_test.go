package e2e

import (
	"context"
	"testing"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

func TestWhilePostgreSQLIsDownNoSaleIsAcknowledgedAndNoneIsLostThatWas(t *testing.T) {
	t.Parallel()
	server := testkit.Postgres(t)
	p := stage.NewPlatformOn(t, server)
	p.Start()
	shop := stage.OpenShop(t, p)
	load := stage.StartLoad(shop, "order")
	accepted := func(when string) {
		t.Helper()
		before := load.Answered(201)
		testkit.Eventually(t, stage.Patience, "sales are accepted "+when, func() bool { return load.Answered(201) >= before+50 })
	}
	for range 2 {
		accepted("while all is well")
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		before := load.Answered(201) + load.Answered(200)
		refused := load.Answered(503)
		testkit.Eventually(t, stage.Patience, "sales are refused", func() bool { return load.Answered(503) >= refused+20 })
		if late := load.Answered(201) + load.Answered(200) - before; late > stage.LoadCallers {
			t.Errorf("%d sales were acknowledged without a database", late) // what was committed before may be answered after
		}
		if got := shop.Call(t, "POST", "/api/v1/sales", shop.Report("order-0-0")); got.Status != 503 || got.Code() != "unavailable" {
			t.Errorf("a repeat without a database is answered %s", got)
		}
		for _, service := range stage.Services {
			if got := readiness(t, p, service); got != "503 unavailable" {
				t.Errorf("without PostgreSQL %s says %s", service, got)
			}
			if got := p.SystemAddress(t, service, "/healthz"); got.Status != 200 {
				t.Errorf("without PostgreSQL the process of %s is not alive: %s", service, got)
			}
		}
		if err := server.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	accepted("after the last restart")
	acknowledged := load.Stop(t, true)
	load.RepeatOpen(t)
	for ref, r := range acknowledged {
		var again stage.Receipt
		shop.Must(t, 200, "POST", "/api/v1/sales", shop.Report(ref)).Into(t, &again)
		again.Idempotent = r.Idempotent
		if again != r {
			t.Errorf("%s was acknowledged as %+v and is now %+v", ref, r, again)
		}
	}
	b := stage.Books{Platform: p, Shop: shop}
	b.Settle(t, load.Receipts())
}
