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
	}
}
