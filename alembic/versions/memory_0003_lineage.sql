-- Every trigger function here runs as the owner of the tables with the tenant of the rows it
-- judges, and puts the caller's tenant back: a rule that reads with the caller's tenant is blind
-- once the caller has changed it, and a superuser's job has none. A plain owner may not write
-- "create function ... set app.current_tenant", so the bodies do it.

-- How these functions keep their plans. There are no statistics on keys, and the planner takes a
-- tenant for half a per cent of any table: while the table is small, reading "the tenant" through
-- any index that begins with it looks as cheap as a probe, and a plan cached then hurts when it has
-- grown. So secondary indexes carry a predicate ("source_id is not null", always true) that only
-- queries by that column imply; rows are reached by probes of a full key, in a lateral that
-- "offset 0" keeps from being flattened; deletes go by ctid, from an each() that claims "one row"
-- where unnest() claims ten; plans are generic, since planning cost more than running; and a
-- penalised plan must not start the JIT compiler.
create function memory.each(items anyarray) returns setof anyelement
language plpgsql immutable parallel safe rows 1 set search_path = pg_catalog, pg_temp as $$
begin
    return query select u.item from unnest(items) as u (item);
end $$;

create function memory.refuse_identity() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'identity and lineage of a record are fixed' using errcode = 'ME002';
end $$;

create trigger identity_fixed before update of tenant_key, record_id, origin on memory.records
for each row
when (
    old.tenant_key is distinct from new.tenant_key
    or old.record_id is distinct from new.record_id
    or old.origin is distinct from new.origin
)
execute function memory.refuse_identity();

create trigger link_fixed before update on memory.record_subjects
for each statement execute function memory.refuse_identity();

create trigger edge_fixed before update on memory.provenance
for each statement execute function memory.refuse_identity();

-- What refuses a change or erases fires for a replica's session too, since a job that sets
-- session_replication_role for speed would sever records without a trace. What completes an insert
-- does not: a replica is sent its rows.
alter table memory.records enable always trigger identity_fixed;

alter table memory.record_subjects enable always trigger link_fixed;

alter table memory.provenance enable always trigger edge_fixed;

-- Counts for BM25 are deltas that maintenance folds: one row per tenant, updated in place, let
-- 8 writers pass at a fifth of their rate.
create function memory.record_added() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    batch record;
begin
    if tg_relid <> 'memory.records'::regclass then
        raise exception 'this trigger belongs to memory.records' using errcode = 'ME009';
    end if;
    for batch in
        select a.tenant_key, count(*) as n, sum(a.term_count) as terms
        from added as a group by a.tenant_key order by a.tenant_key
    loop
        perform set_config('app.current_tenant', batch.tenant_key, true);
        insert into memory.tenant_counts (tenant_key, records, terms)
        values (batch.tenant_key, batch.n, batch.terms);
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

create trigger counted after insert on memory.records referencing new table as added
for each statement execute function memory.record_added();

-- At commit, a record that still lives is about somebody, and a derived one names its sources.
-- Deletes need no such check: an edge or a link of a living record cannot be removed at all.
create function memory.record_complete() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    subjectless boolean;
    sourceless boolean := false;
begin
    -- Where the table is partitioned, a row trigger fires as one of the partition.
    if tg_relid <> 'memory.records'::regclass
        and pg_partition_root(tg_relid) is distinct from 'memory.records'::regclass
    then
        raise exception 'this trigger belongs to memory.records' using errcode = 'ME009';
    end if;
    perform set_config('app.current_tenant', new.tenant_key, true);
    subjectless := not exists (
        select from memory.record_subjects as l
        where l.tenant_key = new.tenant_key and l.record_id = new.record_id
    );
    if new.origin = 'derived' then
        sourceless := not exists (
            select from memory.provenance as p
            where p.tenant_key = new.tenant_key and p.derived_id = new.record_id
        );
    end if;
    if subjectless or sourceless then
        perform from memory.records as r
        where r.tenant_key = new.tenant_key and r.record_id = new.record_id;
        if found and sourceless then
            raise exception 'a derived record names its sources' using errcode = 'ME001';
        elsif found then
            raise exception 'a record is about somebody' using errcode = 'ME008';
        end if;
    end if;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

create constraint trigger complete after insert on memory.records
deferrable initially deferred for each row execute function memory.record_complete();

-- Refused at once and not at commit: two sessions that each remove one of two edges would both
-- pass a deferred check and leave an orphan. The cascade deletes records first, so it passes.
create function memory.link_kept() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    batch record;
begin
    if tg_relid <> 'memory.record_subjects'::regclass then
        raise exception 'this trigger belongs to memory.record_subjects' using errcode = 'ME009';
    end if;
    for batch in
        select g.tenant_key as tenant, array_agg(distinct g.record_id) as ids
        from gone as g group by g.tenant_key order by g.tenant_key
    loop
        perform set_config('app.current_tenant', batch.tenant, true);
        if exists (
            select from unnest(batch.ids) as u (id)
            cross join lateral (
                select from memory.records as r
                where r.tenant_key = batch.tenant and r.record_id = u.id offset 0
            ) as alive
        ) then
            raise exception 'a link of a living record stays' using errcode = 'ME004';
        end if;
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

create function memory.edge_kept() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    batch record;
begin
    if tg_relid <> 'memory.provenance'::regclass then
        raise exception 'this trigger belongs to memory.provenance' using errcode = 'ME009';
    end if;
    for batch in
        select g.tenant_key as tenant, array_agg(distinct g.derived_id) as ids
        from gone as g group by g.tenant_key order by g.tenant_key
    loop
        perform set_config('app.current_tenant', batch.tenant, true);
        if exists (
            select from unnest(batch.ids) as u (id)
            cross join lateral (
                select from memory.records as r
                where r.tenant_key = batch.tenant and r.record_id = u.id offset 0
            ) as alive
        ) then
            raise exception 'an edge of a living record stays' using errcode = 'ME004';
        end if;
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

create trigger link_kept after delete on memory.record_subjects referencing old table as gone
for each statement execute function memory.link_kept();

create trigger edge_kept after delete on memory.provenance referencing old table as gone
for each statement execute function memory.edge_kept();

alter table memory.record_subjects enable always trigger link_kept;

alter table memory.provenance enable always trigger edge_kept;

-- A new edge: its sources exist and stay (locked against forget and against a later link), and
-- the derived record is about everybody they are about.
create function memory.edge_added() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    tenant text;
    sources uuid[];
    found_sources bigint;
    source_held boolean;
begin
    if tg_relid <> 'memory.provenance'::regclass then
        raise exception 'this trigger belongs to memory.provenance' using errcode = 'ME009';
    end if;
    for tenant in select distinct a.tenant_key from added as a order by 1 loop
        perform set_config('app.current_tenant', tenant, true);
        select array_agg(distinct a.source_id order by a.source_id) into sources
        from added as a where a.tenant_key = tenant;
        select count(*), bool_or(q.held) into found_sources, source_held
        from unnest(sources) as u (id)
        cross join lateral (
            select r.held from memory.records as r
            where r.tenant_key = tenant and r.record_id = u.id offset 0 for share
        ) as q;
        if found_sources <> cardinality(sources) then
            raise exception 'a source does not exist' using errcode = 'ME006';
        end if;
        if exists (
            select from (
                select distinct n.derived_id from added as n where n.tenant_key = tenant
            ) as a
            cross join lateral (
                select from memory.records as r
                where r.tenant_key = tenant and r.record_id = a.derived_id
                    and r.origin <> 'derived' offset 0
            ) as told
        ) then
            raise exception 'only a derived record has sources' using errcode = 'ME002';
        end if;
        insert into memory.record_subjects
            (tenant_key, record_id, subject_key, subject_hash, inherited)
        select distinct tenant, a.derived_id, l.subject_key, l.subject_hash, true
        from added as a
        cross join lateral (
            select s.subject_key, s.subject_hash from memory.record_subjects as s
            where s.tenant_key = tenant and s.record_id = a.source_id offset 0
        ) as l
        where a.tenant_key = tenant
        on conflict do nothing;
        if source_held then
            perform memory.flag_records(tenant, array(
                select distinct a.derived_id from added as a
                cross join lateral (
                    select from memory.records as s
                    where s.tenant_key = tenant and s.record_id = a.source_id and s.held offset 0
                ) as h
                where a.tenant_key = tenant
            ), true);
        end if;
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

create trigger inherit after insert on memory.provenance referencing new table as added
for each statement execute function memory.edge_added();
