-- +goose Up
-- No commission may slip in between the reading and the booking of those that are there.
lock table commissions in share row exclusive mode;

-- What each partner has, and in which state: one row a partner, written with every
-- transfer in the same transaction. Whoever changes anything of a partner's money or
-- commissions holds this row, and takes several in the order of the key.
-- The tenant's own account, expense, has no row, on which all its partners would wait
-- for each other: it is the sum of the transfers from and to it.
create table accounts (
    tenant_id          uuid        not null,
    partner_id         uuid        not null,
    pending_centavos   bigint      not null default 0, -- earned, and held back
    available_centavos bigint      not null default 0, -- free to withdraw
    reserved_centavos  bigint      not null default 0, -- asked for, and not yet paid
    paid_centavos      bigint      not null default 0, -- paid out, ever
    debt_centavos      bigint      not null default 0, -- taken back beyond what was available: the partner owes it
    posted_at          timestamptz,                    -- of the partner's last transfer; null: there is none
    constraint accounts_pkey primary key (tenant_id, partner_id),
    constraint accounts_pending check (pending_centavos >= 0),
    constraint accounts_available check (available_centavos >= 0),
    constraint accounts_reserved check (reserved_centavos >= 0),
    constraint accounts_paid check (paid_centavos >= 0),
    constraint accounts_debt check (debt_centavos >= 0),
    constraint accounts_repaid check (available_centavos = 0 or debt_centavos = 0)
);

-- Every movement of money, for ever. The order of a partner's transfers is that of
-- posted_at, which no two of them share; each carries what the partner's accounts were
-- once it was made, so that a statement can begin anywhere.
create table transfers (
    tenant_id          uuid        not null,
    partner_id         uuid        not null,
    posted_at          timestamptz not null,
    kind               text        not null,
    reference          uuid        not null, -- the commission, refund or withdrawal that moved it
    commission_id      uuid,                 -- whose money it is; null: not that of one commission
    from_account       text        not null,
    to_account         text        not null,
    amount_centavos    bigint      not null,
    pending_centavos   bigint      not null, -- the accounts afterwards
    available_centavos bigint      not null,
    reserved_centavos  bigint      not null,
    paid_centavos      bigint      not null,
    debt_centavos      bigint      not null,
    constraint transfers_pkey primary key (tenant_id, partner_id, posted_at),
    constraint transfers_once unique (tenant_id, kind, reference),
    constraint transfers_amount check (amount_centavos > 0),
    constraint transfers_way check (case kind
        when 'commission' then from_account = 'expense' and to_account in ('pending', 'available')
        when 'release' then from_account = 'pending' and to_account = 'available'
        when 'reversal' then from_account in ('pending', 'available') and to_account = 'expense'
        when 'reversal_debt' then from_account = 'debt' and to_account = 'expense'
        when 'repayment' then from_account = 'available' and to_account = 'debt'
        when 'withdrawal' then from_account = 'available' and to_account = 'reserved'
        when 'withdrawal_paid' then from_account = 'reserved' and to_account = 'paid'
        when 'withdrawal_returned' then from_account = 'reserved' and to_account = 'available'
        else false end)
);

-- +goose StatementBegin
create function keep_transfers() returns trigger language plpgsql as $$
begin
    raise exception 'a transfer is never changed or removed: % of %', tg_op, tg_table_name using errcode = 'restrict_violation';
end $$;
-- +goose StatementEnd
create trigger transfers_are_final before update or delete or truncate on transfers
    for each statement execute function keep_transfers();

-- The commissions that are held back, in the order in which their time comes. Whoever
-- takes a row releases its commission in the same transaction.
create table holds (
    available_at  timestamptz not null,
    tenant_id     uuid        not null,
    commission_id uuid        not null,
    partner_id    uuid        not null,
    constraint holds_pkey primary key (available_at, tenant_id, commission_id)
);

-- The list of commissions stands in the order in which they were earned.
drop index commissions_of_partner;
create index commissions_of_tenant on commissions (tenant_id, created_at desc, commission_id desc);
create index commissions_of_partner on commissions (tenant_id, partner_id, created_at desc, commission_id desc);
create index commissions_of_campaign on commissions (tenant_id, campaign_id, created_at desc, commission_id desc);
create index commissions_of_status on commissions (tenant_id, status, created_at desc, commission_id desc);
create unique index commissions_source_conversion_key on commissions (tenant_id, source_conversion_id)
    where source_conversion_id is not null;

-- Each commission that is there was earned once: one transfer into the account of its
-- status. Where two of a partner were earned at the same instant, the later one counts
-- as posted a microsecond after the one before.
insert into transfers (tenant_id, partner_id, posted_at, kind, reference, commission_id, from_account, to_account, amount_centavos,
    pending_centavos, available_centavos, reserved_centavos, paid_centavos, debt_centavos)
select tenant_id, partner_id,
    max(created_at - place * interval '1 microsecond') over earlier + place * interval '1 microsecond',
    'commission', commission_id, commission_id, 'expense', account, amount,
    coalesce(sum(amount) filter (where account = 'pending') over earlier, 0),
    coalesce(sum(amount) filter (where account = 'available') over earlier, 0), 0, 0, 0
from (
    select tenant_id, partner_id, commission_id, created_at, commission_amount_centavos as amount,
        case status when 'pending' then 'pending' else 'available' end as account,
        row_number() over (partition by tenant_id, partner_id order by created_at, commission_id) as place
    from commissions where commission_amount_centavos > 0) earned
window earlier as (partition by tenant_id, partner_id order by place);

insert into accounts (tenant_id, partner_id, pending_centavos, available_centavos, posted_at)
select c.tenant_id, c.partner_id,
    coalesce(sum(t.amount_centavos) filter (where t.to_account = 'pending'), 0),
    coalesce(sum(t.amount_centavos) filter (where t.to_account = 'available'), 0), max(t.posted_at)
from commissions c
left join transfers t on t.tenant_id = c.tenant_id and t.kind = 'commission' and t.reference = c.commission_id
group by c.tenant_id, c.partner_id;

insert into holds (available_at, tenant_id, commission_id, partner_id)
select available_at, tenant_id, commission_id, partner_id from commissions where status = 'pending';
