-- +goose Up
alter table outbox_stream
    -- Every event made before was seen on the stream, event by event, or waited to be
    -- published; since when that is to be looked at once more; and how often it was
    -- suspected to be necessary, ever.
    add column compared_until timestamptz not null default now(),
    add column suspect_since  timestamptz, -- null: nothing is suspected
    add column suspicions     bigint      not null default 0,
    add column compared_at    timestamptz, -- null: never
    add column holes          integer     not null default 0,
    add column missed         bigint      not null default 0; -- events that a comparison found missing, ever

-- The windows of which something was published since they were counted.
create table outbox_uncounted (
    started_at timestamptz primary key
);

-- The windows that were told, as they were told last.
create table outbox_windows (
    started_at timestamptz primary key,
    counted_at timestamptz not null,
    events     jsonb       not null
);
