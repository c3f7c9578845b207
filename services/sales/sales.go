// Package sales is where a sale or a conversion becomes a fact: it keeps a tenant's
// catalogue of partners, campaigns, plans and links, records whatever is reported
// exactly once, and decides its commission in the same transaction.
//
// It is the only service that payment systems call, and it answers without asking
// any other: everything downstream follows from the events in its outbox.
package sales

import (
	"context"
	"embed"
	"fmt"
	"net/http"
	"sync"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/web"
)

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed openapi.yaml
var document []byte

// Migrations are all tables of the service's database.
var Migrations = []postgres.Schema{outbox.Schema, {Name: "sales", FS: postgres.Embedded(migrations)}}

// Document is the service's part of the API. It is read once.
func Document() (*openapi.Document, error) { return loadDocument() }

var loadDocument = sync.OnceValues(func() (*openapi.Document, error) { return openapi.Load(document) })

// Config is what only this service is configured with.
type Config struct {
	AdminToken string `env:"ADMIN_TOKEN" allow:"text" secret:"true"`     // of the operator; nothing: /admin/v1 refuses everybody
	Writers    int    `env:"SALES_WRITERS" envDefault:"1" allow:"1..64"` // commits in flight at once; 2 pay off where an fsync takes long
}

// Service is the sales service.
type Service struct {
	deps      service.Deps
	handler   http.Handler
	catalogue *catalogue
	recorder  *recorder
	relay     *outbox.Relay
	announcer *auth.Announcer
}

// New wires the service. It reads nothing and starts nothing.
func New(_ context.Context, config Config, deps service.Deps) (*Service, error) {
	doc, err := Document()
	if err != nil {
		return nil, fmt.Errorf("load the OpenAPI document: %w", err)
	}
	s := &Service{deps: deps, catalogue: newCatalogue(deps)}
	s.relay = outbox.NewRelay(deps.Pool, deps.Bus, bus.Sales, deps.Log)
	s.recorder = newRecorder(deps.Pool, s.relay, max(config.Writers, 1))
	s.announcer = auth.NewAnnouncer(deps.Bus, deps.Log, s.keysSince)
	api, err := web.API{
		Document: doc, Routes: s.routes(), Keys: s.catalogue, OperatorToken: config.AdminToken,
		Limiter: deps.Limiter, Log: deps.Log, Now: deps.Now,
	}.Handler()
	if err != nil {
		return nil, err
	}
	s.handler = web.System{Document: doc, Ready: deps.Ready}.Around(api)
	return s, nil
}

// Handler answers the catalogue, the sales, the conversions, and the system's own addresses.
func (s *Service) Handler() http.Handler { return s.handler }

// Run records queued sales, publishes events and announces keys until ctx ends. A
// sale can be recorded only while it runs.
func (s *Service) Run(ctx context.Context) error {
	return service.RunAll(ctx, s.recorder.run, s.relay.Run, s.announcer.Run)
}

// Consumers is empty: this service listens to nobody.
func (s *Service) Consumers() []bus.Consumer { return nil }
