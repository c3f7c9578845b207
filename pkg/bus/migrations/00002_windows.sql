-- +goose Up
-- What the owners of streams say that they have made known, as far as a consumer hears
-- it, and whether the consumer has as much.
create table windows (
    consumer            text        not null,
    started_at          timestamptz not null,
    ended_at            timestamptz not null,
    stream              text        not null,
    counted_at          timestamptz not null, -- of two counts the later one holds
    heard_at            timestamptz not null default now(),
    events              bigint      not null,
    centavos            bigint      not null, -- of amount_brl
    commission_centavos bigint      not null, -- of commission_amount_brl
    checked_at          timestamptz,          -- null: never
    agrees              boolean     not null default false,
    differs             boolean     not null default false, -- though its time of grace is over
    difference          text        not null default '',    -- in words, unless it agrees
    primary key (consumer, started_at)
);
create index windows_open on windows (heard_at) where not agrees;
create index windows_by_check on windows (checked_at) where agrees;

-- A parked event is a difference that is known, and so is one that was dropped, which
-- keeps its row without what it told.
alter table parked_events
    add column created_at timestamptz, -- of the event; null: it has none, or was parked before it was noted
    add column dropped_at timestamptz;
