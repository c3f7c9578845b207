-- +goose Up
-- One row for each tenant that has an event or an endpoint. Whoever changes what a
-- tenant's events are or where they go holds its row, so that the feed has no gaps
-- and an endpoint hears all that happens after it was made.
create table tenants (
    tenant_id       uuid   primary key,
    position        bigint not null default 0, -- of the tenant's newest event in the feed
    newest_event_id uuid,                      -- a place to read on from however long ago it was; null: there has been none
    newest_at       timestamptz,               -- its created_at
    -- The newest before the last silence that outlasted retention: who had read all by
    -- then goes on from it.
    quiet_event_id  uuid,
    quiet_position  bigint,
    constraint tenants_position check (position >= 0),
    constraint tenants_quiet check ((quiet_event_id is null) = (quiet_position is null))
);

create table endpoints (
    tenant_id              uuid        not null,
    endpoint_id            uuid        not null,
    url                    text        not null,
    events                 text[]      collate "C" not null, -- names, and * for the usual ones
    description            text,
    max_attempts           smallint    not null default 1, -- of each delivery; 1: sent once, and never again by itself
    standard_webhooks      boolean     not null default false,
    filter_partner_ids     uuid[],               -- null: events of every partner
    filter_campaign_ids    uuid[],               -- null: events of every campaign
    filter_amount_centavos bigint,               -- null: events of every amount
    secret                 bytea,                -- sealed; null once deleted
    previous_secret        bytea,                -- sealed; signs beside the secret
    previous_until         timestamptz,          -- and until when, by the database's clock
    disabled_reason        text,                 -- null: it is enabled
    failing_since          timestamptz,          -- when the first attempt failed since the last one that did not
    created_at             timestamptz not null, -- it hears nothing from before
    -- After its database was restored an installation no longer knows what it has sent
    -- since: an endpoint hears nothing again of what happened up to this moment.
    restored_at            timestamptz,
    deleted_at             timestamptz,          -- the row stays, for the history of its deliveries
    primary key (tenant_id, endpoint_id),
    constraint endpoints_events check (cardinality(events) > 0),
    constraint endpoints_max_attempts check (max_attempts between 1 and 20),
    constraint endpoints_filter check (cardinality(filter_partner_ids) > 0 and cardinality(filter_campaign_ids) > 0 and filter_amount_centavos > 0),
    constraint endpoints_secret check ((secret is null) = (deleted_at is not null)),
    constraint endpoints_previous check ((previous_secret is null) = (previous_until is null) and (secret is not null or previous_secret is null))
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
create index events_of_name on events (tenant_id, name, position); -- the feed of some kinds of events
-- A minute of all tenants is counted: rows arrive in nearly this order.
create index events_by_time on events using brin (created_at) with (pages_per_range = 16, autosummarize = on);

-- What the events of a UTC day come to, kept in the transaction that keeps the events.
create table day_totals (
    tenant_id uuid        not null,
    day       timestamptz not null, -- its beginning
    name      text        collate "C" not null, -- of the events
    member    text        collate "C" not null, -- what is summed; '' is how many events there are
    total     bigint      not null, -- centavos, or events
    primary key (tenant_id, day, name, member)
) partition by range (day);

-- What is still to be sent, or just being sent: one row for each event and each endpoint
-- that wanted it, until it has an outcome. While all is well this table is nearly empty,
-- so that what is written at every step stays small however long the history is.
create table pending (
    tenant_id   uuid        not null,
    endpoint_id uuid        not null,
    delivery_id uuid        not null, -- of the event's time, and made from event and endpoint
    created_at  timestamptz not null, -- of the event
    event_id    uuid        not null,
    name        text        collate "C" not null, -- of the event
    claim       uuid,                 -- whose attempt it is: nobody else records its outcome
    claimed_at  timestamptz,          -- by the database's clock
    attempts    smallint    not null default 0, -- that were made and have come to nothing
    allowed     smallint    not null default 1, -- as its endpoint said when it was last claimed
    due_at      timestamptz,          -- of the next attempt, by the database's clock; null: of the first
    queued_at   timestamptz not null default now(), -- when it was made, or somebody had it sent again
    primary key (tenant_id, endpoint_id, delivery_id),
    constraint pending_claim check ((claim is null) = (claimed_at is null)),
    constraint pending_due check ((due_at is null) = (attempts = 0))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_analyze_scale_factor = 0.5);
create index pending_claimed on pending (claimed_at) where claim is not null;

-- What waits for its first attempt, in the order of its events, and apart from it what
-- waits for another: however much that is, nobody who looks for the one reads the other.
create index pending_first on pending (tenant_id, endpoint_id, delivery_id) where claim is null and due_at is null;
create index pending_again on pending (tenant_id, endpoint_id, due_at) where claim is null and due_at is not null;

-- What became of it. A row is written once it has ended, under the same id.
create table deliveries (
    tenant_id   uuid        not null,
    delivery_id uuid        not null,
    created_at  timestamptz not null, -- of the event
    event_id    uuid        not null,
    endpoint_id uuid        not null,
    name        text        collate "C" not null, -- of the event
    state       text        collate "C" not null,
    reason      text        collate "C", -- why it was skipped; null for whatever was not
    primary key (tenant_id, delivery_id, created_at),
    constraint deliveries_state check (state in ('delivered', 'failed', 'unknown', 'skipped')),
    constraint deliveries_reason check ((reason is null) = (state <> 'skipped'))
) partition by range (created_at);

-- What a list of deliveries is narrowed to. While all is well nearly everything is
-- delivered, so that the indexes of all else are nearly empty.
create index deliveries_of_endpoint on deliveries (tenant_id, endpoint_id, delivery_id);
create index deliveries_of_event on deliveries (tenant_id, name, delivery_id);
create index deliveries_undelivered on deliveries (tenant_id, state, delivery_id) where state <> 'delivered';
create index deliveries_undelivered_of_endpoint on deliveries (tenant_id, endpoint_id, state, delivery_id) where state <> 'delivered';

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
    url              text,                 -- that it was sent to; null: the worker died, and nobody knows
    signature        text,                 -- its value, and each further header on a line of its own; null: the worker died
    primary key (tenant_id, delivery_id, created_at, claim),
    constraint attempts_duration check (duration_ms >= 0),
    constraint attempts_url check (url is not null or duration_ms is null)
) partition by range (created_at);

-- Deliveries that somebody asked to send again, in the order of their ids.
create table replays (
    tenant_id   uuid        not null,
    replay_id   uuid        not null,
    endpoint_id uuid        not null,
    from_time   timestamptz not null, -- of the events
    to_time     timestamptz not null, -- not included
    statuses    text[]      collate "C" not null,
    filtered    boolean     not null, -- also what the endpoint's filter kept away, where skipped is among them
    events      text[]      collate "C", -- names; null: all
    reached     uuid        not null, -- everything up to this delivery has been looked at
    done        bigint      not null default 0, -- how many were queued again
    total       bigint,               -- how many there were at the beginning; null: too many to be counted
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
