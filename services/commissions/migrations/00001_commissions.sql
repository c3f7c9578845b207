-- +goose Up
-- What partners have earned. A row's amount, rate and sources never change.
create table commissions (
    tenant_id                  uuid        not null,
    commission_id              uuid        not null, -- a UUIDv7 of whoever recorded the source: newest is highest
    partner_id                 uuid        not null,
    campaign_id                uuid,
    plan_id                    uuid,
    kind                       text        not null,
    source_sale_id             uuid,
    source_conversion_id       uuid,
    source_goal_id             uuid,
    base_amount_centavos       bigint,               -- null: a fixed amount, without a rate
    commission_pct_e4          integer,              -- ten-thousandths of a percent
    commission_amount_centavos bigint      not null,
    reversed_centavos          bigint      not null default 0,
    status                     text        not null,
    available_at               timestamptz not null,
    created_at                 timestamptz not null, -- of the event that earned it
    constraint commissions_pkey primary key (tenant_id, commission_id),
    constraint commissions_source_sale_key unique (tenant_id, source_sale_id),
    constraint commissions_kind check (kind in ('sale', 'conversion', 'bonus')),
    constraint commissions_status check (status in ('pending', 'available', 'paid', 'reversed')),
    constraint commissions_source check (
        (source_sale_id is not null) = (kind = 'sale')
        and (source_conversion_id is not null) = (kind = 'conversion')
        and (source_goal_id is not null) = (kind = 'bonus')),
    constraint commissions_rate check (
        (base_amount_centavos is null) = (commission_pct_e4 is null)
        and base_amount_centavos >= 0
        and commission_pct_e4 between 0 and 1000000),
    constraint commissions_amount check (commission_amount_centavos >= 0),
    constraint commissions_reversed check (reversed_centavos between 0 and commission_amount_centavos)
);
create index commissions_of_partner on commissions (tenant_id, partner_id, commission_id desc);
-- A minute of all tenants is counted: rows arrive in nearly this order.
create index commissions_by_time on commissions using brin (created_at) with (pages_per_range = 16, autosummarize = on);

-- What this service knows of each partner: the highest version that it has heard.
create table partners (
    tenant_id     uuid   not null,
    partner_id    uuid   not null,
    name          text   not null,
    referral_code text   collate "C" not null,
    status        text   not null,
    version       bigint not null, -- 0: as created
    constraint partners_pkey primary key (tenant_id, partner_id),
    constraint partners_status check (status in ('pending', 'active', 'suspended', 'banned')),
    constraint partners_version check (version >= 0)
);
