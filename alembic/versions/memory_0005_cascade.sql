-- The cascade. One statement trigger computes everything derived from the deleted rows and deletes
-- it: nested cascades, one per level, end at about 1,000 derivations with "stack depth limit
-- exceeded", and one rolling summary is that long. Each firing settles the rows of its own
-- statement; what was derived from them is deleted here and settled by the firing that follows.
create function memory.erase() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    batch record;
    reached uuid[];
begin
    if tg_relid <> 'memory.records'::regclass then
        raise exception 'this trigger belongs to memory.records' using errcode = 'ME009';
    end if;
    for batch in
        select
            g.tenant_key as tenant,
            array_agg(g.record_id) as ids,
            array_agg(g.record_id) filter (where g.origin = 'remembered') as remembered,
            sum(g.term_count) as terms,
            bool_or(g.held) as held
        from gone as g group by g.tenant_key order by g.tenant_key
    loop
        if batch.held then
            raise exception 'a record is under legal hold' using errcode = 'ME003';
        end if;
        perform set_config('app.current_tenant', batch.tenant, true);
        reached := memory.closure(batch.tenant, batch.ids);
        if cardinality(reached) > cardinality(batch.ids) then
            perform memory.lock_records(batch.tenant, reached);
            perform memory.delete_records(batch.tenant, reached);
        end if;
        insert into memory.tenant_counts (tenant_key, records, terms)
        values (batch.tenant, -cardinality(batch.ids), -batch.terms);
        delete from memory.postings as p
        using memory.each(batch.ids) as u (id)
        cross join lateral (
            select q.ctid from memory.postings as q
            where q.tenant_key = batch.tenant and q.record_id = u.id offset 0
        ) as found
        where p.ctid = found.ctid;
        perform memory.settle(batch.tenant, batch.ids, batch.remembered);
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

create trigger erase after delete on memory.records referencing old table as gone
for each statement execute function memory.erase();

alter table memory.records enable always trigger erase;

-- Locks records in the order of their ids, whoever locks them, against deadlocks; and before a
-- delete by ctid, which would miss a row that another transaction moves meanwhile.
create function memory.lock_records(tenant text, ids uuid[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform from memory.each(array(select u.id from unnest(ids) as u (id) order by u.id)) as u (id)
    cross join lateral (
        select from memory.records as r
        where r.tenant_key = tenant and r.record_id = u.id offset 0 for update
    ) as locked;
end $$;

create function memory.delete_records(tenant text, ids uuid[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    delete from memory.records as r
    using memory.each(ids) as u (id)
    cross join lateral (
        select q.ctid from memory.records as q
        where q.tenant_key = tenant and q.record_id = u.id offset 0
    ) as found
    where r.ctid = found.ctid;
end $$;

-- The records and everything derived from them, transitively. The order is breadth first: a
-- recursive union hands out a level at a time, each record once, at its shortest distance.
-- The lateral "offset 0" keeps the plan a walk through the index, whatever the statistics say.
create function memory.closure(tenant text, roots uuid[]) returns uuid[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        with recursive reach (record_id) as (
            select r.id from unnest(roots) as r (id)
            union
            select p.derived_id
            from reach as r
            cross join lateral (
                select e.derived_id from memory.provenance as e
                where e.tenant_key = tenant and e.source_id = r.record_id offset 0
            ) as p
        )
        select r.record_id from reach as r
    );
end $$;

-- Removes edges, links and artefacts of records that are gone, turns the artefacts into purges that
-- external indexes owe, and has the evidence written.
create function memory.settle(tenant text, ids uuid[], remembered uuid[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    edges uuid[];
    linked uuid[];
    hashes text[];
    lost uuid[];
    adapters text[];
    artefacts text[];
begin
    with gone as (
        delete from memory.provenance as p
        using memory.each(ids) as u (id)
        cross join lateral (
            select e.ctid from memory.provenance as e
            where e.tenant_key = tenant and e.derived_id = u.id offset 0
        ) as found
        where p.ctid = found.ctid
        returning p.derived_id
    )
    select array_agg(g.derived_id) into edges from gone as g;
    with gone as (
        delete from memory.record_subjects as l
        using memory.each(ids) as u (id)
        cross join lateral (
            select k.ctid from memory.record_subjects as k
            where k.tenant_key = tenant and k.record_id = u.id offset 0
        ) as found
        where l.ctid = found.ctid
        returning l.record_id, l.subject_hash
    )
    select array_agg(g.record_id), array_agg(g.subject_hash) into linked, hashes from gone as g;
    perform memory.lock_artefacts(tenant, ids);
    select array_agg(u.id), array_agg(a.adapter), array_agg(a.artefact_id)
    into lost, adapters, artefacts
    from unnest(ids) as u (id)
    cross join lateral (
        select x.adapter, x.artefact_id from memory.artefacts as x
        where x.tenant_key = tenant and x.record_id = u.id offset 0
    ) as a;
    perform memory.witness(
        tenant, linked, hashes, remembered, edges, lost, adapters, artefacts
    );
    if lost is not null then
        perform memory.unregister(tenant, adapters, artefacts);
    end if;
end $$;

-- What forget says of the deletes that follow: an id, a reason, a scope and, for one person, the
-- hash (what is no hash names nobody); null where nothing is said or it is not understood. Not a
-- regular expression: matching one of this length takes a millisecond.
create function memory.label() returns text[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    said text[] := string_to_array(current_setting('memory.erasure', true), ' ');
    digits text := '0123456789abcdef';
begin
    if said[1] like '________-____-____-____-____________'
        and translate(said[1], digits, '') = '----'
        and said[2] in ('subject_request', 'retention_policy', 'operator')
        and said[3] in ('subject', 'kinds', 'record', 'retention', 'tenant')
    then
        return said;
    end if;
    return null;
end $$;

-- Writes the evidence: a row per person, reason and transaction, which a deferred trigger seals.
-- It is always written. A label, set by forget in memory.erasure, only says why: it is the caller's
-- claim, and a record that is not about the person it names still gets tombstones of its own.
-- Artefacts of the records become purges, which know everybody those records were about: whoever of
-- them is forgotten next is told that the purge is still owed.
-- Only arrays are joined here, and hashed: their estimates would make nested loops look cheap.
create function memory.witness(
    tenant text,
    linked uuid[],
    hashes text[],
    remembered uuid[],
    edges uuid[],
    lost uuid[],
    adapters text[],
    artefacts text[]
) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
    label text[] := memory.label();
    unlabelled uuid := md5(pg_current_xact_id()::text || transaction_timestamp()::text)::uuid;
    erasure uuid := coalesce(label[1]::uuid, unlabelled);
    named text := label[4];
begin
    insert into memory.pending_evidence as kept (
        tenant_key, erasure_id, subject_hash, reason, scope,
        memories, derived, provenance_edges, artefacts
    )
    with told as (
        select
            u.record_id,
            u.subject_hash,
            label[1] is not null and (named is null or u.subject_hash = named) as labelled
        from unnest(linked, hashes) as u (record_id, subject_hash)
        left join (
            select n.record_id from unnest(linked, hashes) as n (record_id, subject_hash)
            where n.subject_hash = named
        ) as about on about.record_id = u.record_id
        where about.record_id is null or u.subject_hash = named
    )
    select
        tenant,
        case when p.labelled then erasure else unlabelled end,
        p.subject_hash,
        case when p.labelled then label[2] else 'operator' end,
        case when p.labelled then label[3] else 'record' end,
        count(m.id),
        count(*) - count(m.id),
        coalesce(sum(e.n), 0),
        coalesce(max(x.n), 0)
    from told as p
    left join unnest(remembered) as m (id) on m.id = p.record_id
    left join (
        select u.id, count(*) as n from unnest(edges) as u (id) group by u.id
    ) as e on e.id = p.record_id
    left join (
        select l.subject_hash, count(distinct (a.adapter, a.artefact_id)) as n
        from told as l
        join unnest(lost, adapters, artefacts) as a (record_id, adapter, artefact_id)
            on a.record_id = l.record_id
        group by l.subject_hash
    ) as x on x.subject_hash = p.subject_hash
    group by p.subject_hash, p.labelled
    order by p.subject_hash
    on conflict (tenant_key, xid, erasure_id, subject_hash, reason, scope) do update set
        memories = kept.memories + excluded.memories,
        derived = kept.derived + excluded.derived,
        provenance_edges = kept.provenance_edges + excluded.provenance_edges,
        artefacts = kept.artefacts + excluded.artefacts;
    if lost is not null then
        insert into memory.purges as owed
            (tenant_key, adapter, artefact_id, erasure_id, subject_hashes)
        select
            tenant,
            a.adapter,
            a.artefact_id,
            erasure,
            array_agg(distinct l.subject_hash order by l.subject_hash)
        from unnest(lost, adapters, artefacts) as a (record_id, adapter, artefact_id)
        join unnest(linked, hashes) as l (record_id, subject_hash) on l.record_id = a.record_id
        group by a.adapter, a.artefact_id order by a.adapter, a.artefact_id
        -- A registration is refused while the purge is owed, but one in a stricter level may have
        -- overlooked that: who is purging now does so for the older erasure, and may not settle
        -- this one.
        on conflict (tenant_key, adapter, artefact_id) do update set
            erasure_id = excluded.erasure_id,
            lease = null,
            leased_at = null,
            leased_until = null,
            leased_pid = null,
            subject_hashes = array(
                select distinct h.hash
                from unnest(owed.subject_hashes || excluded.subject_hashes) as h (hash)
                order by h.hash
            );
    end if;
end $$;

-- The greatest shortest distance from the roots. The closure comes breadth first, so the last
-- record is one of the farthest and the first source of a record in that order is one step nearer:
-- walking back from the last counts the steps.
create function memory.cascade_depth(tenant text, reached uuid[], roots integer) returns integer
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    nearer integer[];
    derived uuid[];
    sources uuid[];
    at integer := cardinality(reached);
    depth integer := 0;
begin
    if at = roots then
        return 0;
    end if;
    select array_agg(u.id), array_agg(e.source_id) into derived, sources
    from unnest(reached[roots + 1:]) as u (id)
    cross join lateral (
        select p.source_id from memory.provenance as p
        where p.tenant_key = tenant and p.derived_id = u.id offset 0
    ) as e;
    nearer := memory.first_places(reached, derived, sources);
    while at > roots loop
        at := nearer[at - roots];
        depth := depth + 1;
    end loop;
    return depth;
end $$;

-- For each derived record in the order of the closure, the place of its first source in it.
create function memory.first_places(reached uuid[], derived uuid[], sources uuid[])
returns integer[]
language plpgsql immutable set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
begin
    return array(
        with placed as (
            select u.id, u.place::integer from unnest(reached) with ordinality as u (id, place)
        )
        select min(s.place)
        from unnest(derived, sources) as e (derived_id, source_id)
        join placed as d on d.id = e.derived_id
        join placed as s on s.id = e.source_id
        group by d.place order by d.place
    );
end $$;
