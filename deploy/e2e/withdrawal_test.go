package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"partilha.dev/pkg/testkit"
)

// A sale's commission is withdrawn and paid: the shop's own systems hear of each step
// once, with the key masked, and the commission ends up paid.
func TestASaleIsPaidOutAndEveryStepIsTold(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	shop := openShop(t, p)
	sold := shop.sell(t, "order-1")
	ask := object{"referral_code": referralCode, "amount_brl": json.Number("5.03"), "pix_key_type": "cpf", "pix_key": "529.982.247-25", "external_ref": "july"}
	testkit.Eventually(t, patience, "the commission can be withdrawn", func() bool {
		return shop.call(t, "POST", "/api/v1/withdrawals", ask).status == http.StatusCreated
	})
	repeat := shop.must(t, 200, "POST", "/api/v1/withdrawals", ask)
	one := "/api/v1/withdrawals/" + repeat.text("withdrawal_id")
	shop.must(t, 200, "POST", one+"/approve", nil)
	shop.must(t, 200, "POST", one+"/pay", object{"end_to_end_id": "E12345678202607141305abcDEF12345"})
	shop.must(t, 409, "POST", one+"/fail", object{"reason": "too late"})
	shop.must(t, 200, "POST", one+"/pay", object{})
	if got := shop.must(t, 200, "GET", one, nil); got.text("status") != "paid" {
		t.Errorf("the withdrawal is %s", got)
	}
	if got := shop.must(t, 200, "GET", "/api/v1/commissions/"+sold.CommissionID, nil); got.text("status") != "paid" {
		t.Errorf("the commission is %s", got)
	}

	heard := map[string]int{"withdrawal.requested": 1, "withdrawal.status_changed": 2}
	for name, want := range heard {
		testkit.Eventually(t, patience, fmt.Sprint(want, " of ", name), func() bool { return len(shop.receiver.of(name)) >= want })
	}
	shop.receiver.assertOnce(t)
	whole := regexp.MustCompile(`529\.?982\.?247`)
	for name, want := range heard {
		told := shop.receiver.of(name)
		if len(told) != want {
			t.Errorf("%s was told %d times, want %d", name, len(told), want)
		}
		for _, w := range told {
			if whole.Match(w.body) {
				t.Errorf("%s shows the key: %s", name, w.body)
			}
		}
	}
	books{p, shop}.verify(t)
}

func TestAnOperatorSealsPIXKeysAgain(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	service := p.processes["commissions"]
	if said := service.mustRun("rekey"); said != "0 PIX keys are sealed again, 0 were under the first key already" {
		t.Errorf("rekey says %q", said)
	}
	if got := service.run("rekey", "all"); got.status != 1 || got.stderr == "" {
		t.Errorf("rekey with an argument ends with status %d and says %q", got.status, got.stderr)
	}
}
