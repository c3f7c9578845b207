package commissions

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// The list of commissions stands in the order in which they were earned, the one order
// in which an index can serve a span of time and a page alike. What narrows it has a
// statement of its own, so that each is a walk along one index whatever plan PostgreSQL
// keeps.
const (
	commissionsOfTenant = `
select ` + commissionColumns + ` from commissions
where tenant_id = @tenant_id`

	createdWithin = `
  and created_at >= coalesce(@created_from::timestamptz, '-infinity') and created_at < coalesce(@created_to::timestamptz, 'infinity')
  and (created_at, commission_id) < (coalesce(@after_created_at::timestamptz, 'infinity'), coalesce(@after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))`

	newestFirst = `
order by created_at desc, commission_id desc limit @limit`

	listQuery = commissionsOfTenant + createdWithin + newestFirst

	listOfPartnerQuery = commissionsOfTenant + `
  and partner_id = @partner_id and (@campaign_id::uuid is null or campaign_id = @campaign_id) and (@status::text is null or status = @status)` +
		createdWithin + newestFirst

	listOfCampaignQuery = commissionsOfTenant + `
  and campaign_id = @campaign_id and (@status::text is null or status = @status)` + createdWithin + newestFirst

	listOfStatusQuery = commissionsOfTenant + `
  and status = @status` + createdWithin + newestFirst

	// There is one such commission at most, and nothing to be put in order.
	listOfSaleQuery = commissionsOfTenant + `
  and source_sale_id = @source_sale_id and (@partner_id::uuid is null or partner_id = @partner_id)
  and (@campaign_id::uuid is null or campaign_id = @campaign_id) and (@status::text is null or status = @status)` + createdWithin + ` limit @limit`
)

// commissionFilter is what a list of commissions is narrowed to; nil does not narrow it.
type commissionFilter struct {
	partnerID, campaignID, saleID *uuid.UUID
	status                        *string
	createdFrom, createdTo        *time.Time // the end is not included
}

// query is the statement that serves the filter.
func (f commissionFilter) query() string {
	switch {
	case f.saleID != nil:
		return listOfSaleQuery
	case f.partnerID != nil:
		return listOfPartnerQuery
	case f.campaignID != nil:
		return listOfCampaignQuery
	case f.status != nil:
		return listOfStatusQuery
	default:
		return listQuery
	}
}

func (f commissionFilter) arguments() pgx.NamedArgs {
	return pgx.NamedArgs{
		"partner_id": f.partnerID, "campaign_id": f.campaignID, "source_sale_id": f.saleID, "status": f.status,
		"created_from": f.createdFrom, "created_to": f.createdTo,
	}
}

// listCommissions answers GET /api/v1/commissions, the last earned first.
func (s *Service) listCommissions(call *web.Call) (web.Answer, error) {
	filter, err := readCommissionFilter(call)
	if err != nil {
		return web.Answer{}, err
	}
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	arguments := filter.arguments()
	if page.After != nil {
		if arguments["after_created_at"], err = s.placeOf(call, createdAtQuery, *page.After); err != nil {
			return web.Answer{}, err
		}
	}
	return listPage(s, call, page, scanCommission, func(c commission) uuid.UUID { return c.ID }, filter.query(), arguments)
}

func readCommissionFilter(call *web.Call) (f commissionFilter, err error) {
	if f.partnerID, err = call.QueryID("partner_id"); err != nil {
		return f, err
	}
	if f.campaignID, err = call.QueryID("campaign_id"); err != nil {
		return f, err
	}
	if f.saleID, err = call.QueryID("source_sale_id"); err != nil {
		return f, err
	}
	if f.status, err = call.QueryChoice("status", statusPending, statusAvailable, statusPaid, statusReversed); err != nil {
		return f, err
	}
	if f.createdFrom, err = call.QueryTime("created_from"); err != nil {
		return f, err
	}
	f.createdTo, err = call.QueryTime("created_to")
	return f, err
}

const createdAtQuery = `select created_at from commissions where tenant_id = $1 and commission_id = $2`

// placeOf is the moment of the row at which the page before ended. A cursor that names no
// row of the tenant is no cursor of this list.
func (s *Service) placeOf(call *web.Call, query string, id uuid.UUID) (at time.Time, err error) {
	err = s.deps.Pool.QueryRow(call.Context(), query, call.Tenant(), id).Scan(&at)
	switch {
	case postgres.Absent(err):
		return at, fault.InvalidParameter("cursor", "must be the next_cursor of an earlier answer of this list")
	case err != nil:
		return at, fmt.Errorf("find the cursor's place: %w", postgres.Explain(err))
	}
	return at, nil
}

// listPage answers one page of rows of the caller's tenant. The query takes tenant_id,
// after and limit beside its filters. No plan of it is kept: it is planned for the
// filters that this call gives, so that each of them is looked up in its index.
func listPage[T any](s *Service, call *web.Call, page web.Page, scan pgx.RowToFunc[T], id func(T) uuid.UUID, query string, filters pgx.NamedArgs) (web.Answer, error) {
	filters["tenant_id"], filters["after"], filters["limit"] = call.Tenant(), page.After, page.Limit+1
	rows, err := s.deps.Pool.Query(call.Context(), query, pgx.QueryExecModeCacheDescribe, filters)
	if err != nil {
		return web.Answer{}, fmt.Errorf("list: %w", postgres.Explain(err))
	}
	found, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return web.Answer{}, fmt.Errorf("list: %w", postgres.Explain(err))
	}
	return web.Cut(page, found, id), nil
}

// showCommission answers GET /api/v1/commissions/{commission_id}.
func (s *Service) showCommission(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("commission_id")
	if err != nil {
		return web.Answer{}, err
	}
	found, err := s.commission(call.Context(), call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: found}, nil
}

const showQuery = `select ` + commissionColumns + ` from commissions where tenant_id = $1 and commission_id = $2`

// commission returns the tenant's commission of that id. Another tenant's is not found.
func (s *Service) commission(ctx context.Context, tenant, id uuid.UUID) (commission, error) {
	return one(ctx, s, scanCommission, showQuery, tenant, id)
}

// one returns the one row that the query finds, or that there is none.
func one[T any](ctx context.Context, s *Service, scan pgx.RowToFunc[T], query string, args ...any) (row T, err error) {
	rows, err := s.deps.Pool.Query(ctx, query, args...)
	if err != nil {
		return row, fmt.Errorf("read: %w", postgres.Explain(err))
	}
	row, err = pgx.CollectExactlyOneRow(rows, scan)
	switch {
	case postgres.Absent(err):
		return row, web.NotFound()
	case err != nil:
		return row, fmt.Errorf("read: %w", postgres.Explain(err))
	}
	return row, nil
}
