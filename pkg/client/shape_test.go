package client_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"partilha.dev/pkg/client"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
)

const (
	sale = `{"sale_id":"019f60bb-3400-78de-80b3-c47f112c5974","external_ref":"order-1","partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b",` +
		`"referral_code":"ana","campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","plan_id":"019f60b6-3400-772d-8fcf-b0c470ac255c",` +
		`"amount_brl":259.35,"sold_at":"2026-07-14T13:02:41Z","customer_ref":null,"notes":"x","commission_id":"019f60bb-3400-708f-8271-887ce94707da",` +
		`"commission_pct":12.5,"commission_amount_brl":32.42,"refunded_total_brl":0.00,"created_at":"2026-07-14T13:06:10.504218Z"}`
	refundReceipt = `{"refund_id":"019f60bd-3400-7ab1-8d02-5be1f0c6a3d9","sale_id":"019f60bb-3400-78de-80b3-c47f112c5974","amount_brl":100.00,"commission_reversed_brl":12.50,"idempotent":false}`
	refund        = `{"refund_id":"019f60bd-3400-7ab1-8d02-5be1f0c6a3d9","sale_id":"019f60bb-3400-78de-80b3-c47f112c5974","external_ref":"return-1",` +
		`"amount_brl":100.00,"commission_reversed_brl":12.50,"reason":null,"created_at":"2026-07-15T09:30:00.5Z"}`
	conversionReceipt = `{"conversion_id":"019f60bc-3400-7a31-9d04-5b7c60d2e8f1","commission_id":"019f60bc-3400-74c8-b16e-2f09a3d77b54","commission_amount_brl":4.75,"idempotent":false}`
	unpaidReceipt     = `{"conversion_id":"019f60bc-3400-7a31-9d04-5b7c60d2e8f1","commission_id":null,"commission_amount_brl":null,"idempotent":true}`
	conversion        = `{"conversion_id":"019f60bc-3400-7a31-9d04-5b7c60d2e8f1","external_ref":"signup-1","type":"signup","partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b",` +
		`"referral_code":"ana","campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","plan_id":null,"value_brl":89.90,"occurred_at":"2026-07-14T13:02:41Z",` +
		`"customer_ref":"c-9","notes":null,"commission_id":null,"commission_amount_brl":null,"created_at":"2026-07-14T13:06:10.504218Z"}`
	partner  = `{"partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b","referral_code":"ana","name":"Ana","email":null,"status":"active","created_at":"2026-07-14T13:06:10Z"}`
	campaign = `{"campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","name":"Verão","status":"active","starts_at":"2026-07-01T00:00:00Z","ends_at":null,"created_at":"2026-07-14T13:06:10Z"}`
	plan     = `{"plan_id":"019f60b6-3400-772d-8fcf-b0c470ac255c","campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","name":"Dez","commission_pct":10,` +
		`"conversion_amount_brl":4.75,"hold_days":14,"created_at":"2026-07-14T13:06:10Z"}`
	key = `{"api_key_id":"019f60b4-3400-7d18-8d11-5a0e0e1a4b9d","name":"checkout","prefix":"ptl_abcdefgh","scopes":["sales:write"],` +
		`"created_at":"2026-07-14T13:06:10Z","expires_at":"2027-01-01T00:00:00Z","revoked_at":null,"last_used_at":null}`
	endpoint = `{"endpoint_id":"019f60c1-3400-7aa0-9f0e-3b8b1f6a1c2d","url":"https://example.com/hooks","events":["*","goal.reached"],"description":"shop",` +
		`"max_attempts":3,"standard_webhooks":true,"filter":{"partner_ids":["019f60b3-3400-75c6-82e0-91b8c0565f1b"],"min_amount_brl":10.00},"status":"enabled","disabled_reason":null,"created_at":"2026-07-14T13:06:10Z"}`
	attempts = `"attempts":[{"at":"2026-07-14T13:06:10Z","duration_ms":31,"status_code":204,"error":null,"response_excerpt":""}]`
	delivery = `{"delivery_id":"019f60c2-3400-7bb0-8e0e-3b8b1f6a1c2d","event_id":"evt_0123456789abcdef0123456789abcdef","event":"goal.reached",` +
		`"endpoint_id":"019f60c1-3400-7aa0-9f0e-3b8b1f6a1c2d","status":"delivered",` + attempts + `}`
	fullDelivery = `{"delivery_id":"019f60c2-3400-7bb0-8e0e-3b8b1f6a1c2d","event_id":"evt_0123456789abcdef0123456789abcdef","event":"goal.reached",` +
		`"endpoint_id":"019f60c1-3400-7aa0-9f0e-3b8b1f6a1c2d","status":"delivered",` + attempts +
		`,"request":{"method":"POST","url":"https://example.com/hooks","headers":{"X-Service-Event":"goal.reached"},"body":"{}"}}`
	commission = `{"commission_id":"019f60bb-3400-708f-8271-887ce94707da","partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b",` +
		`"campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","plan_id":"019f60b6-3400-772d-8fcf-b0c470ac255c","kind":"sale",` +
		`"source_sale_id":"019f60bb-3400-78de-80b3-c47f112c5974","source_conversion_id":null,"source_goal_id":null,"base_amount_brl":259.35,` +
		`"commission_pct":12.5,"commission_amount_brl":32.42,"reversed_brl":0.00,"status":"available","available_at":"2026-07-14T13:06:10Z","created_at":"2026-07-14T13:06:10Z"}`
	withdrawalReceipt = `{"withdrawal_id":"019f60be-3400-7c52-a1f3-8d94e7b6c520","external_ref":"july","partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b",` +
		`"amount_brl":250.00,"pix_key_type":"cpf","pix_key":"***.982.247-**","status":"requested","requested_at":"2026-07-14T13:00:00Z","idempotent":false}`
	withdrawal = `{"withdrawal_id":"019f60be-3400-7c52-a1f3-8d94e7b6c520","external_ref":"july","partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b",` +
		`"amount_brl":250.00,"pix_key_type":"cpf","pix_key":"52998224725","status":"failed","reason":"no such key","failure_code":"AC03","end_to_end_id":null,` +
		`"requested_at":"2026-07-14T13:00:00Z","changed_at":"2026-07-14T13:10:00Z","paid_at":null,"history":[` +
		`{"status":"requested","reason":null,"failure_code":null,"api_key_prefix":"ptl_abcdefgh","changed_at":"2026-07-14T13:00:00Z"}]}`
	goal = `{"goal_id":"019f60d1-3400-7cc0-8e0e-3b8b1f6a1c2d","name":"Dez vendas","metric":"sales_amount","target":5000.00,"period":"month","campaign_id":null,` +
		`"partner_ids":["019f60b3-3400-75c6-82e0-91b8c0565f1b"],"timezone":"America/Sao_Paulo","starts_at":"2026-07-01T03:00:00Z","ends_at":null,` +
		`"reward_brl":150.00,"status":"active","created_at":"2026-07-14T13:06:10Z"}`
	progress = `{"goal_id":"019f60d1-3400-7cc0-8e0e-3b8b1f6a1c2d","partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b","period_start":"2026-07-01T03:00:00Z",` +
		`"period_end":"2026-08-01T03:00:00Z","progress":12,"target":10,"percent":120.25,"reached":true,"reached_at":"2026-07-14T13:06:10Z","rank":1}`
)

func with(object, members string) string { return object[:len(object)-1] + "," + members + "}" }

func aPage(row string) string { return `{"data":[` + row + `],"next_cursor":null}` }

// shapes are every call as the contract writes it: what is sent, and an answer of which
// every member is kept.
var shapes = map[string]struct {
	call   func(ctx context.Context, c *client.Client) (any, error)
	what   string // the method and the path
	sends  string
	answer string
	keeps  string // "" is answer
}{
	"RecordSale": {func(ctx context.Context, c *client.Client) (any, error) { return c.RecordSale(ctx, report("order-1")) },
		"POST /api/v1/sales",
		`{"referral_code":"ana","campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","plan_id":"019f60b6-3400-772d-8fcf-b0c470ac255c","amount_brl":250.00,"external_ref":"order-1"}`,
		receipt, ""},
	"RecordSale with everything": {func(ctx context.Context, c *client.Client) (any, error) {
		r := report("order-1")
		r.SoldAt, r.CustomerRef, r.Notes = time.Date(2026, 7, 14, 10, 2, 41, 0, time.FixedZone("", -3*3600)), "c-9", "ação"
		return c.RecordSale(ctx, r)
	},
		"POST /api/v1/sales",
		`{"referral_code":"ana","campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","plan_id":"019f60b6-3400-772d-8fcf-b0c470ac255c","amount_brl":250.00,"external_ref":"order-1",
		"sold_at":"2026-07-14T10:02:41-03:00","customer_ref":"c-9","notes":"ação"}`,
		receipt, ""},
	"GetSale": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetSale(ctx, saleID) },
		"GET /api/v1/sales/019f60bb-3400-78de-80b3-c47f112c5974", ``, sale, ""},
	"ListSales": {func(ctx context.Context, c *client.Client) (any, error) {
		return only(c.ListSales(ctx, client.SaleFilter{}))
	},
		"GET /api/v1/sales?limit=100", ``, aPage(sale), sale},
	"RecordRefund": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.RecordRefund(ctx, saleID, client.RefundReport{Amount: 10000, ExternalRef: "return-1", Reason: "broken"})
	},
		"POST /api/v1/sales/019f60bb-3400-78de-80b3-c47f112c5974/refunds", `{"amount_brl":100.00,"external_ref":"return-1","reason":"broken"}`, refundReceipt, ""},
	"ListRefunds": {func(ctx context.Context, c *client.Client) (any, error) { return only(c.ListRefunds(ctx, saleID)) },
		"GET /api/v1/sales/019f60bb-3400-78de-80b3-c47f112c5974/refunds?limit=100", ``, aPage(refund), refund},
	"RecordConversion": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.RecordConversion(ctx, client.ConversionReport{ReferralCode: "ana", CampaignID: campaignID, ExternalRef: "lead-1"})
	},
		"POST /api/v1/conversions", `{"referral_code":"ana","campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","external_ref":"lead-1"}`, unpaidReceipt, ""},
	"RecordConversion with everything": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.RecordConversion(ctx, client.ConversionReport{
			ReferralCode: "ana", CampaignID: campaignID, ExternalRef: "signup-1", PlanID: planID, Type: "signup", Value: 8990,
			OccurredAt: time.Date(2026, 7, 14, 13, 2, 41, 0, time.UTC), CustomerRef: "c-9", Notes: "x",
		})
	},
		"POST /api/v1/conversions",
		`{"referral_code":"ana","campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","external_ref":"signup-1","plan_id":"019f60b6-3400-772d-8fcf-b0c470ac255c",
		"type":"signup","value_brl":89.90,"occurred_at":"2026-07-14T13:02:41Z","customer_ref":"c-9","notes":"x"}`, conversionReceipt, ""},
	"GetConversion": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetConversion(ctx, saleID) },
		"GET /api/v1/conversions/019f60bb-3400-78de-80b3-c47f112c5974", ``, conversion, ""},
	"ListConversions": {func(ctx context.Context, c *client.Client) (any, error) {
		return only(c.ListConversions(ctx, client.ConversionFilter{}))
	},
		"GET /api/v1/conversions?limit=100", ``, aPage(conversion), conversion},

	"CreatePartner": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreatePartner(ctx, client.NewPartner{Name: "Ana", ReferralCode: "ana"})
	},
		"POST /api/v1/partners", `{"name":"Ana","referral_code":"ana"}`, partner, ""},
	"CreatePartner with everything": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreatePartner(ctx, client.NewPartner{Name: "Ana", ReferralCode: "ana", Email: "a@x", Status: "pending", ExternalRef: "p-1"})
	},
		"POST /api/v1/partners", `{"name":"Ana","referral_code":"ana","email":"a@x","status":"pending","external_ref":"p-1"}`, with(partner, `"idempotent":true`), ""},
	"GetPartner": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetPartner(ctx, partnerID) },
		"GET /api/v1/partners/019f60b3-3400-75c6-82e0-91b8c0565f1b", ``, partner, ""},
	"UpdatePartner": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.UpdatePartner(ctx, partnerID, client.PartnerUpdate{Name: "Ana S.", Email: client.Null[string](), Status: "suspended"})
	},
		"PATCH /api/v1/partners/019f60b3-3400-75c6-82e0-91b8c0565f1b", `{"name":"Ana S.","email":null,"status":"suspended"}`, partner, ""},
	"UpdatePartner with an email": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.UpdatePartner(ctx, partnerID, client.PartnerUpdate{Email: client.Value("a@x")})
	},
		"PATCH /api/v1/partners/019f60b3-3400-75c6-82e0-91b8c0565f1b", `{"email":"a@x"}`, partner, ""},
	"ListPartners": {func(ctx context.Context, c *client.Client) (any, error) {
		return only(c.ListPartners(ctx, client.PartnerFilter{}))
	},
		"GET /api/v1/partners?limit=100", ``, aPage(partner), partner},
	"CreateCampaign": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreateCampaign(ctx, client.NewCampaign{Name: "Verão"})
	},
		"POST /api/v1/campaigns", `{"name":"Verão"}`, campaign, ""},
	"CreateCampaign with everything": {func(ctx context.Context, c *client.Client) (any, error) {
		from := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
		return c.CreateCampaign(ctx, client.NewCampaign{Name: "Verão", Status: "draft", StartsAt: from, EndsAt: from.AddDate(0, 1, 0), ExternalRef: "c-1"})
	},
		"POST /api/v1/campaigns", `{"name":"Verão","status":"draft","starts_at":"2026-07-01T00:00:00Z","ends_at":"2026-08-01T00:00:00Z","external_ref":"c-1"}`, with(campaign, `"idempotent":true`), ""},
	"GetCampaign": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetCampaign(ctx, campaignID) },
		"GET /api/v1/campaigns/019f60b5-3400-76b2-83c0-d5f35d1b11f9", ``, campaign, ""},
	"UpdateCampaign": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.UpdateCampaign(ctx, campaignID, client.CampaignUpdate{
			Name: "Inverno", Status: "paused", StartsAt: client.Value(time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)), EndsAt: client.Null[time.Time](),
		})
	},
		"PATCH /api/v1/campaigns/019f60b5-3400-76b2-83c0-d5f35d1b11f9", `{"name":"Inverno","status":"paused","starts_at":"2026-07-01T00:00:00Z","ends_at":null}`, campaign, ""},
	"ListCampaigns": {func(ctx context.Context, c *client.Client) (any, error) { return only(c.ListCampaigns(ctx)) },
		"GET /api/v1/campaigns?limit=100", ``, aPage(campaign), campaign},
	"CreatePlan": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreatePlan(ctx, campaignID, client.NewPlan{Name: "Nada"})
	},
		"POST /api/v1/campaigns/019f60b5-3400-76b2-83c0-d5f35d1b11f9/plans", `{"name":"Nada","commission_pct":0}`, plan, ""},
	"CreatePlan with everything": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreatePlan(ctx, campaignID, client.NewPlan{Name: "Dez", CommissionPct: money.Pct(125000), ConversionAmount: 475, HoldDays: 14, ExternalRef: "p-1"})
	},
		"POST /api/v1/campaigns/019f60b5-3400-76b2-83c0-d5f35d1b11f9/plans",
		`{"name":"Dez","commission_pct":12.5,"conversion_amount_brl":4.75,"hold_days":14,"external_ref":"p-1"}`, with(plan, `"idempotent":true`), ""},
	"GetPlan": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetPlan(ctx, planID) },
		"GET /api/v1/plans/019f60b6-3400-772d-8fcf-b0c470ac255c", ``, plan, ""},
	"UpdatePlan": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.UpdatePlan(ctx, planID, client.PlanUpdate{
			Name: "Zero", CommissionPct: new(money.Pct(0)), ConversionAmount: client.Value(money.BRL(500)), HoldDays: new(0),
		})
	},
		"PATCH /api/v1/plans/019f60b6-3400-772d-8fcf-b0c470ac255c", `{"name":"Zero","commission_pct":0,"conversion_amount_brl":5.00,"hold_days":0}`, plan, ""},
	"UpdatePlan of nothing": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.UpdatePlan(ctx, planID, client.PlanUpdate{})
	},
		"PATCH /api/v1/plans/019f60b6-3400-772d-8fcf-b0c470ac255c", `{}`, plan, ""},
	"ListPlans": {func(ctx context.Context, c *client.Client) (any, error) { return only(c.ListPlans(ctx, campaignID)) },
		"GET /api/v1/campaigns/019f60b5-3400-76b2-83c0-d5f35d1b11f9/plans?limit=100", ``, aPage(plan), plan},
	"LinkPartner": {func(ctx context.Context, c *client.Client) (any, error) {
		return nil, c.LinkPartner(ctx, campaignID, partnerID)
	},
		"PUT /api/v1/campaigns/019f60b5-3400-76b2-83c0-d5f35d1b11f9/partners/019f60b3-3400-75c6-82e0-91b8c0565f1b", ``, ``, ""},
	"UnlinkPartner": {func(ctx context.Context, c *client.Client) (any, error) {
		return nil, c.UnlinkPartner(ctx, campaignID, partnerID)
	},
		"DELETE /api/v1/campaigns/019f60b5-3400-76b2-83c0-d5f35d1b11f9/partners/019f60b3-3400-75c6-82e0-91b8c0565f1b", ``, ``, ""},
	"ListCampaignPartners": {func(ctx context.Context, c *client.Client) (any, error) {
		return only(c.ListCampaignPartners(ctx, campaignID))
	},
		"GET /api/v1/campaigns/019f60b5-3400-76b2-83c0-d5f35d1b11f9/partners?limit=100", ``, aPage(partner), partner},

	"CreateAPIKey": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreateAPIKey(ctx, client.NewAPIKey{Name: "checkout"})
	},
		"POST /api/v1/api-keys", `{"name":"checkout"}`, with(key, `"api_key":"ptl_x"`), ""},
	"CreateAPIKey with everything": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreateAPIKey(ctx, client.NewAPIKey{Name: "checkout", Scopes: []string{"sales:write"}, ExpiresAt: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)})
	},
		"POST /api/v1/api-keys", `{"name":"checkout","scopes":["sales:write"],"expires_at":"2027-01-01T00:00:00Z"}`, with(key, `"api_key":"ptl_x"`), ""},
	"ListAPIKeys": {func(ctx context.Context, c *client.Client) (any, error) { return only(c.ListAPIKeys(ctx)) },
		"GET /api/v1/api-keys?limit=100", ``, aPage(key), key},
	"RevokeAPIKey": {func(ctx context.Context, c *client.Client) (any, error) { return nil, c.RevokeAPIKey(ctx, saleID) },
		"DELETE /api/v1/api-keys/019f60bb-3400-78de-80b3-c47f112c5974", ``, ``, ""},

	"CreateWebhookEndpoint": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreateWebhookEndpoint(ctx, client.NewWebhookEndpoint{URL: "https://example.com/hooks", Events: []string{"*", event.NameGoalReached}, Description: "shop"})
	},
		"POST /api/v1/webhook-endpoints", `{"url":"https://example.com/hooks","events":["*","goal.reached"],"description":"shop"}`, with(endpoint, `"secret":"whsec_x"`), ""},
	"CreateWebhookEndpoint with everything": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreateWebhookEndpoint(ctx, client.NewWebhookEndpoint{URL: "https://example.com/hooks", Events: []string{"*"}, Description: "shop",
			MaxAttempts: 3, StandardWebhooks: true, Filter: &client.WebhookFilter{PartnerIDs: []uuid.UUID{partnerID}, CampaignIDs: []uuid.UUID{campaignID}, MinAmount: 1000}})
	},
		"POST /api/v1/webhook-endpoints", `{"url":"https://example.com/hooks","events":["*"],"description":"shop","max_attempts":3,"standard_webhooks":true,
		"filter":{"partner_ids":["019f60b3-3400-75c6-82e0-91b8c0565f1b"],"campaign_ids":["019f60b5-3400-76b2-83c0-d5f35d1b11f9"],"min_amount_brl":10.00}}`,
		with(endpoint, `"secret":"whsec_x"`), ""},
	"UpdateWebhookEndpoint": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.UpdateWebhookEndpoint(ctx, saleID, client.WebhookEndpointUpdate{
			URL: "https://example.com/other", Events: []string{"*"}, Description: client.Null[string](), MaxAttempts: 1, StandardWebhooks: new(false),
			Filter: client.Value(client.WebhookFilter{MinAmount: 500}), Status: "disabled",
		})
	},
		"PATCH /api/v1/webhook-endpoints/019f60bb-3400-78de-80b3-c47f112c5974", `{"url":"https://example.com/other","events":["*"],"description":null,"max_attempts":1,
		"standard_webhooks":false,"filter":{"min_amount_brl":5.00},"status":"disabled"}`, endpoint, ""},
	"UpdateWebhookEndpoint without a filter": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.UpdateWebhookEndpoint(ctx, saleID, client.WebhookEndpointUpdate{Filter: client.Null[client.WebhookFilter]()})
	},
		"PATCH /api/v1/webhook-endpoints/019f60bb-3400-78de-80b3-c47f112c5974", `{"filter":null}`, endpoint, ""},
	"RotateWebhookSecret": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.RotateWebhookSecret(ctx, saleID, time.Hour)
	},
		"POST /api/v1/webhook-endpoints/019f60bb-3400-78de-80b3-c47f112c5974/rotate-secret", `{"overlap_seconds":3600}`,
		`{"endpoint_id":"019f60bb-3400-78de-80b3-c47f112c5974","secret":"whsec_x","previous_valid_until":"2026-07-14T14:06:10Z"}`, ""},
	"GetWebhookEndpoint": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetWebhookEndpoint(ctx, saleID) },
		"GET /api/v1/webhook-endpoints/019f60bb-3400-78de-80b3-c47f112c5974", ``, endpoint, ""},
	"ListWebhookEndpoints": {func(ctx context.Context, c *client.Client) (any, error) { return only(c.ListWebhookEndpoints(ctx)) },
		"GET /api/v1/webhook-endpoints?limit=100", ``, aPage(endpoint), endpoint},
	"DeleteWebhookEndpoint": {func(ctx context.Context, c *client.Client) (any, error) {
		return nil, c.DeleteWebhookEndpoint(ctx, saleID)
	},
		"DELETE /api/v1/webhook-endpoints/019f60bb-3400-78de-80b3-c47f112c5974", ``, ``, ""},
	"GetWebhookDelivery": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetWebhookDelivery(ctx, saleID) },
		"GET /api/v1/webhook-deliveries/019f60bb-3400-78de-80b3-c47f112c5974", ``, fullDelivery, ""},
	"ListWebhookDeliveries": {func(ctx context.Context, c *client.Client) (any, error) {
		return only(c.ListWebhookDeliveries(ctx, client.WebhookDeliveryFilter{}))
	},
		"GET /api/v1/webhook-deliveries?limit=100", ``, aPage(delivery), delivery},

	"GetCommission": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetCommission(ctx, saleID) },
		"GET /api/v1/commissions/019f60bb-3400-78de-80b3-c47f112c5974", ``, commission, ""},
	"ListCommissions": {func(ctx context.Context, c *client.Client) (any, error) {
		return only(c.ListCommissions(ctx, client.CommissionFilter{}))
	},
		"GET /api/v1/commissions?limit=100", ``, aPage(commission), commission},
	"CreateGoal": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.CreateGoal(ctx, client.NewGoal{Name: "Dez vendas", Metric: "sales_count", Target: event.Quantity{Value: 10}})
	},
		"POST /api/v1/goals", `{"name":"Dez vendas","metric":"sales_count","target":10}`, goal, ""},
	"CreateGoal with everything": {func(ctx context.Context, c *client.Client) (any, error) {
		from := time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)
		return c.CreateGoal(ctx, client.NewGoal{
			Name: "Cinco mil", Metric: "sales_amount", Target: event.Quantity{Value: 500000, IsAmount: true}, Period: "month", CampaignID: campaignID,
			PartnerIDs: []uuid.UUID{partnerID}, Timezone: "America/Sao_Paulo", StartsAt: from, EndsAt: from.AddDate(0, 1, 0), Reward: 15000, ExternalRef: "g-1",
		})
	},
		"POST /api/v1/goals",
		`{"name":"Cinco mil","metric":"sales_amount","target":5000.00,"period":"month","campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9",
		"partner_ids":["019f60b3-3400-75c6-82e0-91b8c0565f1b"],"timezone":"America/Sao_Paulo","starts_at":"2026-07-01T03:00:00Z","ends_at":"2026-08-01T03:00:00Z",
		"reward_brl":150.00,"external_ref":"g-1"}`, with(goal, `"idempotent":true`), ""},
	"GetGoal": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetGoal(ctx, saleID) },
		"GET /api/v1/goals/019f60bb-3400-78de-80b3-c47f112c5974", ``, goal, ""},
	"ListGoals": {func(ctx context.Context, c *client.Client) (any, error) { return only(c.ListGoals(ctx)) },
		"GET /api/v1/goals?limit=100", ``, aPage(goal), goal},
	"ListGoalProgress": {func(ctx context.Context, c *client.Client) (any, error) {
		return only(c.ListGoalProgress(ctx, saleID, client.ProgressFilter{}))
	},
		"GET /api/v1/goals/019f60bb-3400-78de-80b3-c47f112c5974/progress?limit=100", ``, aPage(progress), progress},
	"RequestWithdrawal": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.RequestWithdrawal(ctx, client.WithdrawalRequest{PartnerID: partnerID, Amount: money.BRL(25000), PixKeyType: "cpf", PixKey: "529.982.247-25", ExternalRef: "july"})
	},
		"POST /api/v1/withdrawals",
		`{"partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b","amount_brl":250.00,"pix_key_type":"cpf","pix_key":"529.982.247-25","external_ref":"july"}`, withdrawalReceipt, ""},
	"RequestWithdrawal by code": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.RequestWithdrawal(ctx, client.WithdrawalRequest{ReferralCode: "ana", Amount: money.BRL(25000), PixKeyType: "email", PixKey: "ana@example.com", ExternalRef: "july"})
	},
		"POST /api/v1/withdrawals",
		`{"referral_code":"ana","amount_brl":250.00,"pix_key_type":"email","pix_key":"ana@example.com","external_ref":"july"}`, withdrawalReceipt, ""},
	"ApproveWithdrawal": {func(ctx context.Context, c *client.Client) (any, error) { return c.ApproveWithdrawal(ctx, saleID) },
		"POST /api/v1/withdrawals/019f60bb-3400-78de-80b3-c47f112c5974/approve", `{}`, withdrawal, ""},
	"RejectWithdrawal": {func(ctx context.Context, c *client.Client) (any, error) { return c.RejectWithdrawal(ctx, saleID, "no") },
		"POST /api/v1/withdrawals/019f60bb-3400-78de-80b3-c47f112c5974/reject", `{"reason":"no"}`, withdrawal, ""},
	"CancelWithdrawal": {func(ctx context.Context, c *client.Client) (any, error) { return c.CancelWithdrawal(ctx, saleID, "") },
		"POST /api/v1/withdrawals/019f60bb-3400-78de-80b3-c47f112c5974/cancel", `{}`, withdrawal, ""},
	"PayWithdrawal": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.PayWithdrawal(ctx, saleID, client.Payment{EndToEndID: "E12345678202607141305abcDEF12345", PaidAt: time.Date(2026, 7, 14, 13, 5, 0, 0, time.UTC)})
	},
		"POST /api/v1/withdrawals/019f60bb-3400-78de-80b3-c47f112c5974/pay",
		`{"end_to_end_id":"E12345678202607141305abcDEF12345","paid_at":"2026-07-14T13:05:00Z"}`, withdrawal, ""},
	"FailWithdrawal": {func(ctx context.Context, c *client.Client) (any, error) {
		return c.FailWithdrawal(ctx, saleID, "no such key", "AC03")
	},
		"POST /api/v1/withdrawals/019f60bb-3400-78de-80b3-c47f112c5974/fail", `{"reason":"no such key","failure_code":"AC03"}`, withdrawal, ""},
	"GetWithdrawal": {func(ctx context.Context, c *client.Client) (any, error) { return c.GetWithdrawal(ctx, saleID) },
		"GET /api/v1/withdrawals/019f60bb-3400-78de-80b3-c47f112c5974", ``, withdrawal, ""},
	"ListWithdrawals": {func(ctx context.Context, c *client.Client) (any, error) {
		return only(c.ListWithdrawals(ctx, client.WithdrawalFilter{PartnerID: partnerID, Status: "approved", ExternalRef: "july"}))
	},
		"GET /api/v1/withdrawals?external_ref=july&limit=100&partner_id=019f60b3-3400-75c6-82e0-91b8c0565f1b&status=approved", ``, aPage(withdrawal), withdrawal},
}

func TestEveryCallHasTheShapeOfTheContract(t *testing.T) {
	for name, row := range shapes {
		t.Run(name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, _ *http.Request, _ int) {
				if row.answer == "" {
					w.WriteHeader(http.StatusNoContent)
					return
				}
				// A member that this version does not know is nothing to complain about.
				say(w, 200, with(row.answer, `"a_later_member":{"x":[1]}`))
			}
			inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
				got, err := row.call(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				sent := s.requests()[0]
				if sent.what != row.what || plain(t, sent.body) != plain(t, row.sends) {
					t.Errorf("it sends %s %s\nwant %s %s", sent.what, sent.body, row.what, row.sends)
				}
				if contentType := sent.header.Get("Content-Type"); (contentType == "application/json") != (row.sends != "") {
					t.Errorf("its Content-Type is %q", contentType)
				}
				if row.answer == "" {
					return
				}
				if row.keeps == "" {
					row.keeps = row.answer
				}
				kept, err := json.Marshal(got)
				if err != nil {
					t.Fatal(err)
				}
				var is, want map[string]jsontext.Value
				if err := json.Unmarshal(kept, &is); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal([]byte(row.keeps), &want); err != nil {
					t.Fatal(err)
				}
				for member, value := range want {
					if plain(t, string(is[member])) != plain(t, string(value)) {
						t.Errorf("of %s it keeps %s, want %s", member, is[member], value)
					}
				}
			})
		})
	}
}

// only is the one row of a list.
func only[T any](rows func(func(T, error) bool)) (one T, err error) {
	for one, err = range rows {
	}
	return one, err
}

// plain is JSON in its one canonical form; "" stays as it is.
func plain(t *testing.T, text string) string {
	t.Helper()
	value := jsontext.Value(text)
	if text == "" {
		return ""
	}
	if err := value.Canonicalize(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(value)
}
