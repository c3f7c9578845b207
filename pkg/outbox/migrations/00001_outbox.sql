-- +goose Up
-- The log of what this service has told: only ever appended to, dropped by the day.
create table outbox (
    created_at  timestamptz not null,
    event_id    uuid        not null,
    name        text        not null,
    tenant_id   uuid        not null,
    body        bytea       not null, -- the envelope, byte for byte
    traceparent text        not null default '',
    primary key (created_at, event_id)
) partition by range (created_at);
alter table outbox alter column body set storage external;

-- What the stream has not acknowledged yet. A small table of its own: marking rows
-- of the log would write every envelope twice.
create table outbox_pending (
    created_at timestamptz not null,
    event_id   uuid        not null,
    repair     integer     not null default 0, -- above 0: published again under another message id
    primary key (created_at, event_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- The condition in which the owner last saw its stream.
create table outbox_stream (
    stream     text        primary key,
    server_id  text        not null,
    created    timestamptz not null,
    last_seq   bigint      not null,
    repairs    integer     not null default 0,
    checked_at timestamptz not null default now()
);
