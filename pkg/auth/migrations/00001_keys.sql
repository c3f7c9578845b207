-- +goose Up
create table known_keys (
    key_id     text        primary key,
    key_hash   bytea       not null,
    tenant_id  uuid        not null,
    suspended  boolean     not null,
    scopes     text[]      not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    version    bigint      not null
);
