package webhooks

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/web"
)

// previewed tells what would become of an event if it happened now.
type previewed struct {
	Event     string             `json:"event"`
	EventID   event.ID           `json:"event_id"`
	Endpoints []previewedRequest `json:"endpoints"`
}

// previewedRequest is the request that an endpoint would get, or why it would get none.
type previewedRequest struct {
	EndpointID uuid.UUID    `json:"endpoint_id"`
	Reason     *string      `json:"reason"` // nil: it would get it
	Request    *requestView `json:"request"`
}

// preview answers POST /api/v1/webhook-endpoints/preview. It sends and records nothing.
//
// It signs whatever data it is given, so that it is for those who may change endpoints
// and could have the secret by a rotation anyway.
func (s *Service) preview(call *web.Call) (web.Answer, error) {
	var wanted struct {
		Event string         `json:"event"`
		Data  jsontext.Value `json:"data"`
	}
	if err := call.Decode(&wanted); err != nil {
		return web.Answer{}, err
	}
	if wanted.Data.Kind() != '{' { // left out, or null
		wanted.Data = nil
	}
	told, err := s.sample(call.Tenant(), wanted.Event, wanted.Data)
	if err != nil {
		return web.Answer{}, err
	}
	endpoints, err := s.listeners(call.Context(), call.Tenant(), nil)
	if err != nil {
		return web.Answer{}, err
	}
	shown := previewed{Event: told.Name, EventID: told.ID, Endpoints: make([]previewedRequest, len(endpoints))}
	seen := sync.OnceValue(func() traits { return traitsOf(told.Body) })
	for i, l := range endpoints {
		if shown.Endpoints[i], err = s.previewFor(l, told, seen); err != nil {
			return web.Answer{}, fmt.Errorf("preview %s: %w", told.Name, err)
		}
	}
	return web.Answer{Status: http.StatusOK, Body: shown}, nil
}

func (s *Service) previewFor(l listener, told event.Sealed, seen func() traits) (previewedRequest, error) {
	shown := previewedRequest{EndpointID: l.endpoint}
	if reason := l.refuses(told, seen); reason != "" {
		shown.Reason = &reason
		return shown, nil
	}
	signed, err := s.sealer.sign(l.endpoint, l.sealed, told.ID, s.deps.Now(), told.Body)
	if err != nil {
		return previewedRequest{}, err
	}
	shown.Request, err = viewRequest(compose(l.url, told.Name, told.Body, signed))
	return shown, err
}
