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

-- The hash under which a person's records are linked; the given one where there are none. So a
-- wrong pepper cannot make an erasure miss rows or lock the wrong row.
create function memory.hash_of(tenant text, person text, given text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    known text;
begin
    select l.subject_hash into known from memory.record_subjects as l
    where l.tenant_key = tenant and l.subject_key = person limit 1;
    if coalesce(known, given) is null then
        raise exception 'nothing is linked to this person: give the hash for the tombstone'
            using errcode = 'ME014';
    end if;
    return coalesce(known, given);
end $$;

-- The row that every writer about the person locks for key share. The insert alone would not wait:
-- "on conflict do nothing" takes no lock on a row that is there.
create function memory.lock_subject(tenant text, person_hash text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into memory.subjects (tenant_key, subject_hash)
    select tenant, person_hash where person_hash is not null
    on conflict do nothing;
    perform from memory.subjects as s
    where s.tenant_key = tenant and s.subject_hash = person_hash for update;
end $$;

-- What an erasure starts from: one record; or the records directly about a person; or, narrowed to
-- kinds, every record about the person of those kinds, inherited links included.
create function memory.roots(tenant text, person text, narrowed text[], single uuid)
returns uuid[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if single is not null then
        return array(
            select r.record_id from memory.records as r
            where r.tenant_key = tenant and r.record_id = single
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

-- The adapters that owe a purge for this or an earlier erasure of something about these people.
create function memory.owing(tenant text, hashes text[]) returns text[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select distinct p.adapter from memory.purges as p
        where p.tenant_key = tenant and p.subject_hashes && hashes
    );
end $$;

-- Erases a person, or one record, with everything derived from it, in the caller's transaction.
-- It needs fresh snapshots and is refused in a stricter level than READ COMMITTED: a repetition
-- could miss the same record again.
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
    caller_label text := current_setting('memory.erasure', true);
    reach text := case
        when single is not null then 'record' when narrowed is not null then 'kinds' else 'subject'
    end;
    ids uuid[];
    locked uuid[] := '{}';
    grown boolean;
    stray uuid[] := '{}';
    starts uuid[];
    own_keys text[] := array[person];
begin
    perform memory.check_tenant(tenant);
    erasure_id := erasure;
    erased_at := clock_timestamp();
    if (person is null) = (single is null) then
        raise exception 'name either a person or a record' using errcode = 'ME014';
    end if;
    -- A label that is not understood would leave tombstones of another erasure than the receipt's.
    if erasure is null or why is null
        or why not in ('subject_request', 'retention_policy', 'operator')
    then
        raise exception 'an erasure has an id and a known reason' using errcode = 'ME014';
    end if;
    if not dry_run and current_setting('transaction_isolation') not in (
        'read committed', 'read uncommitted'
    ) then
        raise exception 'erase in READ COMMITTED: an older snapshot misses what is newer'
            using errcode = 'ME017';
    end if;
    if person is not null then
        person_hash := memory.hash_of(tenant, person, person_hash);
        subject_hashes := array[person_hash];
    else
        person_hash := null;
    end if;
    if not dry_run then
        set constraints memory.link_record, memory.provenance_derived, memory.provenance_source,
            memory.seal deferred;
        perform memory.lock_subject(tenant, person_hash);
    end if;
    -- Lock the whole closure in one ordered pass, and again with a fresh snapshot until it has
    -- stopped growing: two or three rounds, however deep it is.
    loop
        starts := memory.roots(tenant, person, narrowed, single) || stray;
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
        exit when reach <> 'subject' or stray <> '{}';
        stray := memory.strays(tenant, person, ids);
        exit when stray = '{}';
    end loop;
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
    select c.* into memories, derived, provenance_edges, artefacts, adapters, kinds, held
    from memory.count_closure(tenant, ids) as c;
    select count(distinct l.subject_key), array_agg(distinct l.subject_key) filter (where dry_run)
    into bystanders, bystander_keys
    from memory.subjects_of(tenant, ids) as l where l.subject_key <> all (own_keys);
    cascade_depth := memory.cascade_depth(tenant, ids, cardinality(starts));
    select encode(sha256(coalesce(string_agg(uuid_send(u.id), '' order by u.id), '')), 'hex')
    into closure from unnest(ids) as u (id);
    if expected is not null and expected <> closure then
        raise exception 'the closure is not the one that was approved' using errcode = 'ME013';
    end if;
    if held > 0 and not dry_run then
        -- Nothing goes while a hold is met, and the counts say so.
        memories := 0;
        derived := 0;
        provenance_edges := 0;
        artefacts := 0;
        kinds := '{}';
        adapters := '{}';
    elsif not dry_run then
        perform set_config(
            'memory.erasure', concat_ws(' ', erasure, why, reach, person_hash), true
        );
        perform memory.delete_records(tenant, ids);
        perform set_config('memory.erasure', coalesce(caller_label, ''), true);
        if ids = '{}' then
            insert into memory.pending_evidence (
                tenant_key, erasure_id, subject_hash, reason, scope,
                memories, derived, provenance_edges, artefacts
            ) values (tenant, erasure, person_hash, why, reach, 0, 0, 0, 0);
        end if;
        if sealed then
            set constraints memory.seal immediate;
            select t.seq, t.digest into anchor_seq, anchor_digest from memory.tombstones as t
            where t.tenant_key = tenant and t.erasure_id = erasure order by t.seq desc limit 1;
            set constraints memory.seal deferred;
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
