-- +goose Up
alter table outbox_stream
    add column first_seq bigint not null default 1,
    -- Every server process that the stream was seen on: the replicas of a service may
    -- speak to different members of one cluster.
    add column servers text[] not null default '{}';
update outbox_stream set servers = array[server_id];
alter table outbox_stream drop column server_id;

-- That events which had waited were published, and the age of the oldest: what a
-- server loses with its last minute is what was published then, not what was made.
create table outbox_drained (
    drained_at timestamptz not null default now(),
    oldest     timestamptz not null -- created_at
);
