package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

// A sale's commission is withdrawn and paid: the shop's own systems hear of each step
// once, with the key masked, and the commission ends up paid.
func TestASaleIsPaidOutAndEveryStepIsTold(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	sold := shop.Sell(t, "order-1")
	ask := stage.Object{"referral_code": stage.ReferralCode, "amount_brl": json.Number("5.03"), "pix_key_type": "cpf", "pix_key": "529.982.247-25", "external_ref": "july"}
	testkit.Eventually(t, stage.Patience, "the commission can be withdrawn", func() bool {
		return shop.Call(t, "POST", "/api/v1/withdrawals", ask).Status == http.StatusCreated
	})
	repeat := shop.Must(t, 200, "POST", "/api/v1/withdrawals", ask)
	one := "/api/v1/withdrawals/" + repeat.Text("withdrawal_id")
	shop.Must(t, 200, "POST", one+"/approve", nil)
	shop.Must(t, 200, "POST", one+"/pay", stage.Object{"end_to_end_id": "E12345678202607141305abcDEF12345"})
	shop.Must(t, 409, "POST", one+"/fail", stage.Object{"reason": "too late"})
	shop.Must(t, 200, "POST", one+"/pay", stage.Object{})
	if got := shop.Must(t, 200, "GET", one, nil); got.Text("status") != "paid" {
		t.Errorf("the withdrawal is %s", got)
	}
	if got := shop.Must(t, 200, "GET", "/api/v1/commissions/"+sold.CommissionID, nil); got.Text("status") != "paid" {
		t.Errorf("the commission is %s", got)
	}

	heard := map[string]int{"withdrawal.requested": 1, "withdrawal.status_changed": 2}
	for name, want := range heard {
		testkit.Eventually(t, stage.Patience, fmt.Sprint(want, " of ", name), func() bool { return len(shop.Receiver.Of(name)) >= want })
	}
	shop.Receiver.AssertOnce(t)
	whole := regexp.MustCompile(`529\.?982\.?247`)
	for name, want := range heard {
		told := shop.Receiver.Of(name)
		if len(told) != want {
			t.Errorf("%s was told %d times, want %d", name, len(told), want)
		}
		for _, w := range told {
			if whole.Match(w.Body) {
				t.Errorf("%s shows the key: %s", name, w.Body)
			}
		}
	}
	stage.Books{Platform: p, Shop: shop}.Verify(t)
}

func TestAnOperatorSealsPIXKeysAgain(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	service := p.Processes["commissions"]
	if said := service.MustRun("rekey"); said != "0 PIX keys are sealed again, 0 were under the first key already" {
		t.Errorf("rekey says %q", said)
	}
	if got := service.Run("rekey", "all"); got.Status != 1 || got.Stderr == "" {
		t.Errorf("rekey with an argument ends with status %d and says %q", got.Status, got.Stderr)
	}
}
