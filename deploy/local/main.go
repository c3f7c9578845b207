// Command local runs all of Partilha on this machine and shows what it does. It is
// what `make run` starts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"partilha.dev/deploy/local/demo"
	"partilha.dev/deploy/local/stack"
	"partilha.dev/pkg/service"
	"partilha.dev/services/commissions"
	"partilha.dev/services/goals"
	"partilha.dev/services/sales"
	"partilha.dev/services/webhooks"
)

// config is what the environment may say.
type config struct {
	service.Address
	DataDir     string `env:"DATA_DIR" envDefault:"./.local" allow:"text"`               // the folder of everything that lasts
	DatabaseURL string `env:"DATABASE_URL" allow:"PostgreSQL URL" secret:"true"`         // a server to use instead of a private one
	NATSURL     string `env:"NATS_URL" allow:"NATS URLs" secret:"true"`                  // a server to use instead of the embedded one
	Demo        string `env:"DEMO" envDefault:"on" allow:"on|off|exit"`                  // off: no demo tenant and no demo sale; exit: stop after the demo
	LogLevel    string `env:"LOG_LEVEL" envDefault:"info" allow:"debug|info|warn|error"` // of the JSON lines in DATA_DIR/partilha.log
	service.Limits
	service.Libraries

	Sales       sales.Config
	Commissions commissions.Config `required:"false"` // a secret that is not given is made once and kept
	Goals       goals.Config
	Webhooks    webhooks.Config `required:"false"`
}

// Check refuses what does not go together.
func (c *config) Check() error { return c.Webhooks.Check() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "partilha:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	var c config
	if err := service.ReadEnvironment(&c); err != nil {
		return err
	}
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return fmt.Errorf("find DATA_DIR: %w", err)
	}
	service.TuneMemory()
	log, closeLog, err := openLog(c)
	if err != nil {
		return err
	}
	defer closeLog()
	service.WarnOfUnknown(log, c)
	receiver := demo.NewReceiver()
	s, err := stack.Start(ctx, stack.Options{
		Addr: c.Addr, DataDir: c.DataDir, DatabaseURL: c.DatabaseURL, NATSURL: c.NATSURL, Limits: c.Limits,
		Sales: c.Sales, Commissions: c.Commissions, Goals: c.Goals, Webhooks: c.Webhooks,
		Log: log, Extra: receiver, Progress: out,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	fmt.Fprintf(out, "Partilha answers at %s (data and logs in %s)\n", s.URL, c.DataDir)
	otherwise := "only to public https addresses"
	if c.Webhooks.AllowHTTP || c.Webhooks.AllowNets != "" || c.Webhooks.Ports != "" {
		otherwise = "to where WEBHOOKS_… lets them"
	}
	fmt.Fprintf(out, "Webhooks may go to http and any port on this machine, and otherwise %s.\n", otherwise)

	var tenant *demo.Tenant
	if c.Demo != "off" {
		fmt.Fprintln(out)
		if tenant, err = demo.Open(ctx, s.URL, s.AdminToken, c.DataDir, s.URL, receiver); err != nil {
			return err
		}
		if err := tenant.Sell(ctx, out, s.URL, s.NATSURL, receiver); err != nil {
			return err
		}
	}
	if c.Demo == "exit" {
		return nil
	}
	tell(out, s, tenant)
	select {
	case <-ctx.Done():
		fmt.Fprintln(out, "\nStopping …")
		return nil
	case err := <-s.Failed():
		return fmt.Errorf("a part has stopped by itself: %w", err)
	}
}

// tell prints what somebody needs to go on by hand.
func tell(out io.Writer, s *stack.Stack, t *demo.Tenant) {
	fmt.Fprintf(out, "\n  base URL     %s      (docs at %s/docs)\n  admin token  %s\n", s.URL, s.URL, s.AdminToken)
	if t != nil {
		fmt.Fprintf(out, "  demo key     %s\n\nTry it:\n\n", t.Key)
		fmt.Fprintf(out, `  curl -s %s/api/v1/sales -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' \
    -d '{"referral_code":"%s","campaign_id":"%s","plan_id":"%s","amount_brl":99.90,"external_ref":"my-first"}'
`, s.URL, t.Key, t.ReferralCode, t.CampaignID, t.PlanID)
		fmt.Fprintf(out, "  curl -s %s/api/v1/webhook-deliveries -H 'Authorization: Bearer %s'\n", s.URL, t.Key)
	}
	fmt.Fprintln(out, "\nCtrl-C stops everything.")
}

// openLog writes the services' JSON lines into the data folder, so that the terminal
// stays readable.
func openLog(c config) (*zap.Logger, func(), error) {
	level, err := zapcore.ParseLevel(c.LogLevel)
	if err != nil {
		return nil, nil, fmt.Errorf("LOG_LEVEL %q is none of debug, info, warn, error", c.LogLevel)
	}
	if err := stack.MakeDataDir(c.DataDir); err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(filepath.Join(c.DataDir, "partilha.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the log: %w", err)
	}
	log := zap.New(service.LogCore(zapcore.AddSync(file), level))
	return log, func() { _ = log.Sync(); file.Close() }, nil
}
