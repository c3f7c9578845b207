package kubernetes

import (
	"strings"
	"testing"
)

func TestBadValuesAreRefusedByTheirName(t *testing.T) {
	for _, row := range []struct{ values, want string }{
		{`replicaCount: 3`, "additional properties 'replicaCount' not allowed"},
		{`settings: { LOGLEVEL: info }`, "'LOGLEVEL' not allowed"},
		{`settings: { LOG_LEVEL: loud }`, "at '/settings/LOG_LEVEL': value must be one of 'debug', 'info', 'warn', 'error'"},
		{`settings: { RATE_LIMIT: on }`, "at '/settings/RATE_LIMIT': value must be one of 'on', 'off'"}, // YAML takes it for true
		{`settings: { RATE_LIMIT_BURST: 0 }`, "at '/settings/RATE_LIMIT_BURST': minimum"},
		{`settings: { DATABASE_POOL: many }`, "at '/settings/DATABASE_POOL': got string, want integer"},
		{`settings: { DATABASE_POOL: 3 }`, "at '/settings/DATABASE_POOL': minimum"},
		{`settings: { DATABASE_URL: "postgres://x" }`, "'DATABASE_URL' not allowed"},
		{`settings: { NATS_REPLICAS: 2 }`, "at '/settings/NATS_REPLICAS'"},
		{`settings: { TRUSTED_PROXIES: everybody }`, "at '/settings/TRUSTED_PROXIES'"},
		{`settings: { TRUSTED_PROXIES: "10.0.0.0/8 fd00::/8" }`, "at '/settings/TRUSTED_PROXIES'"},
		{`settings: { WEBHOOKS_KEEP_DAYS: 30 }`, "'WEBHOOKS_KEEP_DAYS' not allowed"},
		{`services: { webhooks: { settings: { WEBHOOKS_KEEP_DAYS: 3 } } }`, "at '/services/webhooks/settings/WEBHOOKS_KEEP_DAYS': minimum"},
		{`services: { webhooks: { settings: { WEBHOOKS_KEEP_DAYS: 365 } } }`, "at '/services/webhooks/settings/WEBHOOKS_KEEP_DAYS': maximum"},
		{`services: { webhooks: { settings: { WEBHOOKS_PORTS: 443 } } }`, "at '/services/webhooks/settings/WEBHOOKS_PORTS': got number, want string"},
		{`services: { webhooks: { settings: { WEBHOOKS_TIMEOUT: 5 } } }`, "at '/services/webhooks/settings/WEBHOOKS_TIMEOUT': got number, want string"},
		{`services: { front: { settings: { DATABASE_POOL: 3 } } }`, "'DATABASE_POOL' not allowed"},
		{`services: { front: { secret: mine } }`, "'secret' not allowed"},
		{`services: { billing: { replicas: 1 } }`, "'billing' not allowed"},
		{`services: { sales: { replicas: -1 } }`, "at '/services/sales/replicas': minimum"},
		{`services: { sales: { replicas: 1.5 } }`, "at '/services/sales/replicas': got number, want integer"},
		{`services: { sales: { secret: Sales_Secret } }`, "at '/services/sales/secret'"},
		{`services: { sales: { resources: { limits: { memory: lots } } } }`, "at '/services/sales/resources/limits/memory'"},
		{`services: { sales: { resources: { requests: { cpu: null } } } }`, "at '/services/sales/resources/requests': missing property 'cpu'"},
		{`services: { sales: null }`, "at '/services': missing property 'sales'"},
		{`image: { tag: "a b" }`, "at '/image/tag'"},
		{`image: { pullPolicy: Sometimes }`, "at '/image/pullPolicy': value must be one of"},
		{`ingress: { tlsSecret: certificate }`, "at '/ingress/host': minLength"},
		{`ingress: { host: "https://pay.example.com" }`, "at '/ingress/host'"},
		{`tracing: { endpoint: "collector:4318" }`, "at '/tracing/endpoint'"},
		{`networkPolicy: { nats: { ports: [] } }`, "at '/networkPolicy/nats/ports': minItems"},
		{`networkPolicy: { callers: [{}] }`, "at '/networkPolicy/callers/0': minProperties"},
		{`drain: { gracePeriodSeconds: 5 }`, "at '/drain/gracePeriodSeconds': minimum"},
		{`monitoring: { rules: rules.yml }`, "at '/monitoring/rules': got string, want boolean"},
		{`trial: { enabled: "yes" }`, "at '/trial/enabled': got string, want boolean"},
		{`{ trial: { enabled: true }, services: { goals: { secret: mine } } }`, `services.goals.secret is "mine", but a trial makes the Secrets itself`},
		{`restore: true`, "at '/restore': value must be one of '', 'stop', 'catch-up'"},
		{`{ trial: { enabled: true }, restore: catch-up }`, "a trial has no backup that could be restored"},
	} {
		_, _, err := tryRender(t, row.values)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.values, err, row.want)
		}
	}
}

func TestEveryDefaultIsInTheSchema(t *testing.T) {
	if _, _, err := tryRender(t, ``); err != nil {
		t.Error(err)
	}
	if loaded := loadChart(t); len(loaded.Schema) == 0 || len(loaded.Values) == 0 {
		t.Error("the chart has no schema, or no values")
	}
}
