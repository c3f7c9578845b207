package main

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/services/webhooks"
)

// hook is an endpoint to be registered.
type hook struct {
	tenant int // its number
	url    string
	event  string // that it chooses
}

// registerHooks makes a fresh database of the webhooks service, in which so many tenants
// have these endpoints.
func registerHooks(ctx context.Context, g *ground, tenants []uuid.UUID, hooks []hook) error {
	if err := g.fresh(ctx, webhooksDatabase); err != nil {
		return err
	}
	address := g.postgres.URL(webhooksDatabase)
	if err := postgres.Migrate(ctx, address, webhooks.Migrations...); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	keys := make([]string, len(tenants))
	for i, tenant := range tenants {
		text, keyID, hash, err := auth.NewSecret()
		if err != nil {
			return err
		}
		const know = `insert into known_keys (key_id, key_hash, tenant_id, suspended, scopes, version) values ($1, $2, $3, false, $4, 1)`
		if _, err := conn.Exec(ctx, know, keyID, hash[:], tenant, auth.AllScopes.Strings()); err != nil {
			return err
		}
		keys[i] = text
	}
	c, err := startChild(g, assignment{Role: roleWebhooks, DatabaseURL: address})
	if err != nil {
		return err
	}
	for _, h := range hooks {
		s := &shop{address: c.Address, key: keys[h.tenant]}
		if err := s.call(ctx, s.key, "POST", "/api/v1/webhook-endpoints", object{"url": h.url, "events": []string{h.event}}, nil); err != nil {
			return errors.Join(err, c.stop())
		}
	}
	return errors.Join(c.stop(), c.discard())
}

func newTenants(n int) []uuid.UUID {
	tenants := make([]uuid.UUID, n)
	for i := range tenants {
		tenants[i] = uuid.New()
	}
	return tenants
}

// Spread evenly over the endpoints that have chosen the event, one for each twentieth of a
// millisecond up to now.
const fillHooksStatement = `
with made as (
	select p.tenant_id, p.endpoint_id, n, gen_random_uuid() as event_id,
		date_trunc('milliseconds', now()) - ($2::bigint - n) / 20 * interval '1 ms' as created_at
	from (select tenant_id, endpoint_id, row_number() over (order by endpoint_id) - 1 as place, count(*) over () as endpoints
		from endpoints where $3 = any(events)) p
	join generate_series(1, $2::bigint) n on n % p.endpoints = p.place),
told as (
	insert into events (tenant_id, event_id, name, created_at, position, body)
	select tenant_id, event_id, $3, created_at, n, $1 from made)
insert into pending (tenant_id, endpoint_id, delivery_id, created_at, event_id, name)
select tenant_id, endpoint_id, (lpad(to_hex((extract(epoch from created_at) * 1000)::bigint), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
	created_at, event_id, $3 from made`

// fillHooks makes a backlog of the event for those who have chosen it.
func fillHooks(ctx context.Context, g *ground, name string, backlog int64) error {
	return g.load(ctx, webhooksDatabase, []string{"pending", "events"}, loading{fillHooksStatement, []any{deliveryBody, backlog, name}})
}

// fillWebhooks makes a fresh database of the webhooks service with an endpoint for each
// URL and a backlog that is spread evenly over them.
func fillWebhooks(ctx context.Context, g *ground, urls []string, backlog int64) error {
	hooks := make([]hook, len(urls))
	for i, url := range urls {
		hooks[i] = hook{i / endpointsOfTenant, url, event.NameCommissionAvailable}
	}
	tenants := newTenants((len(urls) + endpointsOfTenant - 1) / endpointsOfTenant)
	if err := registerHooks(ctx, g, tenants, hooks); err != nil {
		return err
	}
	return fillHooks(ctx, g, event.NameCommissionAvailable, backlog)
}

// deliveryBody is what is posted: an event as long as the usual ones.
var deliveryBody = []byte(`{"event":"commission.available","event_id":"evt_67d35554c1f60638d6d72a0edc045450","created_at":"2026-07-14T13:05:09.120431Z",` +
	`"tenant_id":"019f60b1-3400-7e63-82b7-095b0bf32c26","data":{"commission_id":"019f60bb-3400-708f-8271-887ce94707da",` +
	`"partner_id":"019f60b3-3400-75c6-82e0-91b8c0565f1b","amount_brl":32.42,"source_sale_id":"019f60bb-3400-78de-80b3-c47f112c5974",` +
	`"campaign_id":"019f60b5-3400-76b2-83c0-d5f35d1b11f9","source_conversion_id":null,"kind":"sale","status":"available","available_at":"2026-07-14T13:05:09.120431Z"}}`)
