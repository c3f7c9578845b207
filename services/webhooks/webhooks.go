// Package webhooks tells a tenant's own systems what has happened.
//
// It hears every event, keeps it, and makes one delivery for each endpoint that wants
// it. A delivery is claimed, the claim is committed, and only then is the event signed
// and sent: once, whatever comes of it and whoever dies meanwhile. What came of it is
// recorded by whoever holds the claim and by nobody else.
package webhooks

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/web"
)

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed openapi.yaml
var document []byte

const (
	// defaultKeepDays is how long events, deliveries and attempts are kept.
	defaultKeepDays = 30
	// leastKeepDays is as long as receipts are kept: until then an event may come that
	// was never heard of, and needs a place.
	leastKeepDays = 9
)

const stillPendingQuery = `select exists (select from pending where created_at >= $1 and created_at < $2)`

// Migrations are all tables of the service's database, kept for as long as by default.
var Migrations = Schemas(defaultKeepDays)

// Schemas are all tables of the service's database, where what grows without end is kept
// for so many days; 0 stands for the default. A day of which something is still to be sent is kept until that has
// an outcome, and so are those after it; what cannot be sent is given up before that. The totals go before the events that they count:
// so no event is gone that they still speak of.
func Schemas(keepDays int) []postgres.Schema {
	keepDays = cmp.Or(keepDays, defaultKeepDays)
	var partitions []postgres.Partition
	for _, table := range []string{"day_totals", "events", "deliveries", "attempts"} {
		partitions = append(partitions, postgres.Partition{Table: table, Days: keepDays, KeepWhile: stillPendingQuery})
	}
	return []postgres.Schema{bus.Schema, auth.Schema, {Name: "webhooks", FS: postgres.Embedded(migrations), Partitions: partitions}}
}

// Document is the service's part of the API.
func Document() (*openapi.Document, error) { return openapi.Load(document) }

// Retention is how long the history is kept. It is apart because the schemas, which every
// command needs, depend on it.
//
// A page of the history locks each day's tables and indexes, eight a day. With 180 days
// PostgreSQL's usual locks are enough for some twenty pages at once, more than a replica's
// usual pool reads; with 365 for ten, and with 730 for none.
type Retention struct {
	KeepDays int `env:"WEBHOOKS_KEEP_DAYS" envDefault:"30" allow:"9..180"` // days for which events, deliveries, attempts and totals are kept
}

// Config is what only this service is configured with. A zero value means the default.
type Config struct {
	SecretKey   string        `env:"WEBHOOKS_SECRET_KEY,required" allow:"keys of 32 bytes in base64" secret:"true"` // seals signing secrets; of several, separated by commas, the first one seals
	AllowHTTP   bool          `env:"WEBHOOKS_ALLOW_HTTP" envDefault:"false" allow:"true|false"`                     // URLs may be http, not only https
	AllowNets   string        `env:"WEBHOOKS_ALLOW_NETS" allow:"networks"`                                          // that webhooks may go to though they are not public
	Ports       string        `env:"WEBHOOKS_PORTS" allow:"ports, or *"`                                            // of URLs; nothing: 443 and 8443, and 80 where URLs may be http
	Timeout     time.Duration `env:"WEBHOOKS_TIMEOUT" envDefault:"5s" allow:"1ms..5m"`                              // of one attempt to deliver
	Lease       time.Duration `env:"WEBHOOKS_LEASE" envDefault:"30s" allow:"2ms..1h"`                               // after which a sending worker counts as dead; at least twice WEBHOOKS_TIMEOUT
	Concurrency int           `env:"WEBHOOKS_CONCURRENCY" envDefault:"512" allow:"2..10000"`                        // attempts in flight at once, an eighth of them for what is sent again
	Retention

	// OpenLoopback lets http and every port of this very machine through. Only code can
	// set it: it is for the local stack.
	OpenLoopback bool
}

const (
	defaultLease       = 30 * time.Second
	defaultConcurrency = 512
)

// Service is the webhooks service.
type Service struct {
	deps       service.Deps
	handler    http.Handler
	keys       *auth.Copy
	policy     targetPolicy
	sealer     *sealer
	dispatcher *dispatcher
	sweeper    *sweeper
	replayer   *replayer
	watch      *watch
	keepDays   int
}

// New wires the service. It reads the keys that its database remembers and makes sure
// that the configured keys open the secrets that are stored; it starts nothing.
func New(ctx context.Context, config Config, deps service.Deps) (*Service, error) {
	config.Timeout = cmp.Or(config.Timeout, attemptTimeout)
	config.Lease = cmp.Or(config.Lease, defaultLease)
	config.Concurrency = cmp.Or(config.Concurrency, defaultConcurrency)
	config.KeepDays = cmp.Or(config.KeepDays, defaultKeepDays)
	if err := config.Check(); err != nil {
		return nil, err
	}
	policy, err := config.policy()
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer(config.SecretKey)
	if err != nil {
		return nil, fmt.Errorf("WEBHOOKS_SECRET_KEY: %w", err)
	}
	doc, err := Document()
	if err != nil {
		return nil, err
	}

	s := &Service{deps: deps, policy: policy, sealer: sealer, keepDays: config.KeepDays}
	if err := sealer.checkKeys(ctx, deps.Pool); err != nil {
		return nil, err
	}
	if s.keys, err = auth.NewCopy(ctx, deps.Pool, deps.Bus, deps.Log, deps.Now); err != nil {
		return nil, fmt.Errorf("load keys: %w", err)
	}
	sender := newSender(policy, config.Timeout, net.DefaultResolver.LookupNetIP)
	s.dispatcher = newDispatcher(deps, sealer, sender, config.Concurrency, config.Lease)
	s.sweeper = &sweeper{deps: deps, dispatcher: s.dispatcher, lease: config.Lease, kept: s.oldestKept}
	s.watch = newWatch(deps.Pool, deps.Log)
	s.replayer = &replayer{deps: deps, lanes: s.dispatcher.lanes, kept: s.oldestKept}
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

// Check refuses settings that do not go together, or that no service could run with.
func (c Config) Check() error {
	if c.Timeout < 0 || c.Concurrency < 2 {
		return errors.New("WEBHOOKS_TIMEOUT must be above 0, WEBHOOKS_CONCURRENCY above 1")
	}
	if c.Lease < 2*c.Timeout {
		return fmt.Errorf("WEBHOOKS_LEASE %s is not at least twice WEBHOOKS_TIMEOUT, which is %s", c.Lease, c.Timeout)
	}
	if c.KeepDays < leastKeepDays {
		return fmt.Errorf("WEBHOOKS_KEEP_DAYS must be at least %d", leastKeepDays)
	}
	return nil
}

func (c Config) policy() (targetPolicy, error) {
	policy := targetPolicy{AllowHTTP: c.AllowHTTP}
	var err error
	if policy.Ports, err = parsePorts(c.Ports); err != nil {
		return policy, fmt.Errorf("WEBHOOKS_PORTS: %w", err)
	}
	for element := range strings.SplitSeq(c.AllowNets, ",") {
		element = strings.TrimSpace(element)
		if element == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(element)
		if err != nil {
			return policy, fmt.Errorf("WEBHOOKS_ALLOW_NETS: %w", err)
		}
		policy.AllowNets = append(policy.AllowNets, prefix)
	}
	if c.OpenLoopback {
		policy.OpenNets = loopback
	}
	return policy, nil
}

// Handler answers the endpoints, their deliveries, and the system's own addresses.
func (s *Service) Handler() http.Handler { return s.handler }

// Run hears events, sends them and follows the keys until ctx ends. It returns after
// the attempts under way by then have ended and their outcomes are recorded.
func (s *Service) Run(ctx context.Context) error {
	return service.RunAll(ctx, s.keys.Run, s.deps.Consume(s.Consumers()), s.dispatcher.run, s.sweeper.run, s.replayer.run)
}
