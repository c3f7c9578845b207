-- +goose Up
-- Numbers facts in an order that agrees with the tenant's lock: whatever was committed
-- before somebody held the tenant has a lower number than he draws, whatever is
-- recorded after him a higher one.
create sequence recordings;

-- What has happened, one row for each sale, refund and conversion, whether a goal counts
-- it or not: a goal may be made later and look back. Its key is the order in which it
-- does so. A fact's time never changes, so no fact can be there twice.
create table facts (
    tenant_id           uuid        not null,
    occurred_at         timestamptz not null, -- when it was sold, also for a refund; not when it was heard of
    kind                text        collate "C" not null,
    source_id           uuid        not null, -- the sale, refund or conversion
    partner_id          uuid        not null,
    campaign_id         uuid        not null,
    sales               smallint    not null, -- what it adds to each metric
    amount_centavos     bigint      not null,
    commission_centavos bigint      not null,
    conversions         smallint    not null,
    recorded            bigint      not null default nextval('recordings'),
    primary key (tenant_id, occurred_at, kind, source_id),
    constraint facts_kind check (kind in ('sale', 'refund', 'conversion')),
    constraint facts_sale check (kind <> 'sale' or sales = 1 and amount_centavos > 0 and commission_centavos >= 0 and conversions = 0),
    constraint facts_refund check (kind <> 'refund' or sales in (-1, 0) and amount_centavos < 0 and commission_centavos <= 0 and conversions = 0),
    constraint facts_conversion check (kind <> 'conversion' or sales = 0 and amount_centavos = 0 and commission_centavos >= 0 and conversions = 1)
);

create table goals (
    tenant_id       uuid        not null,
    goal_id         uuid        not null,
    name            text        not null,
    metric          text        collate "C" not null,
    target          bigint      not null, -- sales, conversions, or centavos
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
    origin          timestamptz not null, -- starts_at when it was made: names the one period of a goal in all
    rested_from     bigint,               -- the last recording that an archived goal has counted
    past_done       bigint,               -- facts of the past that have been counted; null: nothing is left to do
    past_total      bigint,               -- and how many there are, about
    past_rough      boolean     not null default false, -- there may be far more: they are still to be counted
    settled         boolean     not null, -- its totals are complete: whoever comes up to the target has reached it
    judged_partner  uuid,                 -- the last total that was judged since the past was counted
    judged_start    timestamptz,
    first           bytea,                -- what the call with this external_ref was answered
    primary key (tenant_id, goal_id),
    constraint goals_metric check (metric in ('sales_count', 'sales_amount', 'commission_amount', 'conversions_count')),
    constraint goals_target check (target > 0),
    constraint goals_period check (period in ('total', 'day', 'week', 'month', 'quarter', 'year')),
    constraint goals_partners check (cardinality(partner_ids) > 0),
    constraint goals_window check (ends_at > starts_at),
    constraint goals_reward check (reward_centavos > 0),
    constraint goals_status check (status in ('active', 'archived')),
    constraint goals_rest check ((status = 'archived') = (rested_from is not null)),
    constraint goals_past check ((past_done is null) = (past_total is null) and (settled or past_total is not null) and (past_total is not null or not past_rough)),
    constraint goals_judged check ((judged_partner is null) = (judged_start is null)),
    constraint goals_first check ((external_ref is null) = (first is null))
);
create unique index goals_external_ref on goals (tenant_id, external_ref) where external_ref is not null;
create index goals_active on goals (tenant_id) where status = 'active';
create index goals_behind on goals (tenant_id, goal_id) where past_total is not null;

-- What goals have still to count of the past: one row for each stretch of time.
create table stretches (
    tenant_id      uuid        not null,
    goal_id        uuid        not null,
    number         bigint      generated always as identity, -- they are worked off in this order
    sign           smallint    not null, -- 1: its facts are added; -1: they are taken out again
    since          timestamptz not null,
    until          timestamptz,          -- null: for ever
    recorded_after bigint      not null, -- only facts that were recorded after this one
    recorded_until bigint      not null, -- and not after this one; later ones were counted at once
    read_at        timestamptz not null, -- the key of the last fact that has been read
    read_kind      text        collate "C" not null,
    read_source    uuid        not null,
    primary key (tenant_id, goal_id, number),
    constraint stretches_sign check (sign in (1, -1)),
    constraint stretches_window check (until > since),
    constraint stretches_recorded check (recorded_until > recorded_after)
);

-- How far each partner has come: the sum of the facts that the goal counts, once it is
-- settled.
create table totals (
    tenant_id    uuid        not null,
    goal_id      uuid        not null,
    partner_id   uuid        not null,
    period_start timestamptz not null,
    period_end   timestamptz,          -- null: the goal has one period, which ends with it
    progress     bigint      not null, -- sales, conversions, or centavos; below 0 while a refund is ahead of its sale, or a past is being counted
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

-- Goals that are gone, and whose totals are not yet.
create table leftovers (
    tenant_id uuid not null,
    goal_id   uuid not null,
    primary key (tenant_id, goal_id)
);
