-- +goose Up
create table tenants (
    tenant_id         uuid        primary key,
    name              text        not null,
    status            text        not null check (status in ('active', 'suspended')),
    external_ref      text        collate "C" unique,
    first             json, -- what the first call was answered, where it can be repeated
    -- Grows with every change that may refuse or reprice a sale: of a partner, a campaign,
    -- a plan, a link, a key, or of the tenant itself.
    catalogue_version bigint      not null default 1,
    created_at        timestamptz not null
);

create sequence api_key_version;

create table api_keys (
    tenant_id    uuid        not null references tenants,
    api_key_id   uuid        not null,
    key_id       text        not null unique, -- the part of the key that names it
    key_hash     bytea       not null,
    name         text        not null,
    scopes       text[]      not null,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz,
    created_at   timestamptz not null,
    version      bigint      not null default nextval('api_key_version'), -- grows with every change
    primary key (tenant_id, api_key_id)
);
create index api_keys_version on api_keys (version);

create table partners (
    tenant_id     uuid        not null references tenants,
    partner_id    uuid        not null,
    referral_code text        collate "C" not null,
    name          text        not null,
    email         text,
    status        text        not null check (status in ('pending', 'active', 'suspended', 'banned')),
    external_ref  text        collate "C",
    first         json,
    version       bigint      not null default 0, -- of what partner.changed tells
    created_at    timestamptz not null,
    primary key (tenant_id, partner_id),
    constraint partners_referral_code unique (tenant_id, referral_code),
    constraint partners_external_ref unique (tenant_id, external_ref)
);
create index partners_email on partners (tenant_id, email, partner_id);
create index partners_status on partners (tenant_id, status, partner_id);

create table campaigns (
    tenant_id    uuid        not null references tenants,
    campaign_id  uuid        not null,
    name         text        not null,
    status       text        not null check (status in ('draft', 'active', 'paused', 'ended')),
    starts_at    timestamptz,
    ends_at      timestamptz check (ends_at > starts_at),
    external_ref text        collate "C",
    first        json,
    created_at   timestamptz not null,
    primary key (tenant_id, campaign_id),
    constraint campaigns_external_ref unique (tenant_id, external_ref)
);

create table plans (
    tenant_id           uuid        not null,
    plan_id             uuid        not null,
    campaign_id         uuid        not null,
    name                text        not null,
    commission_pct_e4   integer     not null check (commission_pct_e4 between 0 and 1000000),
    conversion_centavos bigint      check (conversion_centavos > 0),
    hold_days           integer     not null check (hold_days between 0 and 365),
    external_ref        text        collate "C",
    first               json,
    created_at          timestamptz not null,
    primary key (tenant_id, plan_id),
    constraint plans_external_ref unique (tenant_id, external_ref),
    foreign key (tenant_id, campaign_id) references campaigns
);
create index plans_campaign on plans (tenant_id, campaign_id, plan_id);

create table links (
    tenant_id   uuid not null,
    campaign_id uuid not null,
    partner_id  uuid not null,
    link_id     uuid not null, -- grows with time: the order in which links are listed
    primary key (tenant_id, campaign_id, partner_id),
    foreign key (tenant_id, campaign_id) references campaigns,
    foreign key (tenant_id, partner_id) references partners
);
create unique index links_order on links (tenant_id, campaign_id, link_id);

-- A sale refers to rows that are never deleted, and was decided from them under the
-- tenant's catalogue_version; foreign keys would lock those rows for every sale.
create table sales (
    tenant_id           uuid        not null,
    sale_id             uuid        not null,
    external_ref        text        collate "C" not null,
    referral_code       text        collate "C" not null,
    partner_id          uuid        not null,
    campaign_id         uuid        not null,
    plan_id             uuid        not null,
    amount_centavos     bigint      not null check (amount_centavos between 1 and 99999999999),
    commission_id       uuid        not null,
    commission_pct_e4   integer     not null,
    commission_centavos bigint      not null check (commission_centavos between 0 and amount_centavos),
    refunded_centavos   bigint      not null default 0 check (refunded_centavos between 0 and amount_centavos),
    hold_days           integer     not null,
    sold_at             timestamptz not null,
    customer_ref        text,
    notes               text,
    created_at          timestamptz not null,
    erased_at           timestamptz, -- when the customer was forgotten: it had a customer_ref, and maybe notes
    primary key (tenant_id, sale_id),
    constraint sales_external_ref unique (tenant_id, external_ref)
);

-- Every index below is written with every sale, so there are only these three, and all of
-- them in the order in which the list of sales is read: by when they were sold. In this
-- order one index serves a filter alone, a filter with a span of time, and the pages of
-- both; in the order of sale_id a span would need a further index beside each. A
-- reference finds one sale at most, whatever else is asked for, and a partner's sales in
-- one campaign are picked from the partner's: neither is worth an index more.
create index sales_sold on sales (tenant_id, sold_at, sale_id);
create index sales_partner on sales (tenant_id, partner_id, sold_at, sale_id);
create index sales_campaign on sales (tenant_id, campaign_id, sold_at, sale_id);

create table refunds (
    tenant_id                    uuid        not null,
    refund_id                    uuid        not null,
    sale_id                      uuid        not null,
    external_ref                 text        collate "C" not null,
    amount_centavos              bigint      not null check (amount_centavos > 0),
    commission_reversed_centavos bigint      not null check (commission_reversed_centavos between 0 and amount_centavos),
    reason                       text,
    created_at                   timestamptz not null,
    erased_at                    timestamptz, -- when the customer of its sale was forgotten: it may have had a reason
    primary key (tenant_id, refund_id),
    constraint refunds_external_ref unique (tenant_id, external_ref),
    foreign key (tenant_id, sale_id) references sales
);
create index refunds_sale on refunds (tenant_id, sale_id, refund_id);

-- A conversion refers to the catalogue as a sale does.
create table conversions (
    tenant_id           uuid        not null,
    conversion_id       uuid        not null,
    external_ref        text        collate "C" not null,
    type                text        not null check (type in ('lead', 'signup', 'trial', 'custom')),
    referral_code       text        collate "C" not null,
    partner_id          uuid        not null,
    campaign_id         uuid        not null,
    plan_id             uuid,
    value_centavos      bigint      check (value_centavos between 1 and 99999999999),
    commission_id       uuid,
    commission_centavos bigint      check (commission_centavos > 0),
    occurred_at         timestamptz not null,
    customer_ref        text,
    notes               text,
    created_at          timestamptz not null,
    erased_at           timestamptz, -- as of a sale
    primary key (tenant_id, conversion_id),
    constraint conversions_external_ref unique (tenant_id, external_ref),
    constraint conversions_commission check ((commission_id is null) = (commission_centavos is null) and (commission_id is null or plan_id is not null))
);
create index conversions_partner on conversions (tenant_id, partner_id, conversion_id);
create index conversions_campaign on conversions (tenant_id, campaign_id, conversion_id);
create index conversions_type on conversions (tenant_id, type, conversion_id);
