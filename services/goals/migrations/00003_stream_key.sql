-- +goose Up
-- Seals the ids of streams: they tell nobody how many transactions there are, which are
-- those of all tenants. It is made here, once, so that every replica has the same one. It
-- guards nothing else: after another one, streams that are resumed begin anew.
create table stream_key (
    key    text    not null, -- 32 bytes in base64, 244 bits of them random
    single boolean primary key default true,
    constraint stream_key_single check (single)
);
insert into stream_key (key) select encode(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), 'base64');
