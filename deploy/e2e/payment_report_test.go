package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/client"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
)

// saleReport is report for the client.
func saleReport(s *stage.Shop, externalRef string) client.SaleReport {
	return client.SaleReport{
		ReferralCode: stage.ReferralCode, CampaignID: uuid.MustParse(s.CampaignID), PlanID: uuid.MustParse(s.PlanID),
		Amount: money.BRL(10050), ExternalRef: externalRef,
	}
}

func TestThroughTheClientBatchesRefundsAndConversionsAreRecordedOnce(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	c, ctx := newClient(t, edgeOf(t, p), shop.Token, client.Options{}), t.Context()

	// A batch, of which each element stands alone.
	early, late, free, unknown := saleReport(shop, "order-1"), saleReport(shop, "order-2"), saleReport(shop, "order-3"), saleReport(shop, "order-4")
	early.SoldAt, free.Amount, unknown.ReferralCode = time.Now().Add(-48*time.Hour), 0, "nobody"
	differing := early
	differing.Amount, differing.CustomerRef = 1, "customer-1"
	results := done(c.RecordSales(ctx, []client.SaleReport{early, late, free, unknown, differing}))(t)
	if first, second := results[0], results[1]; first.Refusal != nil || second.Refusal != nil || first.CommissionAmount != 503 || first.Idempotent || first.SaleID == second.SaleID {
		t.Errorf("two sales are answered %+v and %+v", first, second)
	}
	if repeat := results[4]; repeat.Refusal != nil || !repeat.Idempotent || repeat.SaleID != results[0].SaleID || !slices.Equal(repeat.Mismatch, []string{"amount_brl", "customer_ref"}) {
		t.Errorf("the repeat of one is answered %+v", repeat)
	}
	wantRefusal(t, results[2].Refusal, 400, "invalid_body")
	wantRefusal(t, results[3].Refusal, 404, "partner_not_found")
	yesterday := time.Now().Add(-24 * time.Hour)
	if before, since := all(t, c.ListSales(ctx, client.SaleFilter{SoldTo: yesterday})), all(t, c.ListSales(ctx, client.SaleFilter{SoldFrom: yesterday})); len(before) != 1 ||
		before[0].SaleID != results[0].SaleID || len(since) != 1 || since[0].SaleID != results[1].SaleID {
		t.Errorf("sold before yesterday are %+v, and since then %+v", before, since)
	}

	// A refund.
	saleID := results[1].SaleID
	back := done(c.RecordRefund(ctx, saleID, client.RefundReport{Amount: 5025, ExternalRef: "return-1", Reason: "one of two"}))(t)
	if back.Idempotent || back.SaleID != saleID || back.Amount != 5025 || back.CommissionReversed == 0 {
		t.Errorf("the refund is answered %+v", back)
	}
	if again := done(c.RecordRefund(ctx, saleID, client.RefundReport{Amount: 5026, ExternalRef: "return-1", Reason: "one of two"}))(t); !again.Idempotent ||
		again.RefundID != back.RefundID || !slices.Equal(again.Mismatch, []string{"amount_brl"}) {
		t.Errorf("its repeat is answered %+v", again)
	}
	_, err := c.RecordRefund(ctx, saleID, client.RefundReport{Amount: 5026, ExternalRef: "return-2"})
	wantRefusal(t, err, 422, "rule_violated")
	if known := all(t, c.ListRefunds(ctx, saleID)); len(known) != 1 || known[0].RefundID != back.RefundID || *known[0].Reason != "one of two" {
		t.Errorf("known are the refunds %+v", known)
	}
	if sold := done(c.GetSale(ctx, saleID))(t); sold.Refunded != 5025 {
		t.Errorf("of the sale %s is refunded, want 50.25", sold.Refunded)
	}

	// A conversion, with and without a plan that pays for it.
	paying := done(c.CreatePlan(ctx, early.CampaignID, client.NewPlan{Name: "Cadastro", ConversionAmount: 475}))(t)
	signup := client.ConversionReport{ReferralCode: stage.ReferralCode, CampaignID: early.CampaignID, PlanID: paying.PlanID, ExternalRef: "signup-1", Type: "signup", Value: 8990}
	paid := done(c.RecordConversion(ctx, signup))(t)
	if paid.Idempotent || paid.CommissionID == nil || paid.CommissionAmount == nil || *paid.CommissionAmount != 475 {
		t.Errorf("the signup is answered %+v", paid)
	}
	signup.Value = 0
	if again := done(c.RecordConversion(ctx, signup))(t); !again.Idempotent || again.ConversionID != paid.ConversionID || !slices.Equal(again.Mismatch, []string{"value_brl"}) {
		t.Errorf("its repeat is answered %+v", again)
	}
	lead := done(c.RecordConversion(ctx, client.ConversionReport{ReferralCode: stage.ReferralCode, CampaignID: early.CampaignID, ExternalRef: "lead-1"}))(t)
	if lead.CommissionID != nil || lead.CommissionAmount != nil {
		t.Errorf("the lead is answered %+v", lead)
	}
	if known := done(c.GetConversion(ctx, paid.ConversionID))(t); *known.Value != 8990 || known.Type != "signup" || *known.PlanID != paying.PlanID || known.CustomerRef != nil {
		t.Errorf("the signup is known as %+v", known)
	}
	if leads := all(t, c.ListConversions(ctx, client.ConversionFilter{Type: "lead", CampaignID: early.CampaignID})); len(leads) != 1 || leads[0].ConversionID != lead.ConversionID || leads[0].PlanID != nil {
		t.Errorf("the leads are %+v", leads)
	}
}

// TestThroughTheClientNoSaleIsLostOrDoubledWhileItsServiceIsKilled has checkouts that
// call once and leave everything else to the client.
func TestThroughTheClientNoSaleIsLostOrDoubledWhileItsServiceIsKilled(t *testing.T) {
	t.Parallel()
	const checkouts, each = 8, 40
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	c := newClient(t, edgeOf(t, p), shop.Token, client.Options{Attempts: 30})
	var (
		mu       sync.Mutex
		receipts = map[string]uuid.UUID{}
		working  sync.WaitGroup
	)
	recorded := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(receipts)
	}
	for n := range checkouts {
		working.Go(func() {
			for i := range each {
				ref := fmt.Sprintf("order-%d-%d", n, i)
				sold, err := c.RecordSale(t.Context(), saleReport(shop, ref))
				if err != nil {
					t.Errorf("%s: %v", ref, err)
					return
				}
				mu.Lock()
				receipts[ref] = sold.SaleID
				mu.Unlock()
			}
		})
	}
	testkit.Eventually(t, stage.Patience, "sales are recorded", func() bool { return recorded() > checkouts*each/8 })
	p.Processes["sales"].Kill()
	before := recorded()
	p.Processes["sales"].Start()
	working.Wait()
	if before == checkouts*each {
		t.Error("everything was sold before the process was killed")
	}
	found := map[string]uuid.UUID{}
	for _, sale := range all(t, c.ListSales(t.Context(), client.SaleFilter{})) {
		if _, twice := found[sale.ExternalRef]; twice {
			t.Errorf("%s is recorded twice", sale.ExternalRef)
		}
		found[sale.ExternalRef] = sale.SaleID
	}
	for ref, id := range receipts {
		if found[ref] != id {
			t.Errorf("%s was answered as %s and is recorded as %s", ref, id, found[ref])
		}
	}
	if len(receipts) != checkouts*each || len(found) != checkouts*each {
		t.Errorf("%d sales were answered and %d are recorded, want %d", len(receipts), len(found), checkouts*each)
	}
}
