package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

func TestARewardIsPaidOnceForEachPeriodHoweverOftenItIsTold(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	js := connect(t, p)
	shop := stage.OpenShop(t, p)
	var sold []stage.Receipt
	for i := range 3 {
		sold = append(sold, shop.Sell(t, fmt.Sprint("order-", i)))
	}
	testkit.Eventually(t, stage.Patience, "the sales are counted", func() bool { return shop.Progress(t) == len(sold) })
	// The first is reached by what has been sold already, the second by what is sold next.
	for _, target := range []int{3, 4} {
		shop.Must(t, 201, "POST", "/api/v1/goals", stage.Object{
			"name": "Prêmio", "metric": "sales_count", "target": target, "period": "year", "reward_brl": json.Number("10.00"),
		})
	}
	sold = append(sold, shop.Sell(t, "order-3"))
	shop.Must(t, 201, "POST", "/api/v1/sales/"+sold[0].SaleID+"/refunds", stage.Object{"amount_brl": json.Number("100.50"), "external_ref": "back"})
	shop.Sell(t, "order-4") // comes up to the target a second time
	bonuses := func() string {
		return fmt.Sprint(p.Query(t, "commissions", "select commission_amount_centavos::text from commissions where tenant_id::text = '"+shop.TenantID+"' and kind = 'bonus'"))
	}
	const want = "[1000 1000]"
	testkit.Eventually(t, stage.Patience, "both rewards are paid", func() bool { return bonuses() == want })
	awaitQuiet(t, p, js)

	for i, m := range everyMessage(t, js) {
		m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%s:again-%d", m.Header.Get(nats.MsgIdHdr), i))
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	awaitQuiet(t, p, js)
	if got := bonuses(); got != want {
		t.Errorf("the bonuses are %s, want %s", got, want)
	}
	if told := p.Query(t, "goals", "select count(*)::text from outbox where name = 'goal.reached' and convert_from(body, 'UTF8') like '%\"reward_brl\":10.00%'"); told[0] != "2" {
		t.Errorf("rewards are told of %s times, want 2", told[0])
	}
	if progress := shop.Progress(t); progress != 4 {
		t.Errorf("the goal without a reward has counted %d, want four sales and no bonus", progress)
	}
}
