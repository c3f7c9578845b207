package commissions

import (
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// The list of withdrawals stands in the order in which they were asked for. What narrows
// it has a statement of its own, as with the list of commissions.
const (
	withdrawalsOfTenant = `
select ` + withdrawalColumns + ` from withdrawals w
where w.tenant_id = @tenant_id`

	requestedWithin = `
  and w.requested_at >= coalesce(@created_from::timestamptz, '-infinity') and w.requested_at < coalesce(@created_to::timestamptz, 'infinity')
  and (w.requested_at, w.withdrawal_id) < (coalesce(@after_requested_at::timestamptz, 'infinity'), coalesce(@after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))`

	lastRequestedFirst = `
order by w.requested_at desc, w.withdrawal_id desc limit @limit`

	withdrawalsQuery = withdrawalsOfTenant + requestedWithin + lastRequestedFirst

	withdrawalsOfPartnerQuery = withdrawalsOfTenant + `
  and w.partner_id = @partner_id and (@status::text is null or w.status = @status)` + requestedWithin + lastRequestedFirst

	withdrawalsOfStatusQuery = withdrawalsOfTenant + `
  and w.status = @status` + requestedWithin + lastRequestedFirst

	// There is one such withdrawal at most, and nothing to be put in order.
	withdrawalOfRefQuery = withdrawalsOfTenant + `
  and w.external_ref = @external_ref and (@partner_id::uuid is null or w.partner_id = @partner_id) and (@status::text is null or w.status = @status)` +
		requestedWithin + ` limit @limit`
)

// withdrawalFilter is what a list of withdrawals is narrowed to; nil does not narrow it.
type withdrawalFilter struct {
	partnerID              *uuid.UUID
	status, externalRef    *string
	createdFrom, createdTo *time.Time // the end is not included
}

// query is the statement that serves the filter.
func (f withdrawalFilter) query() string {
	switch {
	case f.externalRef != nil:
		return withdrawalOfRefQuery
	case f.partnerID != nil:
		return withdrawalsOfPartnerQuery
	case f.status != nil:
		return withdrawalsOfStatusQuery
	default:
		return withdrawalsQuery
	}
}

func (f withdrawalFilter) arguments() pgx.NamedArgs {
	return pgx.NamedArgs{
		"partner_id": f.partnerID, "status": f.status, "external_ref": f.externalRef, "created_from": f.createdFrom, "created_to": f.createdTo,
	}
}

// longestRef is how many characters an external_ref may have.
const longestRef = 255

func readWithdrawalFilter(call *web.Call, others ...string) (f withdrawalFilter, err error) {
	if err = call.Query(append([]string{"partner_id", "status", "external_ref", "created_from", "created_to"}, others...)...); err != nil {
		return f, err
	}
	if f.partnerID, err = call.QueryID("partner_id"); err != nil {
		return f, err
	}
	if f.status, err = call.QueryChoice("status", withdrawalStatuses...); err != nil {
		return f, err
	}
	if f.externalRef, err = call.QueryText("external_ref", longestRef); err != nil {
		return f, err
	}
	if f.createdFrom, err = call.QueryTime("created_from"); err != nil {
		return f, err
	}
	f.createdTo, err = call.QueryTime("created_to")
	return f, err
}

// listWithdrawals answers GET /api/v1/withdrawals, the last asked for first; or, to who
// asks for CSV, with the list of those that are to be paid.
func (s *Service) listWithdrawals(call *web.Call) (web.Answer, error) {
	if call.Accepts(mediaCSV) {
		return s.listPayouts(call)
	}
	filter, err := readWithdrawalFilter(call, "limit", "cursor")
	if err != nil {
		return web.Answer{}, err
	}
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	arguments := filter.arguments()
	if page.After != nil {
		if arguments["after_requested_at"], err = s.placeOf(call, requestedAtQuery, *page.After); err != nil {
			return web.Answer{}, err
		}
	}
	answer, err := listPage(s, call, page, scanWithdrawal, func(w *withdrawal) uuid.UUID { return w.ID }, filter.query(), arguments)
	if err != nil {
		return web.Answer{}, err
	}
	shown := answer.Body.(web.List[*withdrawal]).Data
	if err := s.complete(call, shown...); err != nil {
		return web.Answer{}, err
	}
	answer.Header = map[string]string{"Vary": "Accept"}
	return answer, nil
}

// complete gives the withdrawals their histories and, to who may see them, their keys.
func (s *Service) complete(call *web.Call, withdrawals ...*withdrawal) error {
	if err := addHistories(call.Context(), s.deps.Pool, call.Tenant(), withdrawals); err != nil {
		return postgres.Explain(err)
	}
	return s.show(call, withdrawals...)
}

const requestedAtQuery = `select requested_at from withdrawals where tenant_id = $1 and withdrawal_id = $2`

// showWithdrawal answers GET /api/v1/withdrawals/{withdrawal_id}.
func (s *Service) showWithdrawal(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("withdrawal_id")
	if err != nil {
		return web.Answer{}, err
	}
	w, err := one(call.Context(), s, scanWithdrawal, showWithdrawalQuery, call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	if err := s.complete(call, w); err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: w}, nil
}

const showWithdrawalQuery = `select ` + withdrawalColumns + ` from withdrawals w where w.tenant_id = $1 and w.withdrawal_id = $2`
