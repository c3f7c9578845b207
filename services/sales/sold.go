package sales

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// The list of sales stands in the order in which they were sold, the one order in which
// an index can serve a span of time and a page alike. What narrows it has a statement
// of its own, so that each is a walk along one index whatever plan PostgreSQL keeps.
const (
	salesOfTenant = `
select ` + saleColumns + ` from sales
where tenant_id = @tenant_id`

	soldWithin = `
  and sold_at >= coalesce(@sold_from::timestamptz, '-infinity') and sold_at < coalesce(@sold_to::timestamptz, 'infinity')
  and (sold_at, sale_id) < (coalesce(@after_sold_at::timestamptz, 'infinity'), coalesce(@after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))`

	lastSoldFirst = `
order by sold_at desc, sale_id desc limit @limit`

	listSalesQuery = salesOfTenant + soldWithin + lastSoldFirst

	listSalesOfPartnerQuery = salesOfTenant + `
  and partner_id = @partner_id and (@campaign_id::uuid is null or campaign_id = @campaign_id)` + soldWithin + lastSoldFirst

	listSalesOfCampaignQuery = salesOfTenant + `
  and campaign_id = @campaign_id` + soldWithin + lastSoldFirst

	// There is one such sale at most, and nothing to be put in order.
	listSaleOfRefQuery = salesOfTenant + `
  and external_ref = @external_ref and (@partner_id::uuid is null or partner_id = @partner_id)
  and (@campaign_id::uuid is null or campaign_id = @campaign_id)` + soldWithin + ` limit @limit`
)

// saleFilter is what a list of sales is narrowed to; nil does not narrow it.
type saleFilter struct {
	externalRef         *string
	partnerID           *uuid.UUID
	campaignID          *uuid.UUID
	soldFrom, soldUntil *time.Time // the end is not included
}

// query is the statement that serves the filter.
func (f saleFilter) query() string {
	switch {
	case f.externalRef != nil:
		return listSaleOfRefQuery
	case f.partnerID != nil:
		return listSalesOfPartnerQuery
	case f.campaignID != nil:
		return listSalesOfCampaignQuery
	default:
		return listSalesQuery
	}
}

func (f saleFilter) arguments() pgx.NamedArgs {
	return pgx.NamedArgs{
		"external_ref": f.externalRef, "partner_id": f.partnerID, "campaign_id": f.campaignID,
		"sold_from": f.soldFrom, "sold_to": f.soldUntil,
	}
}

// listSales answers GET /api/v1/sales, the last sold first.
func (s *Service) listSales(call *web.Call) (web.Answer, error) {
	filter, err := readSaleFilter(call)
	if err != nil {
		return web.Answer{}, err
	}
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	arguments := filter.arguments()
	if page.After != nil {
		if arguments["after_sold_at"], err = s.soldAt(call, *page.After); err != nil {
			return web.Answer{}, err
		}
	}
	return answerPage(s, call, page, scanSale, func(s sale) uuid.UUID { return s.SaleID }, filter.query(), arguments)
}

func readSaleFilter(call *web.Call) (f saleFilter, err error) {
	if f.externalRef, err = call.QueryText("external_ref", longestRef); err != nil {
		return f, err
	}
	if f.partnerID, err = call.QueryID("partner_id"); err != nil {
		return f, err
	}
	if f.campaignID, err = call.QueryID("campaign_id"); err != nil {
		return f, err
	}
	if f.soldFrom, err = call.QueryTime("sold_from"); err != nil {
		return f, err
	}
	f.soldUntil, err = call.QueryTime("sold_to")
	return f, err
}

const soldAtQuery = `select sold_at from sales where tenant_id = $1 and sale_id = $2`

// soldAt is when the sale was sold at which the page before ended. A cursor that names
// no sale of the tenant is no cursor of this list.
func (s *Service) soldAt(call *web.Call, id uuid.UUID) (at time.Time, err error) {
	err = s.deps.Pool.QueryRow(call.Context(), soldAtQuery, call.Tenant(), id).Scan(&at)
	switch {
	case postgres.Absent(err):
		return at, fault.InvalidParameter("cursor", "must be the next_cursor of an earlier answer of this list")
	case err != nil:
		return at, fmt.Errorf("find the cursor's place: %w", postgres.Explain(err))
	}
	return at, nil
}
