-- +goose Up
-- One row for each tenant that has an event or an endpoint. Whoever changes what a
-- tenant's events are or where they go holds its row, so that the feed has no gaps
-- and an endpoint hears all that happens after it was made.
create table tenants (
    tenant_id uuid   primary key,
    position  bigint not null default 0, -- of the tenant's newest event in the feed
    constraint tenants_position check (position >= 0)
);

create table endpoints (
    tenant_id       uuid        not null,
    endpoint_id     uuid        not null,
    url             text        not null,
    events          text[]      collate "C" not null, -- names, and * for the usual ones
    description     text,
    secret          bytea,                -- sealed; null once deleted
    disabled_reason text,                 -- null: it is enabled
    created_at      timestamptz not null, -- it hears nothing from before
    deleted_at      timestamptz,          -- the row stays, for the history of its deliveries
    primary key (tenant_id, endpoint_id),
    constraint endpoints_events check (cardinality(events) > 0),
    constraint endpoints_secret check ((secret is null) = (deleted_at is not null))
);
create index endpoints_live on endpoints (tenant_id, endpoint_id) where deleted_at is null;

-- Every event of a tenant, delivered or not, for as long as its deliveries are kept.
create table events (
    tenant_id   uuid        not null,
    event_id    uuid        not null,
    name        text        collate "C" not null,
    created_at  timestamptz not null,
    position    bigint      not null, -- 1, 2, 3 … in each tenant, never changed
    body        bytea       not null, -- the envelope, byte for byte
    traceparent text        not null default '',
    primary key (tenant_id, event_id, created_at),
    constraint events_position unique (tenant_id, position, created_at)
) partition by range (created_at);
alter table events alter column body set storage external;

-- What is still to be sent, or just being sent: one row for each event and each endpoint
-- that wanted it, until it has an outcome. While all is well this table is nearly empty,
-- so that what is written at every step stays small however long the history is.
create table pending (
    tenant_id   uuid        not null,
    endpoint_id uuid        not null,
    delivery_id uuid        not null, -- of the event's time, and made from event and endpoint
    created_at  timestamptz not null, -- of the event
    event_id    uuid        not null,
    claim       uuid,                 -- whose attempt it is: nobody else records its outcome
    claimed_at  timestamptz,          -- by the database's clock
    primary key (tenant_id, endpoint_id, delivery_id),
    constraint pending_claim check ((claim is null) = (claimed_at is null))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_analyze_scale_factor = 0.5);
create index pending_claimed on pending (claimed_at) where claim is not null;

-- What became of it. A row is written once it has ended, under the same id.
create table deliveries (
    tenant_id   uuid        not null,
    delivery_id uuid        not null,
    created_at  timestamptz not null, -- of the event
    event_id    uuid        not null,
    endpoint_id uuid        not null,
    state       text        collate "C" not null,
    primary key (tenant_id, delivery_id, created_at),
    constraint deliveries_state check (state in ('delivered', 'failed', 'unknown', 'skipped'))
) partition by range (created_at);
create index deliveries_of_endpoint on deliveries (tenant_id, endpoint_id, delivery_id);

-- What was tried, and what came of it.
create table attempts (
    tenant_id        uuid        not null,
    delivery_id      uuid        not null,
    created_at       timestamptz not null, -- of the event
    claim            uuid        not null,
    at               timestamptz not null, -- when it began
    duration_ms      integer,              -- null: the worker died
    status_code      smallint,             -- null: no response
    error            text        collate "C",
    response_excerpt text,
    url              text        not null,
    signature        text,                 -- null: the worker died
    primary key (tenant_id, delivery_id, created_at, claim),
    constraint attempts_duration check (duration_ms >= 0)
) partition by range (created_at);
