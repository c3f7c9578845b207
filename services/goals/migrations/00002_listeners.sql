-- +goose Up
-- Which goals somebody listens to. While a goal stands here, every change of its totals
-- leaves a row in changes; of all others counting leaves none.
create table listened (
    tenant_id  uuid        not null,
    goal_id    uuid        not null,
    until      timestamptz not null, -- whoever listens moves it on
    since      bigint,               -- the first transaction from which on no change is missing; null: not yet known
    primary key (tenant_id, goal_id)
);

-- What has changed lately: the places, not their values. xid is the transaction.
create table changes (
    tenant_id    uuid        not null,
    goal_id      uuid        not null,
    xid          bigint      not null,
    partner_id   uuid        not null,
    period_start timestamptz not null,
    changed_at   timestamptz not null,
    primary key (tenant_id, goal_id, xid, partner_id, period_start)
);
create index changes_by_age on changes (changed_at);
