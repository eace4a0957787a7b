-- What an erasure starts from: given records; or those directly about a person; or, narrowed to
-- kinds, every record about the person of those kinds, inherited links included.
create function memory.roots(tenant text, person text, narrowed text[], given uuid[])
returns uuid[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if given is not null then
        return array(
            select r.record_id from unnest(given) as u (id)
            cross join lateral (
                select x.record_id from memory.records as x
                where x.tenant_key = tenant and x.record_id = u.id offset 0
            ) as r
        );
    elsif narrowed is not null then
        return array(
            select l.record_id
            from memory.record_subjects as l
            cross join lateral (
                select r.kind from memory.records as r
                where r.tenant_key = tenant and r.record_id = l.record_id offset 0
            ) as r
            where l.tenant_key = tenant and l.subject_key = person and r.kind = any (narrowed)
        );
    end if;
    return array(
        select l.record_id from memory.record_subjects as l
        where l.tenant_key = tenant and l.subject_key = person and not l.inherited
    );
end $$;

-- Records about the person that are not in the closure of those directly about them: only damage
-- leaves such behind, and an erasure takes them too.
create function memory.strays(tenant text, person text, ids uuid[]) returns uuid[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select l.record_id from memory.record_subjects as l
        where l.tenant_key = tenant and l.subject_key = person and l.inherited
        except
        select u.id from unnest(ids) as u (id)
    );
end $$;

-- Locks the closure of the roots in one ordered pass, and again with a fresh snapshot until it has
-- stopped growing: two or three rounds, however deep it is. A dry run only looks.
create function memory.lock_closure(
    tenant text,
    person text,
    narrowed text[],
    given uuid[],
    dry_run boolean,
    out starts uuid[],
    out ids uuid[]
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    locked uuid[] := '{}';
    grown boolean;
    stray uuid[] := '{}';
begin
    loop
        starts := memory.roots(tenant, person, narrowed, given) || stray;
        ids := memory.closure(tenant, starts);
        grown := not dry_run and ids <> '{}';
        if grown and locked <> '{}' then
            grown := exists (
                select u.id from unnest(ids) as u (id)
                except
                select u.id from unnest(locked) as u (id)
            );
        end if;
        if grown then
            perform memory.lock_records(tenant, ids);
            locked := ids;
            continue;
        end if;
        exit when person is null or narrowed is not null or stray <> '{}';
        stray := memory.strays(tenant, person, ids);
        exit when stray = '{}';
    end loop;
    if not dry_run then
        perform memory.lock_artefacts(tenant, ids);
    end if;
end $$;

-- What the closure holds, counted once it is locked.
create function memory.count_closure(
    tenant text,
    ids uuid[],
    out memories bigint,
    out derived bigint,
    out provenance_edges bigint,
    out artefacts bigint,
    out adapters text[],
    out kinds jsonb,
    out held bigint
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select
        coalesce(sum(k.n) filter (where k.origin = 'remembered'), 0),
        coalesce(sum(k.n) filter (where k.origin = 'derived'), 0),
        coalesce(sum(k.held), 0),
        coalesce(sum(k.edges), 0),
        coalesce(jsonb_object_agg(k.kind, k.of_kind), '{}')
    into memories, derived, held, provenance_edges, kinds
    from (
        select
            r.origin,
            r.kind,
            count(*) as n,
            sum(count(*)) over (partition by r.kind) as of_kind,
            count(*) filter (where r.held) as held,
            sum(e.n) as edges
        from unnest(ids) as u (id)
        cross join lateral (
            select x.origin, x.kind, x.held from memory.records as x
            where x.tenant_key = tenant and x.record_id = u.id offset 0
        ) as r
        cross join lateral (
            select count(*) as n from memory.provenance as p
            where r.origin = 'derived' and p.tenant_key = tenant and p.derived_id = u.id offset 0
        ) as e
        group by r.origin, r.kind
    ) as k;
    select count(distinct (a.adapter, a.artefact_id)), array_agg(distinct a.adapter)
    into artefacts, adapters
    from unnest(ids) as u (id)
    cross join lateral (
        select x.adapter, x.artefact_id from memory.artefacts as x
        where x.tenant_key = tenant and x.record_id = u.id offset 0
    ) as a;
end $$;

create function memory.subjects_of(tenant text, ids uuid[])
returns table (record_id uuid, subject_key text, subject_hash text)
language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select u.id, l.subject_key, l.subject_hash
    from unnest(ids) as u (id)
    cross join lateral (
        select k.subject_key, k.subject_hash from memory.record_subjects as k
        where k.tenant_key = tenant and k.record_id = u.id offset 0
    ) as l;
end $$;

-- The adapters that owe a purge for this or an earlier erasure of something about these people. All
-- that the tenant's indexes owe is read, so page by page.
create function memory.owing(tenant text, hashes text[]) returns text[]
language plpgsql stable set search_path = pg_catalog, pg_temp set enable_bitmapscan = on as $$
begin
    return array(
        select distinct p.adapter from memory.purges as p
        where p.tenant_key = tenant and p.subject_hashes && hashes
    );
end $$;

-- Erases a person, or one record, with everything derived from it, in the caller's transaction.
-- What a hold keeps stays, and the erasure is recorded as a request that the release completes.
-- block => true also refuses what is written about the person from now on.
-- sealed => true turns the evidence into tombstones here instead of at commit and returns the
-- anchor: right where the commit follows at once, wrong inside a longer transaction.
create function memory.forget(
    tenant text,
    person text default null,
    person_hash text default null,
    erasure uuid default gen_random_uuid(),
    why text default 'subject_request',
    narrowed text[] default null,
    single uuid default null,
    dry_run boolean default false,
    expected text default null,
    block boolean default false,
    sealed boolean default false,
    out erasure_id uuid,
    out subject_hashes text[],
    out memories bigint,
    out derived bigint,
    out provenance_edges bigint,
    out artefacts bigint,
    out kinds jsonb,
    out cascade_depth integer,
    out bystanders bigint,
    out bystander_keys text[],
    out held bigint,
    out deferred boolean,
    out adapters text[],
    out outstanding text[],
    out closure text,
    out anchor_seq bigint,
    out anchor_digest text,
    out erased_at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    reach text := case
        when single is not null then 'record' when narrowed is not null then 'kinds' else 'subject'
    end;
    starts uuid[];
    ids uuid[];
    own_keys text[] := array[person];
begin
    perform memory.check_tenant(tenant);
    erasure_id := erasure;
    erased_at := clock_timestamp();
    if (person is null) = (single is null) or (block and reach <> 'subject') then
        raise exception 'name either a person or a record, and block a whole person'
            using errcode = 'ME014';
    end if;
    -- A label that is not understood would leave tombstones of another erasure than the receipt's.
    if erasure is null or why is null
        or why not in ('subject_request', 'retention_policy', 'operator')
    then
        raise exception 'an erasure has an id and a known reason' using errcode = 'ME014';
    end if;
    person_hash := case
        when person is not null then memory.hash_of(tenant, person, person_hash)
    end;
    if dry_run then
        deferred := exists (
            select from memory.subjects as s
            where s.tenant_key = tenant and s.subject_hash = person_hash and s.held
        );
    else
        perform memory.require_fresh_snapshots();
        set constraints memory.link_record, memory.provenance_derived, memory.provenance_source,
            memory.seal deferred;
        deferred := memory.lock_subject(tenant, person_hash);
    end if;
    select l.starts, l.ids into starts, ids
    from memory.lock_closure(
        tenant, person, narrowed, case when single is not null then array[single] end, dry_run
    ) as l;
    subject_hashes := array[person_hash];
    if single is not null then
        if ids = '{}' then
            raise exception 'no such record' using errcode = 'ME015';
        end if;
        select
            array_agg(distinct l.subject_key) filter (where l.record_id = single),
            array_agg(distinct l.subject_hash order by l.subject_hash)
        into own_keys, subject_hashes
        from memory.subjects_of(tenant, ids) as l;
    end if;
    select encode(sha256(coalesce(string_agg(uuid_send(u.id), '' order by u.id), '')), 'hex')
    into closure from unnest(ids) as u (id);
    if expected is not null and expected <> closure then
        raise exception 'the closure is not the one that was approved' using errcode = 'ME013';
    end if;
    select c.* into memories, derived, provenance_edges, artefacts, adapters, kinds, held
    from memory.count_closure(tenant, ids) as c;
    if deferred or held > 0 then
        if block and not dry_run then
            perform memory.flag_records(tenant, ids, null);
        end if;
        select s.starts, s.ids, s.spared into starts, ids, held
        from memory.spare(tenant, starts, ids, deferred) as s;
        select c.memories, c.derived, c.provenance_edges, c.artefacts, c.adapters, c.kinds
        into memories, derived, provenance_edges, artefacts, adapters, kinds
        from memory.count_closure(tenant, ids) as c;
        deferred := true;
    end if;
    select count(distinct l.subject_key), array_agg(distinct l.subject_key) filter (where dry_run)
    into bystanders, bystander_keys
    from memory.subjects_of(tenant, ids) as l where l.subject_key <> all (own_keys);
    cascade_depth := memory.cascade_depth(tenant, ids, cardinality(starts));
    if not dry_run then
        if block then
            perform memory.block(tenant, person_hash, erasure);
        end if;
        if deferred then
            perform memory.request(
                tenant, person_hash, erasure, why, reach, narrowed, single
            );
        end if;
        if ids <> '{}' then
            perform memory.delete_as(
                tenant, ids, concat_ws(' ', erasure, why, reach, person_hash)
            );
        elsif not deferred then
            insert into memory.pending_evidence (
                tenant_key, erasure_id, subject_hash, reason, scope,
                memories, derived, provenance_edges, artefacts
            ) values (tenant, erasure, person_hash, why, reach, 0, 0, 0, 0);
        end if;
        if sealed then
            select s.seq, s.digest into anchor_seq, anchor_digest
            from memory.seal_now(tenant, erasure) as s;
        end if;
    end if;
    adapters := array(select u.adapter from unnest(adapters) as u (adapter) order by u.adapter);
    if not dry_run then
        outstanding := memory.owing(tenant, subject_hashes);
        adapters := array(
            select u.adapter from unnest(adapters || outstanding) as u (adapter)
            group by u.adapter order by u.adapter
        );
    end if;
end $$;
