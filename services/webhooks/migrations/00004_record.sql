-- +goose Up
-- The newest event of the feed is a place to read on from however long ago it was.
alter table tenants add column newest_event_id uuid; -- null: there has been none

-- The feed of some kinds of events.
create index events_of_name on events (tenant_id, name, position);

-- What the events of a UTC day come to, kept in the transaction that keeps the events.
create table day_totals (
    tenant_id uuid        not null,
    day       timestamptz not null, -- its beginning
    name      text        collate "C" not null, -- of the events
    member    text        collate "C" not null, -- what is summed; '' is how many events there are
    total     bigint      not null, -- centavos, or events
    primary key (tenant_id, day, name, member)
) partition by range (day);

-- What a list of deliveries is narrowed to. While all is well nearly everything is
-- delivered, so that the indexes of all else are nearly empty.
alter table pending add column name text collate "C" not null; -- of the event
alter table deliveries add column name text collate "C" not null;
create index deliveries_of_event on deliveries (tenant_id, name, delivery_id);
create index deliveries_undelivered on deliveries (tenant_id, state, delivery_id) where state <> 'delivered';
create index deliveries_undelivered_of_endpoint on deliveries (tenant_id, endpoint_id, state, delivery_id) where state <> 'delivered';

-- Deliveries that somebody asked to send again, in the order of their ids.
create table replays (
    tenant_id   uuid        not null,
    replay_id   uuid        not null,
    endpoint_id uuid        not null,
    from_time   timestamptz not null, -- of the events
    to_time     timestamptz not null, -- not included
    statuses    text[]      collate "C" not null,
    events      text[]      collate "C", -- names; null: all
    reached     uuid        not null, -- everything up to this delivery has been looked at
    done        bigint      not null default 0, -- how many were queued again
    total       bigint      not null, -- how many there were at the beginning
    state       text        collate "C" not null default 'running',
    created_at  timestamptz not null,
    ended_at    timestamptz,
    primary key (tenant_id, replay_id),
    constraint replays_window check (from_time < to_time),
    constraint replays_state check (state in ('running', 'done', 'stopped')),
    constraint replays_ended check ((state = 'running') = (ended_at is null))
);
create index replays_of_endpoint on replays (tenant_id, endpoint_id, replay_id);
create index replays_running on replays (replay_id) where state = 'running';

-- After its database was restored an installation no longer knows what it has sent
-- since: an endpoint hears nothing again of what happened up to this moment.
alter table endpoints add column restored_at timestamptz;
