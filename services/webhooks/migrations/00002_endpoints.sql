-- +goose Up
alter table endpoints
    add column max_attempts           smallint not null default 1,
    add column standard_webhooks      boolean  not null default false,
    add column filter_partner_ids     uuid[],      -- null: events of every partner
    add column filter_campaign_ids    uuid[],      -- null: events of every campaign
    add column filter_amount_centavos bigint,      -- null: events of every amount
    add column previous_secret        bytea,       -- sealed; signs beside the secret
    add column previous_until         timestamptz, -- and until when, by the database's clock
    add constraint endpoints_max_attempts check (max_attempts between 1 and 20),
    add constraint endpoints_filter check (cardinality(filter_partner_ids) > 0 and cardinality(filter_campaign_ids) > 0 and filter_amount_centavos > 0),
    add constraint endpoints_previous check ((previous_secret is null) = (previous_until is null) and (secret is not null or previous_secret is null));

-- Why nothing was sent; null for whatever was.
alter table deliveries add column reason text collate "C";
