-- +goose Up
create table receipts (
    created_at timestamptz not null, -- of the event: a redelivery falls into the same day
    event_id   uuid        not null,
    consumer   text        not null,
    primary key (created_at, event_id, consumer)
) partition by range (created_at);

create table parked_events (
    consumer   text        not null,
    event_id   uuid        not null,
    name       text        not null,
    tenant_id  uuid        not null,
    body       bytea       not null,
    traceparent text       not null default '',
    reason     text        not null,
    times      integer     not null default 1,
    parked_at  timestamptz not null default now(),
    primary key (consumer, event_id)
);
