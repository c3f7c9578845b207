package commissions

import (
	"net/http"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/web"
)

func (s *Service) routes() []web.Route {
	read := web.Scope(auth.CommissionsRead)
	return []web.Route{
		{Method: http.MethodGet, Pattern: "/api/v1/commissions", Access: read, Handle: s.listCommissions},
		{Method: http.MethodGet, Pattern: "/api/v1/commissions/{commission_id}", Access: read, Handle: s.showCommission},
		{Method: http.MethodGet, Pattern: "/api/v1/balances", Access: read, Handle: s.listBalances},
		{Method: http.MethodGet, Pattern: "/api/v1/balances/{partner_id}", Access: read, Handle: s.showBalance},
		{Method: http.MethodGet, Pattern: "/api/v1/statements/{partner_id}", Access: read, Handle: s.showStatement},
		{Method: http.MethodGet, Pattern: "/api/v1/ledger/verify", Access: read, Handle: s.verifyLedger},
	}
}
