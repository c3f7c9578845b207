// Package goals follows how close partners come to what they are meant to reach.
//
// It keeps one fact for every sale, refund and conversion that it hears of, adds it to
// the totals of the goals that count it, and tells once when a total has come up to its
// target. A goal that looks back, or that is changed, is filled from the facts in the
// background while others arrive; each is counted once, by whichever of the two.
package goals

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

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
var Migrations = []postgres.Schema{outbox.Schema, bus.Schema, auth.Schema, {Name: "goals", FS: postgres.Embedded(migrations)}}

// Document is the service's part of the API.
func Document() (*openapi.Document, error) { return openapi.Load(document) }

// Config is what only this service is configured with.
type Config struct {
	PerTenant int `env:"GOALS_PER_TENANT" envDefault:"500" allow:"1..100000"` // goals of one tenant that may be active
}

// Service is the goals service.
type Service struct {
	deps     service.Deps
	handler  http.Handler
	keys     *auth.Copy
	relay    *outbox.Relay
	atOnce   int           // facts, or totals, in one step of filling a goal
	unfilled chan struct{} // has one element when there may be a goal to fill

	sizeWithin time.Duration // for as long as a past may take to be measured

	turns     turns
	perTenant int // goals of one tenant that may be active

	listeners *listeners
	streamIDs streamIDs
}

// New wires the service and reads the keys that its database has. It starts
// nothing.
func New(ctx context.Context, config Config, deps service.Deps) (*Service, error) {
	if config.PerTenant = cmp.Or(config.PerTenant, defaultPerTenant); config.PerTenant < 0 {
		return nil, errors.New("GOALS_PER_TENANT must be above 0")
	}
	doc, err := Document()
	if err != nil {
		return nil, err
	}
	s := &Service{deps: deps, relay: outbox.NewRelay(deps.Pool, deps.Bus, bus.Goals, deps.Log), atOnce: atOnce, sizeWithin: sizeWithin, unfilled: make(chan struct{}, 1)}
	s.perTenant, s.turns.byTenant = config.PerTenant, map[uuid.UUID]*turn{}
	s.listeners = newListeners(s)
	if s.keys, err = auth.NewCopy(ctx, deps.Pool, deps.Bus, deps.Log, deps.Now); err != nil {
		return nil, fmt.Errorf("load keys: %w", err)
	}
	if s.streamIDs, err = newStreamIDs(ctx, deps.Pool); err != nil {
		return nil, err
	}
	api, err := web.API{
		Document: doc, Routes: s.routes(), Keys: s.keys,
		Limiter: deps.Limiter, Log: deps.Log, Now: deps.Now,
	}.Handler()
	if err != nil {
		return nil, fmt.Errorf("build the API: %w", err)
	}
	s.handler = web.System{Document: doc, Ready: deps.Ready}.Around(api)
	return s, nil
}

// Handler answers the goals, their progress, and the system's own addresses.
func (s *Service) Handler() http.Handler { return s.handler }

// Run counts what happens, fills goals from the past, publishes events, follows the keys
// and tells whoever listens what changes, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	return service.RunAll(ctx, s.keys.Run, s.relay.Run, s.fillGoals, s.listeners.run, s.deps.Consume(s.Consumers()))
}

// Consumers are what the service listens to: everything that counts for a goal.
func (s *Service) Consumers() []bus.Consumer {
	return []bus.Consumer{
		bus.OnAny("goals-count", heard, s.count),
	}
}
