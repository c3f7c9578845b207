-- +goose Up
-- What partners have asked to be paid. Amount and key never change; the status only goes
-- forward, while the partner's row in accounts is locked.
create table withdrawals (
    tenant_id       uuid        not null,
    withdrawal_id   uuid        not null, -- a UUIDv7: newest is highest
    external_ref    text        collate "C" not null,
    partner_id      uuid        not null,
    amount_centavos bigint      not null,
    pix_key_type    text        not null,
    pix_key         bytea       not null, -- sealed, and bound to the tenant and the withdrawal
    pix_key_masked  text        not null, -- as anybody may see it
    status          text        not null,
    reason          text,                 -- of the last change
    failure_code    text,
    end_to_end_id   text,                 -- of the payment, as the bank knows it
    paid_at         timestamptz,
    requested_at    timestamptz not null,
    changed_at      timestamptz not null, -- of the last change of the status
    constraint withdrawals_pkey primary key (tenant_id, withdrawal_id),
    constraint withdrawals_external_ref_key unique (tenant_id, external_ref),
    constraint withdrawals_amount check (amount_centavos > 0),
    constraint withdrawals_key_type check (pix_key_type in ('cpf', 'cnpj', 'phone', 'email', 'evp')),
    constraint withdrawals_status check (status in ('requested', 'approved', 'paid', 'rejected', 'cancelled', 'failed')),
    constraint withdrawals_paid check ((status = 'paid') = (paid_at is not null) and (end_to_end_id is null or status = 'paid')),
    constraint withdrawals_failed check (failure_code is null or status = 'failed'),
    constraint withdrawals_reason check (reason is not null or status not in ('rejected', 'failed'))
);
create index withdrawals_of_tenant on withdrawals (tenant_id, requested_at desc, withdrawal_id desc);
create index withdrawals_of_partner on withdrawals (tenant_id, partner_id, requested_at desc, withdrawal_id desc);
create index withdrawals_of_status on withdrawals (tenant_id, status, requested_at desc, withdrawal_id desc);
create unique index withdrawals_end_to_end_key on withdrawals (tenant_id, end_to_end_id) -- a payment is that of one
    where end_to_end_id is not null;
create index withdrawals_of_seal on withdrawals (substring(pix_key for 4)); -- which names the key that sealed it

-- The states that each withdrawal has been in. It enters none twice.
create table withdrawal_states (
    tenant_id     uuid        not null,
    withdrawal_id uuid        not null,
    changed_at    timestamptz not null, -- later than that of the state before
    status        text        not null,
    reason        text,
    failure_code  text,
    key_id        text        not null, -- the API key with which it was brought about
    constraint withdrawal_states_pkey primary key (tenant_id, withdrawal_id, changed_at),
    constraint withdrawal_states_once unique (tenant_id, withdrawal_id, status)
);

-- Partners are also named by their codes.
create index partners_of_code on partners (tenant_id, referral_code);

-- What was paid out covers the partner's commissions, the oldest first. What does not
-- cover a whole one yet is uncovered: it is what was paid, less what paid commissions are
-- worth. Where that may suffice for one more, covering is due.
alter table accounts
    add column uncovered_centavos bigint  not null default 0,
    add column covering_due       boolean not null default false,
    add constraint accounts_uncovered check (uncovered_centavos >= 0);
create index accounts_to_cover on accounts (tenant_id, partner_id) where covering_due;
create index commissions_to_cover on commissions (tenant_id, partner_id, created_at, commission_id) where status = 'available';
