package stack

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/services/commissions"
	"partilha.dev/services/goals"
	"partilha.dev/services/sales"
	"partilha.dev/services/webhooks"
)

// member is one service of the stack.
type member struct {
	service.Service
	name     string
	deps     service.Deps
	document *openapi.Document
}

// blueprint is how a member comes into being.
type blueprint struct {
	name     string
	schemas  []postgres.Schema
	document func() (*openapi.Document, error)
	build    func(context.Context, service.Deps) (service.Service, error)
}

var serviceNames = []string{"sales", "commissions", "goals", "webhooks"}

func (s *Stack) blueprints(o Options) ([]blueprint, error) {
	var err error
	o.Sales.AdminToken = s.AdminToken
	if o.Webhooks.SecretKey, err = secret(filepath.Join(o.DataDir, "webhooks-secret-key"), o.Webhooks.SecretKey); err != nil {
		return nil, err
	}
	o.Webhooks.OpenLoopback = true
	if o.Commissions.SecretKey, err = secret(filepath.Join(o.DataDir, "commissions-secret-key"), o.Commissions.SecretKey); err != nil {
		return nil, err
	}
	return []blueprint{
		{"sales", sales.Migrations, sales.Document, func(ctx context.Context, deps service.Deps) (service.Service, error) {
			return sales.New(ctx, o.Sales, deps)
		}},
		{"commissions", commissions.Migrations, commissions.Document, func(ctx context.Context, deps service.Deps) (service.Service, error) {
			return commissions.New(ctx, o.Commissions, deps)
		}},
		{"goals", goals.Migrations, goals.Document, func(ctx context.Context, deps service.Deps) (service.Service, error) {
			return goals.New(ctx, o.Goals, deps)
		}},
		{"webhooks", webhooks.Schemas(o.Webhooks.KeepDays), webhooks.Document, func(ctx context.Context, deps service.Deps) (service.Service, error) {
			return webhooks.New(ctx, o.Webhooks, deps)
		}},
	}, nil
}

// startServices migrates and starts the four services, each with a database and
// connections of its own.
func (s *Stack) startServices(ctx context.Context, o Options, databaseURL func(string) string) ([]member, error) {
	blueprints, err := s.blueprints(o)
	if err != nil {
		return nil, err
	}
	var members []member
	for _, b := range blueprints {
		m, err := s.startService(ctx, o, b, databaseURL(databaseName(b.name)))
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", b.name, err)
		}
		members = append(members, m)
	}
	return members, nil
}

const poolSize = 16

func (s *Stack) startService(ctx context.Context, o Options, b blueprint, url string) (member, error) {
	if err := postgres.Migrate(ctx, url, b.schemas...); err != nil {
		return member{}, err
	}
	pool, err := postgres.Open(ctx, url, poolSize)
	if err != nil {
		return member{}, err
	}
	s.started(func() error { pool.Close(); return nil })
	log := o.Log.With(zap.String("service", b.name))
	connection, err := bus.Connect(bus.Config{URL: s.NATSURL, Name: b.name}, log)
	if err != nil {
		return member{}, err
	}
	s.started(func() error { connection.Close(); return nil })
	document, err := b.document()
	if err != nil {
		return member{}, err
	}
	m := member{name: b.name, document: document, deps: service.Deps{
		Pool: pool, Bus: connection, Log: log, Now: time.Now, Limiter: service.LimiterFor(o.Limits, int(pool.Config().MaxConns)),
	}}
	if m.Service, err = b.build(ctx, m.deps); err != nil {
		return member{}, err
	}
	s.background(b.name, func(ctx context.Context) error {
		return service.RunAll(ctx, m.Run, m.deps.Maintain(b.schemas), m.deps.Measure(b.name, m.Consumers()))
	})
	return m, nil
}
