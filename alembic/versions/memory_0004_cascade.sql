-- The cascade. One statement trigger computes everything derived from the deleted rows and deletes
-- it: nested cascades, one per level, end at about 1,000 derivations with "stack depth limit
-- exceeded", and one rolling summary is that long. Each firing settles the rows of its own
-- statement; what was derived from them is deleted here and settled by the firing that follows.
create function memory.erase() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
declare
    caller text := current_setting('app.current_tenant', true);
    tenant text;
    own uuid[];
    reached uuid[];
begin
    if tg_relid <> 'memory.records'::regclass then
        raise exception 'this trigger belongs to memory.records' using errcode = 'ME009';
    end if;
    if exists (select from gone as g where g.held) then
        raise exception 'a record is under legal hold' using errcode = 'ME003';
    end if;
    for tenant in select distinct g.tenant_key from gone as g order by 1 loop
        perform set_config('app.current_tenant', tenant, true);
        select array_agg(g.record_id) into own from gone as g where g.tenant_key = tenant;
        reached := memory.closure(tenant, own);
        if cardinality(reached) > cardinality(own) then
            delete from memory.records as r
            where r.tenant_key = tenant and r.record_id = any (reached);
        end if;
        insert into memory.tenant_counts (tenant_key, records, terms)
        select tenant, -count(*), -sum(g.term_count) from gone as g where g.tenant_key = tenant;
        delete from memory.postings as p where p.tenant_key = tenant and p.record_id = any (own);
        perform memory.settle(tenant, own, array(
            select g.record_id from gone as g
            where g.tenant_key = tenant and g.origin = 'remembered'
        ));
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

create trigger erase after delete on memory.records referencing old table as gone
for each statement execute function memory.erase();

alter table memory.records enable always trigger erase;

-- The records and everything derived from them, transitively. The order is breadth first: a
-- recursive union hands out a level at a time, each record once, at its shortest distance.
-- The lateral "offset 0" keeps the plan a walk through the index, whatever the statistics say.
create function memory.closure(tenant text, roots uuid[]) returns uuid[]
language sql stable set search_path = pg_catalog, pg_temp as $$
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
    select array_agg(r.record_id) from reach as r;
$$;

-- Removes edges, links and artefacts of deleted records and writes the evidence: a row per person,
-- reason and transaction, which a deferred trigger seals. Evidence is always written. A label,
-- set by forget in memory.erasure, only says why: it is the caller's claim, and a record that is
-- not about the person it names still gets tombstones of its own.
create function memory.settle(tenant text, ids uuid[], remembered uuid[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    label text[] := regexp_match(
        current_setting('memory.erasure', true),
        '^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}) (subject_request|retention_policy|operator)'
        ' (subject|kinds|record|retention|tenant)(?: ([0-9a-f]{64}))?$'
    );
    unlabelled uuid := md5(pg_current_xact_id()::text || transaction_timestamp()::text)::uuid;
    erasure uuid := coalesce(label[1]::uuid, unlabelled);
begin
    insert into memory.purges (tenant_key, adapter, artefact_id, erasure_id)
    select distinct tenant, a.adapter, a.artefact_id, erasure from memory.artefacts as a
    where a.tenant_key = tenant and a.record_id = any (ids)
    order by a.adapter, a.artefact_id
    on conflict do nothing;

    with edges as (
        delete from memory.provenance as p
        where p.tenant_key = tenant and p.derived_id = any (ids)
        returning p.derived_id as record_id
    ),
    lost as (
        select a.record_id, a.adapter, a.artefact_id from memory.artefacts as a
        where a.tenant_key = tenant and a.record_id = any (ids)
    ),
    links as (
        delete from memory.record_subjects as l
        where l.tenant_key = tenant and l.record_id = any (ids)
        returning l.record_id, l.subject_hash
    ),
    edge_counts as (
        select e.record_id, count(*) as n from edges as e group by e.record_id
    ),
    named as (
        select l.record_id from links as l where l.subject_hash = label[4]
    ),
    people as (
        select
            l.record_id,
            l.subject_hash,
            label[1] is not null and (label[4] is null or l.subject_hash = label[4]) as labelled
        from links as l
        where label[4] is null or l.subject_hash = label[4]
            or l.record_id not in (select n.record_id from named as n)
    ),
    artefact_counts as (
        select p.subject_hash, p.labelled, count(distinct (a.adapter, a.artefact_id)) as n
        from people as p
        join lost as a on a.record_id = p.record_id
        group by p.subject_hash, p.labelled
    ),
    counts as (
        select
            p.subject_hash,
            p.labelled,
            count(*) filter (where m.id is not null) as memories,
            count(*) filter (where m.id is null) as derived,
            coalesce(sum(e.n), 0) as edges
        from people as p
        left join unnest(remembered) as m (id) on m.id = p.record_id
        left join edge_counts as e on e.record_id = p.record_id
        group by p.subject_hash, p.labelled
    )
    insert into memory.pending_evidence as kept (
        tenant_key, erasure_id, subject_hash, reason, scope,
        memories, derived, provenance_edges, artefacts
    )
    select
        tenant,
        case when c.labelled then erasure else unlabelled end,
        c.subject_hash,
        case when c.labelled then label[2] else 'operator' end,
        case when c.labelled then label[3] else 'record' end,
        c.memories,
        c.derived,
        c.edges,
        coalesce(a.n, 0)
    from counts as c
    left join artefact_counts as a
        on a.subject_hash = c.subject_hash and a.labelled = c.labelled
    order by c.subject_hash
    on conflict (tenant_key, xid, erasure_id, subject_hash, reason, scope) do update set
        memories = kept.memories + excluded.memories,
        derived = kept.derived + excluded.derived,
        provenance_edges = kept.provenance_edges + excluded.provenance_edges,
        artefacts = kept.artefacts + excluded.artefacts;

    -- An artefact made from several records goes when any one of them does.
    delete from memory.artefacts as gone
    where gone.ctid = any (array(
        select same.ctid
        from (
            select distinct a.adapter, a.artefact_id from memory.artefacts as a
            where a.tenant_key = tenant and a.record_id = any (ids)
        ) as owed
        cross join lateral (
            select a.ctid from memory.artefacts as a
            where a.tenant_key = tenant and a.adapter = owed.adapter
                and a.artefact_id = owed.artefact_id offset 0
        ) as same
    ));
end $$;
