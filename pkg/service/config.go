package service

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Config is what every service reads from its environment.
type Config struct {
	DatabaseURL  string `env:"DATABASE_URL,required" allow:"PostgreSQL URL" secret:"true"`                  // this service's own database
	DatabasePool int    `env:"DATABASE_POOL" envDefault:"16" allow:"4..10000"`                              // connections at most
	NATSURL      string `env:"NATS_URL" envDefault:"nats://127.0.0.1:4222" allow:"NATS URLs" secret:"true"` // the NATS servers, separated by commas
	NATSReplicas int    `env:"NATS_REPLICAS" envDefault:"1" allow:"1..5"`                                   // copies of every stream; 3 or 5 in a cluster
	LogLevel     string `env:"LOG_LEVEL" envDefault:"info" allow:"debug|info|warn|error"`                   // the least that a log line must be to be written
	Migrate      string `env:"MIGRATE" envDefault:"off" allow:"on|off"`                                     // on: serve applies pending migrations first
	Address
	Limits
	Libraries
}

// Libraries are the variables that libraries and the Go runtime read by themselves. They
// stand here to be known and checked.
type Libraries struct {
	Spans       string `env:"OTEL_EXPORTER_OTLP_ENDPOINT" allow:"HTTP URL"`        // where traces are sent, over OTLP; nothing: nowhere. OpenTelemetry's other variables hold as well
	SpansAlone  string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" allow:"HTTP URL"` // the same, with the path, which nothing is added to
	Collect     string `env:"GOGC" allow:"percentage, or off"`                     // how much the heap may grow between collections, of what is live; nothing: 800
	MemoryLimit string `env:"GOMEMLIMIT" allow:"bytes such as 512MiB, or off"`     // memory that is collected harder near; nothing: four fifths of the container's, or a quarter of the machine's
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
