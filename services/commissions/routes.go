package commissions

import (
	"net/http"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/web"
)

func (s *Service) routes() []web.Route {
	var (
		read    = web.Scope(auth.CommissionsRead)
		request = web.Scope(auth.WithdrawalsWrite)
		approve = web.Scope(auth.WithdrawalsApprove)
	)
	return []web.Route{
		{Method: http.MethodGet, Pattern: "/api/v1/commissions", Access: read, Handle: s.listCommissions},
		{Method: http.MethodGet, Pattern: "/api/v1/commissions/{commission_id}", Access: read, Handle: s.showCommission},
		{Method: http.MethodGet, Pattern: "/api/v1/balances", Access: read, Handle: s.listBalances},
		{Method: http.MethodGet, Pattern: "/api/v1/balances/{partner_id}", Access: read, Handle: s.showBalance},
		{Method: http.MethodGet, Pattern: "/api/v1/statements/{partner_id}", Access: read, Handle: s.showStatement},
		{Method: http.MethodGet, Pattern: "/api/v1/ledger/verify", Access: read, Handle: s.verifyLedger},

		{Method: http.MethodPost, Pattern: "/api/v1/withdrawals", Access: request, Handle: s.requestWithdrawal},
		{Method: http.MethodGet, Pattern: "/api/v1/withdrawals", Access: read, Handle: s.listWithdrawals},
		{Method: http.MethodPost, Pattern: "/api/v1/withdrawals/batch", Access: approve, Batch: "withdrawals", Handle: s.settleWithdrawals},
		{Method: http.MethodGet, Pattern: "/api/v1/withdrawals/{withdrawal_id}", Access: read, Handle: s.showWithdrawal},
		{Method: http.MethodPost, Pattern: "/api/v1/withdrawals/{withdrawal_id}/approve", Access: approve, Handle: s.changeTo(statusApproved)},
		{Method: http.MethodPost, Pattern: "/api/v1/withdrawals/{withdrawal_id}/reject", Access: approve, Handle: s.changeTo(statusRejected)},
		{Method: http.MethodPost, Pattern: "/api/v1/withdrawals/{withdrawal_id}/cancel", Access: request, Handle: s.changeTo(statusCancelled)},
		{Method: http.MethodPost, Pattern: "/api/v1/withdrawals/{withdrawal_id}/pay", Access: approve, Handle: s.changeTo(statusPaid)},
		{Method: http.MethodPost, Pattern: "/api/v1/withdrawals/{withdrawal_id}/fail", Access: approve, Handle: s.changeTo(statusFailed)},
	}
}
