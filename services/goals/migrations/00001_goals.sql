-- +goose Up
-- What has happened, one row for each sale, whether a goal counts it or not: a goal
-- may be made later and look back.
create table facts (
    tenant_id           uuid        not null,
    kind                text        collate "C" not null,
    source_id           uuid        not null, -- the sale
    partner_id          uuid        not null,
    campaign_id         uuid        not null,
    occurred_at         timestamptz not null, -- when it was sold, not when it was heard of
    amount_centavos     bigint      not null,
    commission_centavos bigint      not null,
    primary key (tenant_id, kind, source_id),
    constraint facts_kind check (kind = 'sale'),
    constraint facts_amount check (amount_centavos > 0),
    constraint facts_commission check (commission_centavos >= 0)
);
create index facts_by_time on facts (tenant_id, occurred_at);

create table goals (
    tenant_id       uuid        not null,
    goal_id         uuid        not null,
    name            text        not null,
    metric          text        collate "C" not null,
    target          bigint      not null, -- sales, or centavos
    period          text        collate "C" not null,
    campaign_id     uuid,                 -- null: every campaign
    partner_ids     uuid[],               -- null: every partner
    timezone        text        collate "C" not null,
    starts_at       timestamptz not null,
    ends_at         timestamptz,          -- null: never
    reward_centavos bigint,
    status          text        collate "C" not null,
    external_ref    text        collate "C",
    created_at      timestamptz not null,
    primary key (tenant_id, goal_id),
    constraint goals_metric check (metric in ('sales_count', 'sales_amount')),
    constraint goals_target check (target > 0),
    constraint goals_period check (period in ('total', 'month')),
    constraint goals_partners check (cardinality(partner_ids) > 0),
    constraint goals_window check (ends_at > starts_at),
    constraint goals_reward check (reward_centavos > 0),
    constraint goals_status check (status in ('active', 'archived'))
);
create unique index goals_external_ref on goals (tenant_id, external_ref) where external_ref is not null;
create index goals_active on goals (tenant_id) where status = 'active';

-- How far each partner has come: always the sum of the facts that the goal counts.
create table totals (
    tenant_id    uuid        not null,
    goal_id      uuid        not null,
    partner_id   uuid        not null,
    period_start timestamptz not null,
    period_end   timestamptz,          -- null: the period has no end
    progress     bigint      not null, -- sales, or centavos
    primary key (tenant_id, goal_id, partner_id, period_start),
    constraint totals_period check (period_end > period_start)
);
create index totals_best_first on totals (tenant_id, goal_id, period_start, progress desc, partner_id);

-- A row is for ever: whoever has reached a goal in a period cannot reach it again.
create table reached (
    tenant_id    uuid        not null,
    goal_id      uuid        not null,
    partner_id   uuid        not null,
    period_start timestamptz not null,
    reached_at   timestamptz not null,
    progress     bigint      not null, -- at that moment
    primary key (tenant_id, goal_id, partner_id, period_start)
);
