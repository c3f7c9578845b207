package service

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Config is what every service reads from its environment. A variable that holds a
// secret may be given as NAME_FILE instead, the path of a file that holds it.
type Config struct {
	DatabaseURL  string `env:"DATABASE_URL,required,notEmpty"`              // this service's own database
	DatabasePool int    `env:"DATABASE_POOL" envDefault:"16"`               // connections at most
	NATSURL      string `env:"NATS_URL" envDefault:"nats://127.0.0.1:4222"` // several servers: separated by commas
	NATSReplicas int    `env:"NATS_REPLICAS" envDefault:"1"`                // copies of every stream; 3 or 5 in a cluster
	LogLevel     string `env:"LOG_LEVEL" envDefault:"info"`                 // debug, info, warn or error
	Migrate      string `env:"MIGRATE" envDefault:"off"`                    // on: serve applies pending migrations first
	Address
	Limits
}

// check refuses what the types of the settings let pass.
func (c Config) check() error {
	if err := checkSwitch("MIGRATE", c.Migrate); err != nil {
		return err
	}
	return c.Limits.Check()
}

// checkSwitch refuses what is neither on nor off, so that MIGRATE=true is noticed.
func checkSwitch(name, setting string) error {
	if setting != "on" && setting != "off" {
		return fmt.Errorf("%s %q is neither on nor off", name, setting)
	}
	return nil
}

// secretVariables may be given as a file.
var secretVariables = []string{"DATABASE_URL", "NATS_URL", "ADMIN_TOKEN", "WEBHOOKS_SECRET_KEY", "COMMISSIONS_SECRET_KEY"}

// ReadEnvironment fills config, a pointer to a struct with env tags, from the
// environment.
func ReadEnvironment(config any) error {
	variables, err := environment()
	if err != nil {
		return err
	}
	if err := env.ParseWithOptions(config, env.Options{Environment: variables}); err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	return nil
}

func environment() (map[string]string, error) {
	variables := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		variables[name] = value
	}
	for _, name := range secretVariables {
		path, ok := variables[name+"_FILE"]
		if !ok {
			continue
		}
		if _, both := variables[name]; both {
			return nil, fmt.Errorf("set %s or %s_FILE, not both", name, name)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read %s_FILE: %w", name, err)
		}
		variables[name] = strings.TrimRight(string(content), "\r\n")
	}
	return variables, nil
}

// NewLogger writes JSON lines to standard error.
func NewLogger(service, level string) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("LOG_LEVEL %q is none of debug, info, warn, error", level)
	}
	return zap.New(LogCore(zapcore.Lock(os.Stderr), at)).With(zap.String("service", service)), nil
}

// LogCore writes JSON lines. Of lines with one message, a hundred a second are
// written, then every hundredth, so that a storm of requests is not one of log lines.
func LogCore(out zapcore.WriteSyncer, level zapcore.Level) zapcore.Core {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey = "time"
	config.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	return zapcore.NewSamplerWithOptions(zapcore.NewCore(zapcore.NewJSONEncoder(config), out, level), time.Second, 100, 100)
}
