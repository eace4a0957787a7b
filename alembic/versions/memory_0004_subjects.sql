-- A new link: the person may be written about, has one hash, and is passed on to everything that
-- was derived. Writers lock the person's row for key share and forget locks it for update, so that
-- whoever comes second waits and then sees what the first one did; in order of the hash, against
-- deadlocks. No foreign key leads to subjects: a derive holds its source and would want the person,
-- a forget the other way round. Inherited links take no such lock, since the source's is enough.
create function memory.link_added() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    batch record;
    known bigint;
    barred boolean;
    held boolean;
begin
    if tg_relid <> 'memory.record_subjects'::regclass then
        raise exception 'this trigger belongs to memory.record_subjects' using errcode = 'ME009';
    end if;
    for batch in
        select
            a.tenant_key as tenant,
            array_agg(distinct a.record_id order by a.record_id) as ids,
            array_agg(distinct a.subject_hash order by a.subject_hash) as hashes,
            array_agg(distinct a.subject_hash order by a.subject_hash)
                filter (where not a.inherited) as direct
        from added as a group by a.tenant_key order by a.tenant_key
    loop
        perform set_config('app.current_tenant', batch.tenant, true);
        if not exists (select from memory.tenants as x where x.tenant_key = batch.tenant) then
            insert into memory.tenants (tenant_key) values (batch.tenant) on conflict do nothing;
        end if;
        -- Usually everybody is known. The lock must follow the insert that waited for another's.
        -- In a stricter level only the insert fails where a block or a hold is newer (40001).
        for attempt in 1..2 loop
            select count(*), bool_or(q.blocked), bool_or(q.held) into known, barred, held
            from unnest(batch.direct) as h (hash)
            cross join lateral (
                select s.blocked, s.held from memory.subjects as s
                where s.tenant_key = batch.tenant and s.subject_hash = h.hash
                offset 0 for key share
            ) as q;
            exit when known = coalesce(cardinality(batch.direct), 0)
                and current_setting('transaction_isolation') = 'read committed';
            insert into memory.subjects (tenant_key, subject_hash)
            select batch.tenant, h.hash from unnest(batch.direct) as h (hash)
            on conflict do nothing;
        end loop;
        if batch.direct is distinct from batch.hashes then
            select bool_or(q.blocked), bool_or(q.held) into barred, held
            from unnest(batch.hashes) as h (hash)
            cross join lateral (
                select s.blocked, s.held from memory.subjects as s
                where s.tenant_key = batch.tenant and s.subject_hash = h.hash offset 0
            ) as q;
        end if;
        if barred then
            raise exception 'this person is not to be remembered' using errcode = 'ME005';
        end if;
        if exists (
            select from (
                select distinct a.subject_key, a.subject_hash from added as a
                where a.tenant_key = batch.tenant
            ) as a
            cross join lateral (
                (
                    select from memory.record_subjects as l
                    where l.tenant_key = batch.tenant and l.subject_key = a.subject_key
                        and l.subject_hash < a.subject_hash limit 1
                )
                union all
                (
                    select from memory.record_subjects as l
                    where l.tenant_key = batch.tenant and l.subject_key = a.subject_key
                        and l.subject_hash > a.subject_hash limit 1
                )
            ) as other
        ) then
            raise exception 'a subject key has one hash' using errcode = 'ME011';
        end if;
        perform memory.pass_on(batch.tenant, batch.ids, batch.hashes, held);
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

-- Passes links of these records on to what was derived from them, and a hold on to the records.
-- Rows written by this very transaction are locked already, by having been written; others are
-- locked against a derive in flight, whose share lock conflicts. What was derived is read after
-- that, and of both kinds: this transaction may have derived from a record it wrote or touched.
-- In a stricter level each side may overlook what the other has committed. A derive then meets a
-- row that was written to, not only locked; a later link, whose snapshot may miss a derive, is
-- refused (a row of this transaction or its savepoints is no older than the transaction itself).
create function memory.pass_on(tenant text, ids uuid[], hashes text[], held boolean)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    older uuid[];
    oldest integer;
begin
    select array_agg(q.record_id), max(q.age) into older, oldest
    from unnest(ids) as u (id)
    cross join lateral (
        select r.record_id, age(r.xmin) as age from memory.records as r
        where r.tenant_key = tenant and r.record_id = u.id
            and r.xmin <> pg_current_xact_id()::xid
        offset 0 for no key update
    ) as q;
    if oldest > 0 and current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'a later link is written in READ COMMITTED' using errcode = '40001';
    end if;
    if older is not null then
        perform memory.flag_records(tenant, older, null);
    end if;
    if exists (
        select from unnest(ids) as u (id)
        cross join lateral (
            select from memory.provenance as e
            where e.tenant_key = tenant and e.source_id = u.id offset 0
        ) as used
    ) then
        insert into memory.record_subjects
            (tenant_key, record_id, subject_key, subject_hash, inherited)
        with recursive reach (record_id, subject_key, subject_hash) as (
            select u.id, l.subject_key, l.subject_hash
            from unnest(ids) as u (id)
            cross join lateral (
                select k.subject_key, k.subject_hash from memory.record_subjects as k
                where k.tenant_key = tenant and k.record_id = u.id offset 0
            ) as l
            where l.subject_hash = any (hashes)
            union
            select p.derived_id, r.subject_key, r.subject_hash
            from reach as r
            cross join lateral (
                select e.derived_id from memory.provenance as e
                where e.tenant_key = tenant and e.source_id = r.record_id offset 0
            ) as p
        )
        select tenant, r.record_id, r.subject_key, r.subject_hash, true from reach as r
        on conflict do nothing;
    end if;
    if held then
        perform memory.flag_records(tenant, memory.held_among(tenant, ids), true);
    end if;
end $$;

-- Sets or clears the hold of locked records. With null it only writes to them, so that what has an
-- older snapshot fails where it would overlook a decision.
create function memory.flag_records(tenant text, ids uuid[], flag boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    update memory.records as kept set held = coalesce(flag, kept.held)
    from memory.each(ids) as u (id)
    cross join lateral (
        select r.ctid from memory.records as r
        where r.tenant_key = tenant and r.record_id = u.id and (flag is null or r.held <> flag)
        offset 0
    ) as found
    where kept.ctid = found.ctid;
end $$;

-- Those of the records that are about somebody who is held.
create function memory.held_among(tenant text, ids uuid[]) returns uuid[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select u.id from unnest(ids) as u (id)
        cross join lateral (
            select count(*) as n from memory.record_subjects as l
            cross join lateral (
                select from memory.subjects as s
                where s.tenant_key = tenant and s.subject_hash = l.subject_hash and s.held offset 0
            ) as holder
            where l.tenant_key = tenant and l.record_id = u.id offset 0
        ) as holds
        where holds.n > 0
    );
end $$;

create trigger admit after insert on memory.record_subjects referencing new table as added
for each statement execute function memory.link_added();

-- Writes records with their links, provenance and postings in one call, as the caller and under its
-- policies; remember and derive are this, and so is a bulk load, since COPY is refused under row
-- level security. The arrays are parallel: one element a record, or beside the number of the record
-- that a link belongs to. All sources belong to every record. Vectors come end to end and are cut
-- at starts and stops; a record's terms are one string, cut at spaces, which no term holds, and so
-- are their frequencies, null where each is 1. The tenant stays set for the transaction.
create function memory.write_records(
    tenant text,
    ids uuid[],
    origin text,
    kinds text[],
    texts text[],
    metadatas text[],
    redactions text[],
    keys text[],
    versions integer[],
    superseded boolean[],
    models text[],
    starts integer[],
    stops integer[],
    vectors real[],
    occurred timestamptz[],
    expires timestamptz[],
    sizes integer[],
    link_of integer[],
    link_keys text[],
    link_hashes text[],
    sources uuid[],
    terms text[],
    frequencies text[],
    out written_at timestamptz,
    out subject_keys text[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off as $$
begin
    perform set_config('app.current_tenant', tenant, true);
    written_at := clock_timestamp();
    -- An array variable is an expanded object, which each slice would flatten as a whole; what
    -- comes out of a materialised query is flat.
    with flat as materialized (select vectors as numbers)
    insert into memory.records (
        tenant_key, record_id, origin, kind, text, metadata, redacted, record_key, version,
        superseded_at, embedding_model, embedding, occurred_at, created_at, expires_at, term_count
    )
    select
        tenant, n.id, origin, n.kind, n.text, n.metadata::jsonb,
        case
            when n.redaction is null then '{}'
            else array(select jsonb_array_elements_text(n.redaction::jsonb))
        end,
        n.key, n.version, case when n.superseded then written_at end, n.model,
        flat.numbers[n.start:n.stop], n.occurred_at, written_at, n.expires_at, n.size
    from unnest(
        ids, kinds, texts, metadatas, redactions, keys, versions, superseded, models, starts,
        stops, occurred, expires, sizes
    ) as n (
        id, kind, text, metadata, redaction, key, version, superseded, model, start,
        stop, occurred_at, expires_at, size
    )
    cross join flat;
    insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)
    select tenant, ids[l.record], l.key, l.hash
    from unnest(link_of, link_keys, link_hashes) as l (record, key, hash);
    insert into memory.postings (tenant_key, term, record_id, frequency, term_count)
    select tenant, t.term, p.id, coalesce(t.frequency, 1), p.size
    from unnest(ids, terms, frequencies, sizes) as p (id, terms, frequencies, size)
    cross join lateral unnest(
        string_to_array(p.terms, ' '), string_to_array(p.frequencies, ' ')::smallint[]
    ) as t (term, frequency)
    where p.terms <> ''
    order by t.term;
    if sources is not null then
        insert into memory.provenance (tenant_key, derived_id, source_id)
        select tenant, d.id, s.id from unnest(ids) as d (id) cross join unnest(sources) as s (id);
        subject_keys := array(
            select l.subject_key from memory.record_subjects as l
            where l.tenant_key = tenant and l.record_id = ids[1] order by l.subject_key
        );
    end if;
end $$;
