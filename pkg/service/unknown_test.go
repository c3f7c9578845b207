package service

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestAVariableThatNobodyReadsIsToldOf(t *testing.T) {
	known := append(variablesOf(Config{}), variable{name: "WEBHOOKS_PORTS"}, variable{name: "ADMIN_TOKEN", secret: true})
	for name, meant := range map[string]string{
		"RATE_LIMT": "RATE_LIMIT", "DATABASE_POOLS": "DATABASE_POOL", "DATABASE_POLO": "DATABASE_POOL", "NATS_REPLICA": "NATS_REPLICAS",
		"NATS_ULR": "NATS_URL", "WEBHOOK_PORTS": "WEBHOOKS_PORTS", "ADMIN_TOKEN_FLE": "ADMIN_TOKEN_FILE", "DATABASE_POOL_FILE": "DATABASE_POOL",
		"PARTILHA_DATABASE_POOL": "DATABASE_POOL", "PARTILHA_RATE_LIMITS": "RATE_LIMIT", "PARTILHA_LOG": "", "PARTILHA_": "", "PARTILHA_EVERYTHING": "",
	} {
		if got, unknown := judgeName(name, known); !unknown || got != meant {
			t.Errorf("%s: %v, as if %s were meant, want %s", name, unknown, got, meant)
		}
	}
}

func TestWhatOthersSetIsNoSlip(t *testing.T) {
	known := append(variablesOf(Config{}), variable{name: "WEBHOOKS_PORTS"}, variable{name: "ADMIN_TOKEN", secret: true})
	for _, v := range known {
		if _, unknown := judgeName(v.name, known); unknown {
			t.Errorf("%s is known", v.name)
		}
	}
	for _, name := range []string{
		"ADMIN_TOKEN_FILE", "DATABASE_URL_FILE",
		"HOME", "PATH", "PWD", "OLDPWD", "SHLVL", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "TZ", "HOSTNAME", "MAIL", "SHELL", "TMPDIR", "EDITOR", "_", "CI",
		"GOPATH", "GOFLAGS", "GOMAXPROCS", "GODEBUG", "GOROOT", "GOOS", "SSL_CERT_FILE", "HTTP_PROXY", "NO_PROXY", "MAKEFLAGS", "MAKELEVEL", "INVOCATION_ID", "JOURNAL_STREAM",
		"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS", "KUBERNETES_PORT", "KUBERNETES_PORT_443_TCP", "KUBERNETES_PORT_443_TCP_PROTO",
		"NATS_SERVICE_HOST", "NATS_PORT", "NATS_PORT_4222_TCP_ADDR", "SALES_PORT_8080_TCP", "WEBHOOKS_PORT", "WEBHOOKS_SERVICE_PORT",
		"PARTILHA_SALES_SERVICE_HOST", "PARTILHA_SALES_SERVICE_PORT", "PARTILHA_SALES_SERVICE_PORT_HTTP", "PARTILHA_SALES_PORT", "PARTILHA_SALES_PORT_8080_TCP", "PARTILHA_WEBHOOKS_PORT_8080_TCP_ADDR",
		"POD_NAME", "POD_IP", "NODE_NAME", "PGHOST", "PGPASSWORD", "POSTGRES_PASSWORD", "ADDRESS", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_HEADERS",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "WEBHOOKS_SECRET_KEY", "GOALS_PER_TENANT", "SALES_WRITERS",
	} {
		if meant, unknown := judgeName(name, known); unknown {
			t.Errorf("%s is taken for %s", name, meant)
		}
	}
}

func TestTheWarningNamesWhatIsSetAndWhatSeemsToBeMeant(t *testing.T) {
	t.Setenv("PARTILHA_LOG_LEVEL", "hunter2")
	core, seen := observer.New(zap.InfoLevel)
	WarnOfUnknown(zap.New(core), Config{}, nil)
	WarnOfUnknown(zap.New(core))
	all := seen.FilterField(zap.String("variable", "PARTILHA_LOG_LEVEL")).All()
	if len(all) != 1 || all[0].Level != zap.WarnLevel || all[0].ContextMap()["meant"] != "LOG_LEVEL" || len(all[0].Context) != 2 {
		t.Errorf("%+v", all)
	}
}
