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
    tenant text;
    ids uuid[];
    direct text[];
    hashes text[];
    barred boolean;
begin
    if tg_relid <> 'memory.record_subjects'::regclass then
        raise exception 'this trigger belongs to memory.record_subjects' using errcode = 'ME009';
    end if;
    for tenant in select distinct a.tenant_key from added as a order by 1 loop
        perform set_config('app.current_tenant', tenant, true);
        if not exists (select from memory.tenants as x where x.tenant_key = tenant) then
            insert into memory.tenants (tenant_key) values (tenant) on conflict do nothing;
        end if;
        select
            array_agg(distinct a.record_id order by a.record_id),
            array_agg(distinct a.subject_hash order by a.subject_hash),
            array_agg(distinct a.subject_hash order by a.subject_hash)
                filter (where not a.inherited)
        into ids, hashes, direct
        from added as a where a.tenant_key = tenant;

        insert into memory.subjects (tenant_key, subject_hash)
        select tenant, h.hash from unnest(direct) as h (hash)
        on conflict do nothing;
        select bool_or(q.blocked) into barred
        from unnest(direct) as h (hash)
        cross join lateral (
            select s.blocked from memory.subjects as s
            where s.tenant_key = tenant and s.subject_hash = h.hash offset 0 for key share
        ) as q;
        if barred then
            raise exception 'this person is not to be remembered' using errcode = 'ME005';
        end if;

        if exists (
            select from (
                select distinct a.subject_key, a.subject_hash from added as a
                where a.tenant_key = tenant
            ) as a
            cross join lateral (
                (
                    select from memory.record_subjects as l
                    where l.tenant_key = tenant and l.subject_key = a.subject_key
                        and l.subject_hash < a.subject_hash limit 1
                )
                union all
                (
                    select from memory.record_subjects as l
                    where l.tenant_key = tenant and l.subject_key = a.subject_key
                        and l.subject_hash > a.subject_hash limit 1
                )
            ) as other
        ) then
            raise exception 'a subject key has one hash' using errcode = 'ME011';
        end if;

        perform memory.pass_on(tenant, ids, hashes);
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

-- Passes links of these records on to what was derived from them, and a hold on to the records.
-- Records of this very transaction were derived from by nobody else, so they need no lock; others
-- are locked against a derive in flight, whose share lock conflicts, and then read afresh.
create function memory.pass_on(tenant text, ids uuid[], hashes text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    older uuid[];
begin
    select array_agg(q.record_id) into older
    from unnest(ids) as u (id)
    cross join lateral (
        select r.record_id from memory.records as r
        where r.tenant_key = tenant and r.record_id = u.id
            and r.xmin <> pg_current_xact_id()::xid
        offset 0 for no key update
    ) as q;
    if older is not null then
        insert into memory.record_subjects
            (tenant_key, record_id, subject_key, subject_hash, inherited)
        with recursive reach (record_id, subject_key, subject_hash) as (
            select o.id, l.subject_key, l.subject_hash
            from unnest(older) as o (id)
            cross join lateral (
                select k.subject_key, k.subject_hash from memory.record_subjects as k
                where k.tenant_key = tenant and k.record_id = o.id offset 0
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
    if exists (
        select from unnest(hashes) as h (hash)
        cross join lateral (
            select from memory.subjects as s
            where s.tenant_key = tenant and s.subject_hash = h.hash and s.held offset 0
        ) as kept
    ) then
        update memory.records as r set held = true
        where r.tenant_key = tenant and r.record_id = any (ids) and not r.held and exists (
            select from memory.record_subjects as l
            join memory.subjects as s
                on s.tenant_key = l.tenant_key and s.subject_hash = l.subject_hash
            where l.tenant_key = tenant and l.record_id = r.record_id and s.held
        );
    end if;
end $$;

create trigger admit after insert on memory.record_subjects referencing new table as added
for each statement execute function memory.link_added();

-- An artefact is made from records that exist and stay until it is registered.
create function memory.artefact_added() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    tenant text;
    sources uuid[];
    found_sources bigint;
begin
    if tg_relid <> 'memory.artefacts'::regclass then
        raise exception 'this trigger belongs to memory.artefacts' using errcode = 'ME009';
    end if;
    for tenant in select distinct a.tenant_key from added as a order by 1 loop
        perform set_config('app.current_tenant', tenant, true);
        select array_agg(distinct a.record_id order by a.record_id) into sources
        from added as a where a.tenant_key = tenant;
        select count(*) into found_sources
        from unnest(sources) as u (id)
        cross join lateral (
            select from memory.records as r
            where r.tenant_key = tenant and r.record_id = u.id offset 0 for key share
        ) as q;
        if found_sources <> cardinality(sources) then
            raise exception 'a source does not exist' using errcode = 'ME006';
        end if;
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

create trigger sources_exist after insert on memory.artefacts referencing new table as added
for each statement execute function memory.artefact_added();

create trigger artefact_fixed before update on memory.artefacts
for each statement execute function memory.refuse_identity();
