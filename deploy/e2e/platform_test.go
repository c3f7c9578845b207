package e2e

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

// platform is Partilha as it is deployed: four processes with a database each, and NATS
// between them.
type platform struct {
	nats      *testkit.NATSServer
	pools     map[string]*pgxpool.Pool // the test's own, by service
	processes map[string]*process
}

const adminToken = "operator-of-the-end-to-end-tests"

// sealingKey is the key of the webhooks service and of the commissions service: 32 bytes in base64.
var sealingKey = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("e2e-", 8)))

// newPlatform prepares a platform on migrated databases. NATS runs, the services do not.
func newPlatform(t testing.TB, env ...string) *platform {
	t.Helper()
	databases := map[string]string{}
	for _, service := range services {
		databases[service] = testkit.Database(t, schemas[service]...)
	}
	return assemble(t, databases, env...)
}

// newPlatformOn is newPlatform on four new databases of a server of the test's own.
func newPlatformOn(t testing.TB, server *pgserver.Server, env ...string) *platform {
	t.Helper()
	databases := map[string]string{}
	for _, service := range services {
		if err := server.CreateDatabase(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		databases[service] = server.URL(service)
	}
	return assemble(t, databases, append(env, "MIGRATE=on")...)
}

func assemble(t testing.TB, databases map[string]string, env ...string) *platform {
	t.Helper()
	p := &platform{nats: testkit.NATS(t), pools: map[string]*pgxpool.Pool{}, processes: map[string]*process{}}
	for _, service := range services {
		pool, err := pgxpool.New(t.Context(), databases[service])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		p.pools[service] = pool
		own := []string{"DATABASE_URL=" + databases[service], "NATS_URL=" + p.nats.URL()}
		switch service {
		case "sales":
			own = append(own, "ADMIN_TOKEN="+adminToken)
		case "commissions":
			own = append(own, "COMMISSIONS_SECRET_KEY="+sealingKey)
		case "webhooks":
			own = append(own, "WEBHOOKS_SECRET_KEY="+sealingKey, "WEBHOOKS_ALLOW_HTTP=true",
				"WEBHOOKS_ALLOW_NETS=127.0.0.0/8", "WEBHOOKS_PORTS=*")
		}
		p.processes[service] = newProcess(t, service, append(own, env...)...)
	}
	return p
}

// startPlatform is newPlatform with everything running.
func startPlatform(t testing.TB, env ...string) *platform {
	t.Helper()
	p := newPlatform(t, env...)
	p.start()
	return p
}

// start starts every process, in the order in which a sale passes through them.
func (p *platform) start() {
	for _, service := range services {
		p.processes[service].start()
	}
}

// ownerOf is the service that answers a path.
func ownerOf(path string) string {
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

func (p *platform) baseFor(path string) string { return p.processes[ownerOf(path)].base() }
func (p *platform) operatorToken() string      { return adminToken }

// query returns the rows of a query with one text column in a service's database.
func (p *platform) query(t testing.TB, service, query string, args ...any) []string {
	t.Helper()
	rows, err := p.pools[service].Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("ask the database of %s: %v", service, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("ask the database of %s: %v", service, err)
	}
	return found
}

// exec changes a service's database behind its back.
func (p *platform) exec(t testing.TB, service, statement string, args ...any) {
	t.Helper()
	if _, err := p.pools[service].Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("change the database of %s: %v", service, err)
	}
}

// at is a system whose every path is answered by one process.
type at struct{ *process }

func (a at) baseFor(string) string { return a.base() }
func (a at) operatorToken() string { return adminToken }

// systemAddress asks one process for one of its own addresses, without a key.
func (p *platform) systemAddress(t testing.TB, service, path string) answer {
	t.Helper()
	return caller{system: at{p.processes[service]}}.call(t, "GET", path, nil)
}
