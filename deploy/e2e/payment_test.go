package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/client"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
	"partilha.dev/pkg/webhook"
)

// hooks is a receiver that uses package webhook to tell genuine webhooks from others.
type hooks struct {
	mu     sync.Mutex
	secret string
	events []webhook.Event
	errs   []error
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	err = webhook.Verify(h.secret, body, r.Header)
	var told webhook.Event
	if err == nil {
		told, err = webhook.Parse(body)
	}
	if err != nil {
		h.errs = append(h.errs, err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	h.events = append(h.events, told)
}

func TestAPaymentSystemSetsUpAShopAndSellsThroughTheClient(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	tenant := stage.NewTenant(t, p)
	tenant.AwaitKey(t)
	edge := edgeOf(t, p)
	c, ctx := newClient(t, edge, tenant.Token, client.Options{}), t.Context()

	// The catalogue, of which each creation can be repeated.
	ana := done(c.CreatePartner(ctx, client.NewPartner{Name: "Ana", ReferralCode: "ana", Email: "ana@example.com", ExternalRef: "partner-1"}))(t)
	again := done(c.CreatePartner(ctx, client.NewPartner{Name: "Ana S.", ReferralCode: "ana", Email: "ana@example.com", ExternalRef: "partner-1"}))(t)
	if ana.Idempotent || !again.Idempotent || again.PartnerID != ana.PartnerID || !slices.Equal(again.Mismatch, []string{"name"}) {
		t.Errorf("the partner is %+v and then %+v", ana, again)
	}
	_, err := c.CreatePartner(ctx, client.NewPartner{Name: "Other", ReferralCode: "ana"})
	wantRefusal(t, err, 409, "conflict")
	campaign := done(c.CreateCampaign(ctx, client.NewCampaign{Name: "Lançamento", Status: "draft", EndsAt: time.Now().AddDate(1, 0, 0)}))(t)
	if changed := done(c.UpdateCampaign(ctx, campaign.CampaignID, client.CampaignUpdate{Status: "active", EndsAt: client.Null[time.Time]()}))(t); changed.Status != "active" || changed.EndsAt != nil {
		t.Errorf("the campaign is changed to %+v", changed)
	}
	plan := done(c.CreatePlan(ctx, campaign.CampaignID, client.NewPlan{Name: "Dez", CommissionPct: money.Pct(100000), ConversionAmount: 475, HoldDays: 3}))(t)
	if changed := done(c.UpdatePlan(ctx, plan.PlanID, client.PlanUpdate{CommissionPct: new(money.Pct(50000)), HoldDays: new(0)}))(t); changed.CommissionPct != 50000 || changed.HoldDays != 0 || *changed.ConversionAmount != 475 {
		t.Errorf("the plan is changed to %+v", changed)
	}
	report := client.SaleReport{ReferralCode: "ana", CampaignID: campaign.CampaignID, PlanID: plan.PlanID, Amount: money.BRL(10050), ExternalRef: "order-1"}
	_, err = c.RecordSale(ctx, report)
	wantRefusal(t, err, 422, "create_failed") // the two are not linked
	if err := c.LinkPartner(ctx, campaign.CampaignID, ana.PartnerID); err != nil {
		t.Fatal(err)
	}
	if linked := all(t, c.ListCampaignPartners(ctx, campaign.CampaignID)); len(linked) != 1 || linked[0].PartnerID != ana.PartnerID {
		t.Errorf("linked are %+v", linked)
	}

	// Who is to hear of it.
	goal := done(c.CreateGoal(ctx, client.NewGoal{
		Name: "Uma venda", Metric: "sales_count", Target: event.Quantity{Value: 1}, Period: "month", PartnerIDs: []uuid.UUID{ana.PartnerID}, ExternalRef: "goal-1",
	}))(t)
	heard := &hooks{}
	receiver := httptest.NewServer(heard)
	t.Cleanup(receiver.Close)
	endpoint := done(c.CreateWebhookEndpoint(ctx, client.NewWebhookEndpoint{URL: receiver.URL, Events: []string{event.NameCommissionAvailable}, Description: "shop"}))(t)
	heard.mu.Lock()
	heard.secret = endpoint.Secret
	heard.mu.Unlock()

	// The sale, once.
	report.CustomerRef, report.SoldAt = "customer-1", time.Now().Add(-time.Second)
	sold := done(c.RecordSale(ctx, report))(t)
	if sold.Idempotent || sold.Mismatch != nil || sold.CommissionAmount != 503 {
		t.Errorf("the sale is answered %+v", sold)
	}
	report.Amount = money.BRL(99900)
	if again := done(c.RecordSale(ctx, report))(t); !again.Idempotent || again.SaleID != sold.SaleID || !slices.Equal(again.Mismatch, []string{"amount_brl"}) {
		t.Errorf("its repeat is answered %+v", again)
	}
	_, err = c.RecordSale(ctx, client.SaleReport{ReferralCode: "nobody", CampaignID: campaign.CampaignID, PlanID: plan.PlanID, Amount: 1, ExternalRef: "order-2"})
	wantRefusal(t, err, 404, "partner_not_found")
	_, err = c.RecordSale(ctx, client.SaleReport{CampaignID: campaign.CampaignID, PlanID: plan.PlanID, ExternalRef: "order-2"})
	wantRefusal(t, err, 400, "invalid_body")
	if known := done(c.GetSale(ctx, sold.SaleID))(t); known.Amount != 10050 || known.CommissionPct != 50000 || *known.CustomerRef != "customer-1" || known.Notes != nil ||
		!known.SoldAt.Equal(report.SoldAt.Truncate(time.Microsecond)) {
		t.Errorf("the sale is known as %+v", known)
	}
	if found := all(t, c.ListSales(ctx, client.SaleFilter{ExternalRef: "order-1", PartnerID: ana.PartnerID})); len(found) != 1 || found[0].SaleID != sold.SaleID {
		t.Errorf("found are %+v", found)
	}

	// What follows of it.
	var earned client.Commission
	testkit.Eventually(t, stage.Soon, "the commission can be read", func() bool {
		earned, err = c.GetCommission(ctx, sold.CommissionID)
		return err == nil
	})
	if earned.Amount != 503 || *earned.Base != 10050 || *earned.Pct != 50000 || *earned.SourceSaleID != sold.SaleID || earned.PartnerID != ana.PartnerID || earned.Status != "available" {
		t.Errorf("the commission is %+v", earned)
	}
	if found := all(t, c.ListCommissions(ctx, client.CommissionFilter{PartnerID: ana.PartnerID, SourceSaleID: sold.SaleID})); len(found) != 1 || found[0].CommissionID != sold.CommissionID {
		t.Errorf("found are %+v", found)
	}
	testkit.Eventually(t, stage.Soon, "the goal is reached", func() bool {
		board := all(t, c.ListGoalProgress(ctx, goal.GoalID, client.ProgressFilter{PartnerID: ana.PartnerID}))
		return len(board) == 1 && board[0].Reached && board[0].Progress == event.Quantity{Value: 1} && board[0].Percent == money.Pct(1000000)
	})
	var deliveries []client.WebhookDelivery
	testkit.Eventually(t, stage.Soon, "the webhook is delivered", func() bool {
		deliveries = all(t, c.ListWebhookDeliveries(ctx, client.WebhookDeliveryFilter{EndpointID: endpoint.EndpointID}))
		return len(deliveries) == 1 && deliveries[0].Status == "delivered"
	})
	delivery := done(c.GetWebhookDelivery(ctx, deliveries[0].DeliveryID))(t)
	heard.mu.Lock()
	defer heard.mu.Unlock()
	if len(heard.errs) > 0 || len(heard.events) != 1 {
		t.Fatalf("the receiver heard %d events, %v", len(heard.events), heard.errs)
	}
	if told := heard.events[0]; told.Name != event.NameCommissionAvailable || told.ID != delivery.EventID || told.TenantID.String() != tenant.TenantID {
		t.Errorf("the receiver heard %+v, the delivery is %+v", told, delivery)
	}
	shown := http.Header{webhook.SignatureHeader: {delivery.Request.Headers[webhook.SignatureHeader]}}
	if err := webhook.Verify(endpoint.Secret, []byte(delivery.Request.Body), shown); err != nil {
		t.Errorf("the delivery shows %+v: %v", delivery.Request, err)
	}
}

func TestThroughTheClientWhatWasMadeIsFoundAndEnded(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	edge := edgeOf(t, p)
	c, ctx := newClient(t, edge, shop.Token, client.Options{}), t.Context()
	partnerID, campaignID, planID := uuid.MustParse(shop.PartnerID), uuid.MustParse(shop.CampaignID), uuid.MustParse(shop.PlanID)
	goalID, endpointID := uuid.MustParse(shop.GoalID), uuid.MustParse(shop.EndpointID)

	if one, found := done(c.GetPartner(ctx, partnerID))(t), all(t, c.ListPartners(ctx, client.PartnerFilter{ReferralCode: "ana", Status: "active"})); len(found) != 1 || found[0] != one {
		t.Errorf("the partner is %+v and listed as %+v", one, found)
	}
	if one, found := done(c.GetCampaign(ctx, campaignID))(t), all(t, c.ListCampaigns(ctx)); len(found) != 1 || found[0] != one {
		t.Errorf("the campaign is %+v and listed as %+v", one, found)
	}
	if one, found := done(c.GetPlan(ctx, planID))(t), all(t, c.ListPlans(ctx, campaignID)); len(found) != 1 || found[0] != one {
		t.Errorf("the plan is %+v and listed as %+v", one, found)
	}
	if one, found := done(c.GetGoal(ctx, goalID))(t), all(t, c.ListGoals(ctx)); len(found) != 1 || found[0].GoalID != one.GoalID || one.Target != (event.Quantity{Value: stage.GoalTarget}) {
		t.Errorf("the goal is %+v and listed as %+v", one, found)
	}
	if one, found := done(c.GetWebhookEndpoint(ctx, endpointID))(t), all(t, c.ListWebhookEndpoints(ctx)); len(found) != 1 || found[0].EndpointID != one.EndpointID || one.Status != "enabled" {
		t.Errorf("the endpoint is %+v and listed as %+v", one, found)
	}
	_, err := c.GetSale(ctx, partnerID)
	wantRefusal(t, err, 404, "not_found")

	// More than a page.
	const sales = 103
	for i := range sales {
		report := client.SaleReport{ReferralCode: stage.ReferralCode, CampaignID: campaignID, PlanID: planID, Amount: 100, ExternalRef: fmt.Sprint("order-", i)}
		done(c.RecordSale(ctx, report))(t)
	}
	refs := map[string]bool{}
	for _, sale := range all(t, c.ListSales(ctx, client.SaleFilter{CampaignID: campaignID})) {
		refs[sale.ExternalRef] = true
	}
	if len(refs) != sales {
		t.Errorf("%d sales are listed, want %d", len(refs), sales)
	}

	// The end of everything.
	key := done(c.CreateAPIKey(ctx, client.NewAPIKey{Name: "reports", Scopes: []string{"sales:read"}}))(t)
	weaker := newClient(t, edge, key.Clear, client.Options{})
	_, err = weaker.CreateCampaign(ctx, client.NewCampaign{Name: "x"})
	wantRefusal(t, err, 403, "insufficient_scope")
	if keys := all(t, c.ListAPIKeys(ctx)); len(keys) != 2 || keys[0].APIKeyID != key.APIKeyID || keys[0].RevokedAt != nil {
		t.Errorf("the keys are %+v", keys)
	}
	if err := c.RevokeAPIKey(ctx, key.APIKeyID); err != nil {
		t.Error(err)
	}
	_, err = weaker.GetCampaign(ctx, campaignID)
	wantRefusal(t, err, 401, "unauthorized")
	if ended := done(c.UpdateGoal(ctx, goalID, client.GoalUpdate{Status: "archived", EndsAt: client.Null[time.Time]()}))(t); ended.Status != "archived" || ended.EndsAt != nil {
		t.Errorf("the goal is changed to %+v", ended)
	}
	spare := done(c.CreateGoal(ctx, client.NewGoal{Name: "Spare", Metric: "conversions_count", Target: event.Quantity{Value: 1}, Period: "week"}))(t)
	if err := c.DeleteGoal(ctx, spare.GoalID); err != nil {
		t.Error(err)
	}
	wantRefusal(t, c.DeleteGoal(ctx, spare.GoalID), 404, "not_found")
	if err := c.DeleteWebhookEndpoint(ctx, endpointID); err != nil {
		t.Error(err)
	}
	wantRefusal(t, c.DeleteWebhookEndpoint(ctx, endpointID), 404, "not_found")
	if err := c.UnlinkPartner(ctx, campaignID, partnerID); err != nil {
		t.Error(err)
	}
	if linked := all(t, c.ListCampaignPartners(ctx, campaignID)); len(linked) != 0 {
		t.Errorf("linked are still %+v", linked)
	}
	if banned := done(c.UpdatePartner(ctx, partnerID, client.PartnerUpdate{Status: "banned", Email: client.Value("x@example.com")}))(t); banned.Status != "banned" || *banned.Email != "x@example.com" {
		t.Errorf("the partner is changed to %+v", banned)
	}
	_, err = c.UpdatePartner(ctx, partnerID, client.PartnerUpdate{Status: "active"})
	wantRefusal(t, err, 409, "invalid_transition")
}
