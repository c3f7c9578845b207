package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"partilha.dev/deploy/local/stack"
	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/web"
	"partilha.dev/services/commissions"
	"partilha.dev/services/goals"
	"partilha.dev/services/sales"
	"partilha.dev/services/webhooks"
)

// operatorToken opens /admin/v1 of a service that nobody else can reach.
const operatorToken = "operator-of-the-benchmark"

// serve serves until ctx ends. It announces itself once it answers.
func serve(ctx context.Context, a assignment, logFile *os.File, announce func(announcement) error) error {
	service.TuneMemory()
	log := zap.New(service.LogCore(zapcore.AddSync(logFile), zapcore.InfoLevel))
	switch a.Role {
	case roleBare:
		return serveBare(ctx, log, announce)
	case roleWebhooks:
		return serveWebhooks(ctx, a, log, announce)
	case roleLoop:
		if err := announce(announcement{}); err != nil {
			return err
		}
		return postInALoop(ctx, a)
	case roleStack:
		return serveStack(ctx, a, log, announce)
	case roleNATS:
		return serveNATS(ctx, a, announce)
	default:
		one, ok := solos[a.Role]
		if !ok {
			return fmt.Errorf("there is no role %q", a.Role)
		}
		return one.serve(ctx, a, log, announce)
	}
}

// solo is a service that runs without the others, with all that it does by itself:
// keys, consumers, relay, and partitions.
type solo struct {
	name    string
	schemas []postgres.Schema
	build   func(context.Context, assignment, service.Deps) (service.Service, error)
}

// sealingKey is of no secret: nothing of what is measured is ever sealed.
var sealingKey = base64.StdEncoding.EncodeToString(make([]byte, 32))

var solos = map[role]solo{
	roleSales: {"sales", sales.Migrations, func(ctx context.Context, a assignment, deps service.Deps) (service.Service, error) {
		return sales.New(ctx, sales.Config{AdminToken: operatorToken, Writers: a.Writers}, deps)
	}},
	roleCommissions: {"commissions", commissions.Migrations, func(ctx context.Context, _ assignment, deps service.Deps) (service.Service, error) {
		return commissions.New(ctx, commissions.Config{SecretKey: sealingKey}, deps)
	}},
	roleGoals: {"goals", goals.Migrations, func(ctx context.Context, _ assignment, deps service.Deps) (service.Service, error) {
		return goals.New(ctx, goals.Config{}, deps)
	}},
}

func (one solo) serve(ctx context.Context, a assignment, log *zap.Logger, announce func(announcement) error) (err error) {
	if a.NATSURL == "" {
		natsURL, stopNATS, err := startNATS(a.Dir)
		if err != nil {
			return err
		}
		defer stopNATS()
		a.NATSURL = natsURL
	}
	if err := postgres.Migrate(ctx, a.DatabaseURL, one.schemas...); err != nil {
		return err
	}
	pool, err := postgres.Open(ctx, a.DatabaseURL, 16)
	if err != nil {
		return err
	}
	defer pool.Close()
	connection, err := bus.Connect(bus.Config{URL: a.NATSURL, Name: one.name}, log)
	if err != nil {
		return err
	}
	defer connection.Close()
	deps := service.Deps{Pool: pool, Bus: connection, Log: log, Now: time.Now, Limiter: limiterOf(a)}
	s, err := one.build(ctx, a, deps)
	if err != nil {
		return err
	}
	background, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- service.RunAll(background, s.Run, deps.Maintain(one.schemas)) }()
	err = listenAndServe(ctx, announcement{AdminToken: operatorToken}, announce, func(ctx context.Context, listener net.Listener) error {
		return web.Serve(ctx, listener, s.Handler())
	})
	stop()
	return errors.Join(err, <-ended)
}

// limiterOf bounds only what a tenant has under way, and only if the assignment says so.
func limiterOf(a assignment) *web.Limiter {
	if a.InFlight == 0 {
		return nil
	}
	const unbounded = 1 << 30
	waiting := a.Waiting
	if waiting == 0 {
		waiting = unbounded
	}
	return web.NewLimiter(web.Limits{
		PerSecond: unbounded, Burst: waiting, InFlight: a.InFlight, Connections: unbounded, FailuresPerSecond: unbounded, FailureBurst: unbounded,
	})
}

// benchSealingKey seals the secrets of endpoints that only the benchmark has.
const benchSealingKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// serveWebhooks runs the webhooks service alone. Where there is no NATS, what it delivers
// waits in its database.
func serveWebhooks(ctx context.Context, a assignment, log *zap.Logger, announce func(announcement) error) (err error) {
	pool, err := postgres.Open(ctx, a.DatabaseURL, 16)
	if err != nil {
		return err
	}
	defer pool.Close()
	connection, err := bus.Connect(bus.Config{URL: cmp.Or(a.NATSURL, "nats://127.0.0.1:1"), Name: "webhooks"}, log)
	if err != nil {
		return err
	}
	defer connection.Close()
	deps := service.Deps{Pool: pool, Bus: connection, Log: log, Now: time.Now}
	config := webhooks.Config{SecretKey: benchSealingKey, OpenLoopback: true, Concurrency: a.Attempts}
	s, err := webhooks.New(ctx, config, deps)
	if err != nil {
		return err
	}
	background, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(background) }()
	err = listenAndServe(ctx, announcement{}, announce, func(ctx context.Context, listener net.Listener) error {
		return web.Serve(ctx, listener, s.Handler())
	})
	stop()
	return errors.Join(err, <-ended)
}

// listenAndServe announces a free port and serves on it until ctx ends.
func listenAndServe(ctx context.Context, now announcement, announce func(announcement) error, serve func(context.Context, net.Listener) error) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	now.Address = listener.Addr().String()
	if err := announce(now); err != nil {
		listener.Close()
		return err
	}
	return serve(ctx, listener)
}

// startNATS runs a server with JetStream in this process, as the local stack does.
func startNATS(dir string) (address string, stop func(), err error) {
	embedded, err := server.NewServer(&server.Options{
		ServerName: "bench", Host: "127.0.0.1", Port: server.RANDOM_PORT,
		JetStream: true, StoreDir: filepath.Join(dir, "nats"), SyncInterval: 2 * time.Second,
		NoSigs: true, NoLog: true,
	})
	if err != nil {
		return "", nil, fmt.Errorf("prepare NATS: %w", err)
	}
	go embedded.Start()
	stop = func() {
		embedded.Shutdown()
		embedded.WaitForShutdown()
	}
	if !embedded.ReadyForConnections(15 * time.Second) {
		stop()
		return "", nil, errors.New("NATS does not start")
	}
	return (&url.URL{Scheme: "nats", Host: embedded.Addr().String()}).String(), stop, nil
}

// serveNATS runs a server and nothing else, until ctx ends.
func serveNATS(ctx context.Context, a assignment, announce func(announcement) error) error {
	natsURL, stop, err := startNATS(a.Dir)
	if err != nil {
		return err
	}
	defer stop()
	address, err := url.Parse(natsURL)
	if err == nil {
		err = announce(announcement{Address: address.Host})
	}
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// serveStack runs everything, except that PostgreSQL is the benchmark's.
func serveStack(ctx context.Context, a assignment, log *zap.Logger, announce func(announcement) error) error {
	s, err := stack.Start(ctx, stack.Options{
		Addr: "127.0.0.1:0", DataDir: filepath.Join(a.Dir, "stack"), Sales: sales.Config{AdminToken: operatorToken},
		DatabaseURL: a.DatabaseURL, Log: log,
	})
	if err != nil {
		return err
	}
	base, err := url.Parse(s.URL)
	if err == nil {
		err = announce(announcement{Address: base.Host, AdminToken: s.AdminToken})
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-s.Failed():
		}
	}
	return errors.Join(err, s.Stop())
}

// startProfile writes a CPU profile until stop is called; with no path it does nothing.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("open the CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("start the CPU profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}, nil
}
