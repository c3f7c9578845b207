package webhooks

import (
	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/web"
)

func (s *Service) routes() []web.Route {
	var (
		write = web.Scope(auth.WebhooksWrite)
		read  = web.Scope(auth.WebhooksRead)
	)
	return []web.Route{
		{Method: "POST", Pattern: "/api/v1/webhook-endpoints", Access: write, Handle: s.createEndpoint},
		{Method: "GET", Pattern: "/api/v1/webhook-endpoints", Access: read, Handle: s.listEndpoints},
		{Method: "GET", Pattern: "/api/v1/webhook-endpoints/{endpoint_id}", Access: read, Handle: s.getEndpoint},
		{Method: "PATCH", Pattern: "/api/v1/webhook-endpoints/{endpoint_id}", Access: write, Handle: s.changeEndpoint},
		{Method: "DELETE", Pattern: "/api/v1/webhook-endpoints/{endpoint_id}", Access: write, Handle: s.deleteEndpoint},
		{Method: "POST", Pattern: "/api/v1/webhook-endpoints/{endpoint_id}/rotate-secret", Access: write, Handle: s.rotateSecret},
		{Method: "POST", Pattern: "/api/v1/webhook-endpoints/{endpoint_id}/test", Access: write, Handle: s.testEndpoint},
		{Method: "POST", Pattern: "/api/v1/webhook-endpoints/preview", Access: write, Handle: s.preview},
		{Method: "POST", Pattern: "/api/v1/webhook-endpoints/verify-signature", Access: read, Handle: s.verifySignature},

		{Method: "GET", Pattern: "/api/v1/webhook-deliveries", Access: read, Handle: s.listDeliveries},
		{Method: "GET", Pattern: "/api/v1/webhook-deliveries/{delivery_id}", Access: read, Handle: s.getDelivery},
		{Method: "POST", Pattern: "/api/v1/webhook-deliveries/{delivery_id}/resend", Access: write, Handle: s.resendDelivery},

		{Method: "POST", Pattern: "/api/v1/webhook-endpoints/{endpoint_id}/replay", Access: write, Handle: s.createReplay},
		{Method: "GET", Pattern: "/api/v1/webhook-endpoints/{endpoint_id}/replays", Access: read, Handle: s.listReplays},
		{Method: "GET", Pattern: "/api/v1/webhook-endpoints/{endpoint_id}/replays/{replay_id}", Access: read, Handle: s.getReplay},
		{Method: "DELETE", Pattern: "/api/v1/webhook-endpoints/{endpoint_id}/replays/{replay_id}", Access: write, Handle: s.cancelReplay},

		{Method: "GET", Pattern: "/api/v1/events", Access: read, Listens: true, Handle: s.listEvents},
		{Method: "GET", Pattern: "/api/v1/events/summary", Access: read, Handle: s.summarise},
	}
}
