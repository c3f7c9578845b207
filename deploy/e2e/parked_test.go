package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/testkit"
)

// wrongSale is a sale of 100.00 at 5 % whose commission is a centavo too high.
func wrongSale(t testing.TB, shop *stage.Shop) event.Sealed {
	t.Helper()
	id := uuid.New()
	sealed, err := event.Seal(uuid.MustParse(shop.TenantID), id.String(), time.Now(), event.SaleRecorded{
		SaleID: id, PartnerID: uuid.MustParse(shop.PartnerID), CampaignID: uuid.MustParse(shop.CampaignID), PlanID: uuid.MustParse(shop.PlanID),
		ExternalRef: "order", Amount: 100_00, SoldAt: time.Now(), CommissionID: uuid.New(), CommissionPct: 5_0000, CommissionAmount: 5_01,
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestAnOperatorSeesToAnEventThatCannotBeHandled(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	js := connect(t, p)
	mended, dropped := wrongSale(t, shop), wrongSale(t, shop)
	receipts := shop.SellMany(t, "before", 3)
	for _, wrong := range []event.Sealed{mended, dropped} {
		message := &nats.Msg{Subject: wrong.Name, Data: wrong.Body, Header: nats.Header{nats.MsgIdHdr: {wrong.ID.String()}}}
		if _, err := js.PublishMsg(t.Context(), message); err != nil {
			t.Fatal(err)
		}
	}
	for ref, r := range shop.SellMany(t, "after", 3) {
		receipts[ref] = r
	}
	operator := p.Processes["commissions"]
	testkit.Eventually(t, stage.Patience, "both wrong events are parked", func() bool {
		list := operator.MustRun("parked", "list")
		return strings.Contains(list, mended.ID.String()) && strings.Contains(list, dropped.ID.String())
	})
	b := stage.Books{Platform: p, Shop: shop}
	b.Await(t, "commissions", "the neighbours have their commissions", len(receipts), "select count(*)::text from commissions where tenant_id = $1")
	b.CompareCommissions(t, receipts)

	shown := operator.MustRun("parked", "show", mended.ID.String())
	for _, part := range []string{mended.ID.String(), "commissions-earn", shop.TenantID, "is 5.01, but 5 percent of 100.00 is 5.00", string(mended.Body)} {
		if !strings.Contains(shown, part) {
			t.Errorf("parked show does not show %s:\n%s", part, shown)
		}
	}
	if again := operator.Run("parked", "retry", mended.ID.String()); again.Status != 1 || !strings.Contains(again.Stderr, "is 5.01") {
		t.Errorf("a retry before the cause is mended ends with status %d and says %q", again.Status, again.Stderr)
	}

	right := strings.Replace(string(mended.Body), `"commission_amount_brl":5.01`, `"commission_amount_brl":5.00`, 1)
	p.Exec(t, "commissions", "update parked_events set body = $1 where event_id = $2", []byte(right), [16]byte(mended.ID))
	operator.MustRun("parked", "retry", mended.ID.String())
	operator.MustRun("parked", "drop", dropped.ID.String())
	if list := operator.MustRun("parked", "list"); strings.Contains(list, "evt_") {
		t.Errorf("still parked:\n%s", list)
	}
	b.Await(t, "commissions", "the mended sale alone has its commission", len(receipts)+1, "select count(*)::text from commissions where tenant_id = $1")
	testkit.Eventually(t, stage.Patience, "the webhook of the mended sale comes", func() bool {
		return len(shop.Receiver.Of("commission.available")) == len(receipts)+1
	})
	shop.Receiver.AssertOnce(t)

	for _, args := range [][]string{{"show", mended.ID.String()}, {"retry", dropped.ID.String()}, {"drop", dropped.ID.String()}, {"show", "evt_1"}, {"drop"}} {
		if got := operator.Run(append([]string{"parked"}, args...)...); got.Status != 1 || strings.Count(got.Stderr, "\n") != 1 {
			t.Errorf("parked %v of what is not parked ends with status %d and says %q", args, got.Status, got.Stderr)
		}
	}
}
