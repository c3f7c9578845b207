package kubernetes

import "testing"

// valueSets are the ways in which the chart is used.
var valueSets = map[string]string{
	"PostgreSQL and NATS are elsewhere": ``,
	"as little as possible": `
networkPolicy: { enabled: false }
ingress: { enabled: false }
services:
  sales: { replicas: 1 }
  commissions: { replicas: 1 }
  goals: { replicas: 1 }
  webhooks: { replicas: 1 }
  front: { replicas: 1 }
`,
	"a trial": `trial: { enabled: true }`,
	"a trial without network policies": `
trial: { enabled: true, storageClassName: fast }
networkPolicy: { enabled: false }
`,
	"it scales": `
services:
  sales: { autoscaling: { enabled: true, min: 3, max: 12, cpu: 60 } }
  commissions: { autoscaling: { enabled: true } }
  goals: { autoscaling: { enabled: true } }
  webhooks: { autoscaling: { enabled: true } }
  front: { autoscaling: { enabled: true } }
`,
	"TLS everywhere": `
ingress: { className: traefik, host: pay.example.com, tlsSecret: pay-example-com }
certificateAuthority: { configMap: our-authority, key: root.pem }
networkPolicy:
  postgres: { ports: [5432, 6432], to: [{ ipBlock: { cidr: 10.20.0.0/16 } }] }
  nats: { ports: [4222, 4223] }
  dns: { to: [] }
`,
	"everything is stopped for a restore": `{ restore: stop, services: { sales: { autoscaling: { enabled: true } } } }`,
	"a restore": `
restore: catch-up
services: { webhooks: { autoscaling: { enabled: true } } }
certificateAuthority: { configMap: our-authority }
`,
	"everything": everything,
}

const everything = `
image: { repository: registry.example.com/partilha, tag: v1.4.0, pullPolicy: Always, pullSecrets: [registry] }
settings:
  LOG_LEVEL: warn
  DATABASE_POOL: 24
  NATS_REPLICAS: 3
  RATE_LIMIT: "on"
  RATE_LIMIT_PER_SECOND: 2000000
  RATE_LIMIT_BURST: 4000000
  RATE_LIMIT_IN_FLIGHT: 128
  RATE_LIMIT_LISTENERS: 64
  AUTH_FAILURES_PER_SECOND: 20
  AUTH_FAILURES_BURST: 200
  TRUSTED_PROXIES: 10.0.0.0/8,fd00::/8
  GOGC: 400
  GOMEMLIMIT: 400MiB
services:
  sales:
    secret: sales-secrets
    settings: { SALES_WRITERS: 2, DATABASE_POOL: 48 }
    resources: { requests: { cpu: 2, memory: 1Gi }, limits: { cpu: "4", memory: 1Gi } }
    autoscaling: { enabled: true }
  commissions: { secret: commissions-secrets }
  goals: { secret: goals-secrets, settings: { GOALS_PER_TENANT: 1000 } }
  webhooks:
    secret: webhooks-secrets
    settings:
      WEBHOOKS_ALLOW_HTTP: false
      WEBHOOKS_ALLOW_NETS: 10.9.0.0/16,10.10.0.0/16
      WEBHOOKS_PORTS: 443,8443,9443
      WEBHOOKS_TIMEOUT: 8s
      WEBHOOKS_LEASE: 1m
      WEBHOOKS_CONCURRENCY: 1024
      WEBHOOKS_KEEP_DAYS: 60
  front: { settings: { LOG_LEVEL: error } }
certificateAuthority: { configMap: our-authority }
tracing: { endpoint: "https://collector.observe:4318/otlp" }
ingress: { className: traefik, host: pay.example.com, tlsSecret: pay-example-com, annotations: { example.com/one: "1" } }
migrations: { deadlineSeconds: 3600 }
drain: { preStopSeconds: 10, gracePeriodSeconds: 90 }
nodeSelector: { pool: services }
tolerations: [{ key: dedicated, operator: Equal, value: payments, effect: NoSchedule }]
priorityClassName: high
networkPolicy:
  callers: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: ingress } } }, { ipBlock: { cidr: 10.1.0.0/24 } }]
  traces: { to: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: observe } } }] }
monitoring:
  serviceMonitor: true
  labels: { release: prometheus }
  rules: true
`

// withEach runs a test for every set of values.
func withEach(t *testing.T, test func(*testing.T, *rendered)) {
	for what, values := range valueSets {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			test(t, render(t, values))
		})
	}
}
