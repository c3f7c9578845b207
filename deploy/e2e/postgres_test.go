package e2e

import (
	"context"
	"maps"
	"testing"

	"partilha.dev/pkg/testkit"
)

func TestWhilePostgreSQLIsDownNoSaleIsAcknowledgedAndNoneIsLostThatWas(t *testing.T) {
	t.Parallel()
	server := testkit.Postgres(t)
	p := newPlatformOn(t, server)
	p.start()
	shop := openShop(t, p)
	load := startLoad(shop, "order")
	accepted := func(when string) {
		t.Helper()
		before := load.answered(201)
		testkit.Eventually(t, patience, "sales are accepted "+when, func() bool { return load.answered(201) >= before+50 })
	}
	for range 2 {
		accepted("while all is well")
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		before := load.answered(201) + load.answered(200)
		refused := load.answered(503)
		testkit.Eventually(t, patience, "sales are refused", func() bool { return load.answered(503) >= refused+20 })
		if late := load.answered(201) + load.answered(200) - before; late > loadCallers {
			t.Errorf("%d sales were acknowledged without a database", late) // what was committed before may be answered after
		}
		if got := shop.call(t, "POST", "/api/v1/sales", shop.report("order-0-0")); got.status != 503 || got.code() != "unavailable" {
			t.Errorf("a repeat without a database is answered %s", got)
		}
		for _, service := range services {
			if got := readiness(t, p, service); got != "503 unavailable" {
				t.Errorf("without PostgreSQL %s says %s", service, got)
			}
			if got := p.systemAddress(t, service, "/healthz"); got.status != 200 {
				t.Errorf("without PostgreSQL the process of %s is not alive: %s", service, got)
			}
		}
		if err := server.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	accepted("after the last restart")
	receipts := load.stop(t, true)
	acknowledged := maps.Clone(receipts)
	load.repeatOpen(t)
	for ref, r := range acknowledged {
		var again receipt
		shop.must(t, 200, "POST", "/api/v1/sales", shop.report(ref)).into(t, &again)
		again.Idempotent = r.Idempotent
		if again != r {
			t.Errorf("%s was acknowledged as %+v and is now %+v", ref, r, again)
		}
	}
	b := books{p, shop}
	b.settle(t, receipts)
}
