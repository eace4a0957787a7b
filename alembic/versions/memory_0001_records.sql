-- pgvector is used where it is and never required: "create extension" may fail for want of
-- privilege (42501), of support (0A000) or of the files (58P01), and nothing else is forgiven.
do $$
begin
    if not exists (select from pg_catalog.pg_extension where extname = 'vector') then
        create extension vector;
    end if;
exception
    when insufficient_privilege or feature_not_supported or undefined_file then
        raise notice 'pgvector is not available: vectors are ranked in the client';
end $$;

-- Statistics are a copy of the data that DELETE does not reach, and "set statistics 0" does not
-- remove samples taken before: so it comes first. Queries are written to hold without them.
alter table memory.records
    alter column tenant_key set statistics 0,
    alter column text set statistics 0,
    alter column metadata set statistics 0,
    alter column redacted set statistics 0,
    alter column embedding set statistics 0,
    alter column record_key set statistics 0,
    alter column embedding set storage external;

alter table memory.record_subjects
    alter column tenant_key set statistics 0,
    alter column subject_key set statistics 0,
    alter column subject_hash set statistics 0;

alter table memory.subjects
    alter column tenant_key set statistics 0,
    alter column subject_hash set statistics 0;

alter table memory.provenance alter column tenant_key set statistics 0;

alter table memory.postings
    alter column tenant_key set statistics 0,
    alter column term set statistics 0;

alter table memory.tenants alter column tenant_key set statistics 0;

alter table memory.tenant_counts alter column tenant_key set statistics 0;

-- Postings are read by index-only scans, which need a visibility map that inserts alone outdate.
alter table memory.postings set (autovacuum_vacuum_insert_scale_factor = 0.02);

insert into memory.installation default values;

-- A definer function that takes a tenant believes the setting, never the argument.
create function memory.check_tenant(tenant text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if tenant is distinct from current_setting('app.current_tenant', true)
        or coalesce(tenant, '') = ''
    then
        raise exception 'the tenant is not the current one' using errcode = 'ME012';
    end if;
end $$;

-- What collects records until none is missing needs fresh snapshots: in a stricter level than READ
-- COMMITTED a repetition could miss the same record again.
create function memory.require_fresh_snapshots() returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'erase and decide in READ COMMITTED: a snapshot misses what is newer'
            using errcode = 'ME017';
    end if;
end $$;

-- The hash under which a person's records are linked; the given one where there are none. So a
-- wrong pepper cannot make an erasure miss rows or lock the wrong row.
create function memory.hash_of(tenant text, person text, given text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    known text;
begin
    select l.subject_hash into known from memory.record_subjects as l
    where l.tenant_key = tenant and l.subject_key = person limit 1;
    -- A hash without the key would find the person's row and none of their records.
    if person is null or coalesce(known, given) is null then
        raise exception 'name the person; and their hash, where nothing is linked to them'
            using errcode = 'ME014';
    end if;
    return coalesce(known, given);
end $$;

-- The row that every writer about the person locks for key share; says whether they are held. The
-- insert alone would not wait: "on conflict do nothing" takes no lock on a row that is there.
create function memory.lock_subject(tenant text, person_hash text) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    known memory.subjects;
begin
    insert into memory.subjects (tenant_key, subject_hash)
    select tenant, person_hash where person_hash is not null
    on conflict do nothing;
    select s.* into known from memory.subjects as s
    where s.tenant_key = tenant and s.subject_hash = person_hash for update;
    return coalesce(known.held, false);
end $$;
