// Command front answers for the four services what belongs to none of them alone: the
// merged OpenAPI document, its page, and whether all are ready. A proxy sends it those
// addresses and everything else to the services themselves.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"

	"partilha.dev/deploy/local/front"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/service"
	"partilha.dev/pkg/web"
	"partilha.dev/services/commissions"
	"partilha.dev/services/goals"
	"partilha.dev/services/sales"
	"partilha.dev/services/webhooks"
)

// config is what the environment may say.
type config struct {
	service.Address
	LogLevel       string `env:"LOG_LEVEL" envDefault:"info" allow:"debug|info|warn|error"`             // the least that a log line must be to be written
	SalesURL       string `env:"SALES_URL" envDefault:"http://sales:8080" allow:"HTTP URL"`             // where the sales service answers
	CommissionsURL string `env:"COMMISSIONS_URL" envDefault:"http://commissions:8080" allow:"HTTP URL"` // where the commissions service answers
	GoalsURL       string `env:"GOALS_URL" envDefault:"http://goals:8080" allow:"HTTP URL"`             // where the goals service answers
	WebhooksURL    string `env:"WEBHOOKS_URL" envDefault:"http://webhooks:8080" allow:"HTTP URL"`       // where the webhooks service answers
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "front:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := ""
	if len(args) == 1 {
		command = args[0]
	}
	switch command {
	case "serve":
		return serve(ctx)
	case "healthcheck":
		return service.Healthcheck(ctx)
	case "version":
		_, err := fmt.Println("front", service.Version())
		return err
	default:
		return fmt.Errorf("the commands are serve, healthcheck and version")
	}
}

func serve(ctx context.Context) error {
	var c config
	if err := service.ReadEnvironment(&c); err != nil {
		return err
	}
	log, err := service.NewLogger("front", c.LogLevel)
	if err != nil {
		return err
	}
	service.WarnOfUnknown(log, c)
	handler, err := handler(c, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("listen on ADDR: %w", err)
	}
	log.Info("ready", zap.Stringer("addr", listener.Addr()), zap.String("version", service.Version()))
	return web.Serve(ctx, listener, handler)
}

func handler(c config, log *zap.Logger) (http.Handler, error) {
	var members []front.Member
	for _, m := range []struct {
		name     string
		document func() (*openapi.Document, error)
		base     string
	}{
		{"sales", sales.Document, c.SalesURL},
		{"commissions", commissions.Document, c.CommissionsURL},
		{"goals", goals.Document, c.GoalsURL},
		{"webhooks", webhooks.Document, c.WebhooksURL},
	} {
		document, err := m.document()
		if err != nil {
			return nil, err
		}
		members = append(members, front.Member{Name: m.name, Document: document, Ready: front.Remote(m.base)})
	}
	document, err := front.Document(members)
	if err != nil {
		return nil, err
	}
	nothing, err := web.API{Document: document, Log: log}.Handler()
	if err != nil {
		return nil, err
	}
	return front.Around(members, document, nothing), nil
}
