package commissions

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/web"
)

// balance is what one partner has, as the API shows it.
type balance struct {
	PartnerID uuid.UUID `json:"partner_id"`
	balances
}

const balanceColumns = `pending_centavos, available_centavos, reserved_centavos, paid_centavos, debt_centavos`

func scanBalance(row pgx.CollectableRow) (b balance, err error) {
	err = row.Scan(&b.PartnerID, &b.Pending, &b.Available, &b.Reserved, &b.Paid, &b.Debt)
	return b, err
}

const listBalancesQuery = `
select partner_id, ` + balanceColumns + ` from accounts
where tenant_id = @tenant_id and partner_id < coalesce(@after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by partner_id desc limit @limit`

// listBalances answers GET /api/v1/balances: every partner who has ever earned a
// commission, the newest partner first.
func (s *Service) listBalances(call *web.Call) (web.Answer, error) {
	page, err := call.Page()
	if err != nil {
		return web.Answer{}, err
	}
	return listPage(s, call, page, scanBalance, func(b balance) uuid.UUID { return b.PartnerID }, listBalancesQuery, pgx.NamedArgs{})
}

// A partner who has earned nothing yet has nothing, and is a partner all the same.
const showBalanceQuery = `
select partner_id, ` + balanceColumns + ` from accounts where tenant_id = $1 and partner_id = $2
union all
select partner_id, 0, 0, 0, 0, 0 from partners p where tenant_id = $1 and partner_id = $2
	and not exists (select from accounts a where a.tenant_id = p.tenant_id and a.partner_id = p.partner_id)`

// showBalance answers GET /api/v1/balances/{partner_id}.
func (s *Service) showBalance(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("partner_id")
	if err != nil {
		return web.Answer{}, err
	}
	found, err := one(call.Context(), s, scanBalance, showBalanceQuery, call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: found}, nil
}
