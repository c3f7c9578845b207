// Package commissions is the service that knows what every partner has earned, and
// keeps the books of it.
//
// It listens: a recorded sale, a conversion that pays, and a goal with a reward each earn
// exactly one commission; a refund takes back what it says. Every movement of money is
// one transfer between two accounts, which is never changed, and the balances are kept
// together with them. Partners are paid by withdrawals, whose money is reserved from the
// moment they are asked for. The service tells of all that on the COMMISSIONS stream and
// answers who has what, and how that came about. It never asks another service.
package commissions

import (
	"context"
	"embed"
	"fmt"
	"net/http"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/outbox"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/seal"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/web"
)

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed openapi.yaml
var document []byte

// Migrations are all the tables of the service's database.
var Migrations = []postgres.Schema{
	outbox.Schema, bus.Schema, auth.Schema,
	{Name: "commissions", FS: postgres.Embedded(migrations)},
}

// Config is what the service alone reads from its environment.
type Config struct {
	SecretKey string `env:"COMMISSIONS_SECRET_KEY,required" allow:"keys of 32 bytes in base64" secret:"true"` // seals PIX keys; of several, separated by commas, the first one seals
}

// Service is the commissions service, wired and not yet running.
type Service struct {
	deps    service.Deps
	keys    *auth.Copy
	relay   *outbox.Relay
	ring    *seal.Ring // of PIX keys
	handler http.Handler
}

// Document returns the service's OpenAPI document. It fails only where the document
// that is compiled in is wrong in itself.
func Document() (*openapi.Document, error) { return openapi.Load(document) }

// New wires the service. It reads the known keys from the database, which must be
// migrated, and makes sure that the configured keys open the PIX keys that are stored;
// NATS may be away.
func New(ctx context.Context, config Config, deps service.Deps) (*Service, error) {
	ring, err := seal.NewRing(config.SecretKey)
	if err != nil {
		return nil, fmt.Errorf("COMMISSIONS_SECRET_KEY: %w", err)
	}
	doc, err := Document()
	if err != nil {
		return nil, err
	}
	keys, err := auth.NewCopy(ctx, deps.Pool, deps.Bus, deps.Log, deps.Now)
	if err != nil {
		return nil, fmt.Errorf("start commissions: %w", err)
	}
	s := &Service{deps: deps, keys: keys, relay: outbox.NewRelay(deps.Pool, deps.Bus, bus.Commissions, deps.Log), ring: ring}
	if err := s.checkSecretKey(ctx); err != nil {
		return nil, err
	}
	api, err := web.API{
		Document: doc, Routes: s.routes(), Keys: keys,
		Limiter: deps.Limiter, Log: deps.Log, Now: deps.Now,
	}.Handler()
	if err != nil {
		return nil, fmt.Errorf("start commissions: %w", err)
	}
	s.handler = web.System{Document: doc, Ready: deps.Ready}.Around(api)
	return s, nil
}

// Handler answers the API and the system's addresses.
func (s *Service) Handler() http.Handler { return s.handler }

// Run follows the keys, handles events, releases what was held back, covers what was paid
// and publishes the service's own events, until ctx ends. What is unfinished by then is
// taken up by the next run.
func (s *Service) Run(ctx context.Context) error {
	return service.RunAll(ctx, s.keys.Run, s.relay.Run, s.releaseHeld, s.coverPaid, s.deps.Consume(s.Consumers()))
}

// Consumers are what the service listens to: everything that earns somebody something
// or takes it back, and who the partners are.
func (s *Service) Consumers() []bus.Consumer {
	return []bus.Consumer{
		bus.On[event.SaleRecorded]("commissions-earn", s.earnFromSales).CountedBy(earnedQuery),
		bus.On[event.ConversionRecorded]("commissions-convert", s.earnFromConversions),
		bus.On[event.GoalReached]("commissions-bonus", s.earnFromGoals),
		bus.On[event.SaleRefunded]("commissions-reverse", s.reverse),
		bus.On[event.PartnerCreated]("commissions-partner-created", s.partnerCreated),
		bus.On[event.PartnerChanged]("commissions-partner-changed", s.partnerChanged),
	}
}
