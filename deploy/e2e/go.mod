module partilha.dev/deploy/e2e

go 1.26.0

require partilha.dev/pkg v0.0.0

require partilha.dev/services/commissions v0.0.0

require partilha.dev/services/goals v0.0.0

require partilha.dev/services/sales v0.0.0

require partilha.dev/services/webhooks v0.0.0

replace partilha.dev/pkg => ../../pkg

replace partilha.dev/services/commissions => ../../services/commissions

replace partilha.dev/services/goals => ../../services/goals

replace partilha.dev/services/sales => ../../services/sales

replace partilha.dev/services/webhooks => ../../services/webhooks

require partilha.dev/deploy/local v0.0.0

require (
	github.com/antithesishq/antithesis-sdk-go v0.8.0-default-no-op // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.12.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.2 // indirect
	github.com/nats-io/nats-server/v2 v2.15.2 // indirect
	github.com/nats-io/nats.go v1.55.0 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	go.opentelemetry.io/proto/otlp v1.11.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace partilha.dev/deploy/local => ../local
