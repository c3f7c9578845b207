// Command demo shows one sale all the way through a platform that runs elsewhere: it
// makes a tenant, reports a sale at BASE_URL, receives the webhook itself, and says so.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"partilha.dev/deploy/local/demo"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/web"
)

// config is what the environment must say.
type config struct {
	service.Address
	BaseURL     string `env:"BASE_URL,required" allow:"HTTP URL"`              // where the platform answers
	ReceiverURL string `env:"RECEIVER_URL,required" allow:"HTTP URL"`          // where the platform's webhooks reach ADDR
	AdminToken  string `env:"ADMIN_TOKEN,required" allow:"text" secret:"true"` // of the operator
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var c config
	if err := service.ReadEnvironment(&c); err != nil {
		return err
	}
	receiver := demo.NewReceiver()
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("listen on ADDR: %w", err)
	}
	listening, stopListening := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listening, listener, receiver) }()
	defer func() { stopListening(); <-ended }()

	folder, err := os.MkdirTemp("", "demo-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	tenant, err := demo.Open(ctx, c.BaseURL, c.AdminToken, folder, c.ReceiverURL, receiver)
	if err != nil {
		return err
	}
	return tenant.Sell(ctx, os.Stdout, c.BaseURL, "", receiver)
}
