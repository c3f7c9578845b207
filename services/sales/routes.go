package sales

import (
	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/web"
)

func (s *Service) routes() []web.Route {
	var (
		report = web.Scope(auth.SalesWrite)
		read   = web.Scope(auth.SalesRead)
		edit   = web.Scope(auth.CatalogWrite)
		browse = web.Scope(auth.CatalogRead)
		keys   = web.Scope(auth.KeysWrite)
	)
	return []web.Route{
		{Method: "POST", Pattern: "/api/v1/sales", Access: report, Lenient: true, Handle: counted(kindSale, s.recordSale)},
		{Method: "POST", Pattern: "/api/v1/sales/batch", Access: report, Batch: "sales", Handle: s.recordSales},
		{Method: "GET", Pattern: "/api/v1/sales", Access: read, Handle: s.listSales},
		{Method: "GET", Pattern: "/api/v1/sales/{sale_id}", Access: read, Handle: s.getSale},
		{Method: "POST", Pattern: "/api/v1/sales/{sale_id}/refunds", Access: report, Handle: counted(kindRefund, s.recordRefund)},
		{Method: "GET", Pattern: "/api/v1/sales/{sale_id}/refunds", Access: read, Handle: s.listRefunds},

		{Method: "POST", Pattern: "/api/v1/conversions", Access: report, Lenient: true, Handle: counted(kindConversion, s.recordConversion)},
		{Method: "GET", Pattern: "/api/v1/conversions", Access: read, Handle: s.listConversions},
		{Method: "GET", Pattern: "/api/v1/conversions/{conversion_id}", Access: read, Handle: s.getConversion},

		{Method: "POST", Pattern: "/api/v1/partners", Access: edit, Handle: s.createPartner},
		{Method: "GET", Pattern: "/api/v1/partners", Access: browse, Handle: s.listPartners},
		{Method: "GET", Pattern: "/api/v1/partners/{partner_id}", Access: browse, Handle: s.getPartner},
		{Method: "PATCH", Pattern: "/api/v1/partners/{partner_id}", Access: edit, Handle: s.changePartner},

		{Method: "POST", Pattern: "/api/v1/campaigns", Access: edit, Handle: s.createCampaign},
		{Method: "GET", Pattern: "/api/v1/campaigns", Access: browse, Handle: s.listCampaigns},
		{Method: "GET", Pattern: "/api/v1/campaigns/{campaign_id}", Access: browse, Handle: s.getCampaign},
		{Method: "PATCH", Pattern: "/api/v1/campaigns/{campaign_id}", Access: edit, Handle: s.changeCampaign},

		{Method: "POST", Pattern: "/api/v1/campaigns/{campaign_id}/plans", Access: edit, Handle: s.createPlan},
		{Method: "GET", Pattern: "/api/v1/campaigns/{campaign_id}/plans", Access: browse, Handle: s.listPlans},
		{Method: "GET", Pattern: "/api/v1/plans/{plan_id}", Access: browse, Handle: s.getPlan},
		{Method: "PATCH", Pattern: "/api/v1/plans/{plan_id}", Access: edit, Handle: s.changePlan},

		{Method: "PUT", Pattern: "/api/v1/campaigns/{campaign_id}/partners/{partner_id}", Access: edit, Handle: s.linkPartner},
		{Method: "DELETE", Pattern: "/api/v1/campaigns/{campaign_id}/partners/{partner_id}", Access: edit, Handle: s.unlinkPartner},
		{Method: "GET", Pattern: "/api/v1/campaigns/{campaign_id}/partners", Access: browse, Handle: s.listLinks},

		{Method: "POST", Pattern: "/api/v1/api-keys", Access: keys, Handle: s.createKey},
		{Method: "GET", Pattern: "/api/v1/api-keys", Access: keys, Handle: s.listKeys},
		{Method: "DELETE", Pattern: "/api/v1/api-keys/{api_key_id}", Access: keys, Handle: s.revokeKey},

		{Method: "POST", Pattern: "/admin/v1/tenants", Access: web.Operator, Handle: s.createTenant},
		{Method: "GET", Pattern: "/admin/v1/tenants", Access: web.Operator, Handle: s.listTenants},
		{Method: "PATCH", Pattern: "/admin/v1/tenants/{tenant_id}", Access: web.Operator, Handle: s.changeTenant},
		{Method: "POST", Pattern: "/admin/v1/tenants/{tenant_id}/api-keys", Access: web.Operator, Handle: s.createFirstKey},
	}
}
