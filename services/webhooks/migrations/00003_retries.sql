-- +goose Up
alter table endpoints
    -- Of each delivery. 1: sent once, and never again by itself.
    add column if not exists max_attempts smallint not null default 1,
    -- When the first attempt failed since the last one that did not.
    add column failing_since timestamptz;

alter table pending
    add column attempts smallint not null default 0, -- that were made and have come to nothing
    add column allowed  smallint not null default 1, -- as its endpoint said when it was last claimed
    add column due_at   timestamptz,                 -- of the next attempt, by the database's clock; null: of the first
    add constraint pending_due check ((due_at is null) = (attempts = 0));

-- What waits for its first attempt, in the order of its events, and apart from it what
-- waits for another: however much that is, nobody who looks for the one reads the other.
create index pending_first on pending (tenant_id, endpoint_id, delivery_id) where claim is null and due_at is null;
create index pending_again on pending (tenant_id, endpoint_id, due_at) where claim is null and due_at is not null;

alter table deliveries add column reason text collate "C"; -- why it was skipped
