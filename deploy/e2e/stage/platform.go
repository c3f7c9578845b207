package stage

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/pgserver"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/testkit"
	commissionsservice "partilha.dev/services/commissions"
	goalsservice "partilha.dev/services/goals"
	salesservice "partilha.dev/services/sales"
	webhooksservice "partilha.dev/services/webhooks"
)

// schemas are what each service's database is made of.
var schemas = map[string][]postgres.Schema{
	"sales": salesservice.Migrations, "commissions": commissionsservice.Migrations,
	"goals": goalsservice.Migrations, "webhooks": webhooksservice.Migrations,
}

// Platform is Partilha as it is deployed: four processes with a database each, and NATS
// between them.
type Platform struct {
	NATS      *testkit.NATSServer
	Pools     map[string]*pgxpool.Pool // the test's own, by service
	Processes map[string]*Process
}

// AdminToken is the operator's token of every platform.
const AdminToken = "operator-of-the-end-to-end-tests"

// SealingKey is the key of the webhooks service and of the commissions service: 32 bytes in base64.
var SealingKey = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("e2e-", 8)))

// NewPlatform prepares a platform on migrated databases. NATS runs, the services do not.
func NewPlatform(t testing.TB, env ...string) *Platform {
	t.Helper()
	databases := map[string]string{}
	for _, service := range Services {
		databases[service] = testkit.Database(t, schemas[service]...)
	}
	return assemble(t, databases, env...)
}

// NewPlatformOn is NewPlatform on four new databases of a server of the test's own.
func NewPlatformOn(t testing.TB, server *pgserver.Server, env ...string) *Platform {
	t.Helper()
	databases := map[string]string{}
	for _, service := range Services {
		if err := server.CreateDatabase(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		databases[service] = server.URL(service)
	}
	return assemble(t, databases, append(env, "MIGRATE=on")...)
}

func assemble(t testing.TB, databases map[string]string, env ...string) *Platform {
	t.Helper()
	p := &Platform{NATS: testkit.NATS(t), Pools: OpenPools(t, databases), Processes: map[string]*Process{}}
	for _, service := range Services {
		p.Processes[service] = NewProcess(t, service, append(Settings(service, databases[service], p.NATS.URL()), env...)...)
	}
	return p
}

// OpenPools connects the test itself to each service's database.
func OpenPools(t testing.TB, databases map[string]string) map[string]*pgxpool.Pool {
	t.Helper()
	pools := map[string]*pgxpool.Pool{}
	for service, url := range databases {
		pool, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		pools[service] = pool
	}
	return pools
}

// Settings are the environment that a service cannot do without.
func Settings(service, databaseURL, natsURL string) []string {
	env := []string{"DATABASE_URL=" + databaseURL, "NATS_URL=" + natsURL}
	switch service {
	case "sales":
		env = append(env, "ADMIN_TOKEN="+AdminToken)
	case "commissions":
		env = append(env, "COMMISSIONS_SECRET_KEY="+SealingKey)
	case "webhooks":
		env = append(env, "WEBHOOKS_SECRET_KEY="+SealingKey, "WEBHOOKS_ALLOW_HTTP=true",
			"WEBHOOKS_ALLOW_NETS=127.0.0.0/8", "WEBHOOKS_PORTS=*")
	}
	return env
}

// StartPlatform is NewPlatform with everything running.
func StartPlatform(t testing.TB, env ...string) *Platform {
	t.Helper()
	p := NewPlatform(t, env...)
	p.Start()
	return p
}

// Start starts every process, in the order in which a sale passes through them.
func (p *Platform) Start() {
	for _, service := range Services {
		p.Processes[service].Start()
	}
}

// OwnerOf is the service that answers a path.
func OwnerOf(path string) string {
	for prefix, service := range map[string]string{
		"/api/v1/commissions": "commissions", "/api/v1/balances": "commissions", "/api/v1/statements": "commissions", "/api/v1/ledger": "commissions",
		"/api/v1/withdrawals": "commissions",
		"/api/v1/goals":       "goals", "/api/v1/webhook-": "webhooks", "/api/v1/events": "webhooks",
	} {
		if strings.HasPrefix(path, prefix) {
			return service
		}
	}
	return "sales"
}

// BaseFor is the URL of the service that answers the path.
func (p *Platform) BaseFor(path string) string { return p.Processes[OwnerOf(path)].Base() }

// OperatorToken is AdminToken.
func (p *Platform) OperatorToken() string { return AdminToken }

// Query returns the rows of a query with one text column in a service's database.
func (p *Platform) Query(t testing.TB, service, query string, args ...any) []string {
	t.Helper()
	rows, err := p.Pools[service].Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("ask the database of %s: %v", service, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("ask the database of %s: %v", service, err)
	}
	return found
}

// Exec changes a service's database behind its back.
func (p *Platform) Exec(t testing.TB, service, statement string, args ...any) {
	t.Helper()
	if _, err := p.Pools[service].Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("change the database of %s: %v", service, err)
	}
}

// At is a system whose every path is answered by one process.
type At struct{ *Process }

// BaseFor is the URL of that process.
func (a At) BaseFor(string) string { return a.Base() }

// OperatorToken is AdminToken.
func (a At) OperatorToken() string { return AdminToken }

// SystemAddress asks one process for one of its own addresses, without a key.
func (p *Platform) SystemAddress(t testing.TB, service, path string) Answer {
	t.Helper()
	return Caller{System: At{p.Processes[service]}}.Call(t, "GET", path, nil)
}
