package webhooks

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"

	"partilha.dev/pkg/bus"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
)

// workerVariable holds a database URL where this binary is to be a worker on it
// instead of running tests.
const workerVariable = "WEBHOOKS_TEST_WORKER"

// workerReady is what a worker says when it begins.
const workerReady = "ready\n"

// workerConfig has a lease that is short enough for a test to wait for a dead worker's, and
// a timeout that no receiver of these tests exceeds on however slow a machine.
var workerConfig = Config{
	SecretKey: lenient.SecretKey, AllowHTTP: lenient.AllowHTTP, AllowNets: lenient.AllowNets, Ports: lenient.Ports,
	Timeout: 10 * time.Second, Lease: 20 * time.Second,
}

// runWorker is a whole service without NATS, in a process that can be killed.
func runWorker(url string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := work(ctx, url); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(ctx context.Context, url string) error {
	pool, err := postgres.Open(ctx, url, 8)
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.Connect(bus.Config{URL: nowhere}, zap.NewNop())
	if err != nil {
		return err
	}
	defer b.Close()
	s, err := New(ctx, workerConfig, service.Deps{Pool: pool, Bus: b, Log: zap.NewNop(), Now: time.Now})
	if err != nil {
		return err
	}
	s.dispatcher.retrier.backoff = []time.Duration{50 * time.Millisecond}
	fmt.Print(workerReady)
	return s.Run(ctx)
}
