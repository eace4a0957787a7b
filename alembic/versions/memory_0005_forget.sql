-- A definer function that takes a tenant believes the setting, never the argument.
create function memory.check_tenant(tenant text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if tenant is distinct from nullif(current_setting('app.current_tenant', true), '') then
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

-- Locks everything that an erasure will remove: the whole closure in one ordered pass, again with a
-- fresh snapshot until it has stopped growing. The roots are read anew in every round.
create function memory.lock_closure(
    tenant text, person text, narrowed text[], single uuid, dry_run boolean
) returns uuid[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    reached uuid[];
    locked uuid[] := '{}';
begin
    loop
        reached := memory.closure(tenant, memory.roots(tenant, person, narrowed, single));
        exit when reached is null or dry_run or not exists (
            select u.id from unnest(reached) as u (id)
            except
            select u.id from unnest(locked) as u (id)
        );
        perform from memory.records as r
        where r.tenant_key = tenant and r.record_id = any (reached)
        order by r.record_id for update;
        locked := reached;
    end loop;
    return coalesce(reached, '{}');
end $$;

-- What an erasure starts from: one record; or the records directly about a person, and those that
-- only damage could leave behind, about the person by inheritance from nothing; or, narrowed to
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
                select from memory.records as r
                where r.tenant_key = tenant and r.record_id = l.record_id
                    and r.kind = any (narrowed) offset 0
            ) as wanted
            where l.tenant_key = tenant and l.subject_key = person
        );
    end if;
    return array(
        select l.record_id
        from memory.record_subjects as l
        cross join lateral (
            select not l.inherited or not exists (
                select from memory.provenance as e
                cross join lateral (
                    select from memory.record_subjects as k
                    where k.tenant_key = tenant and k.record_id = e.source_id
                        and k.subject_key = person offset 0
                ) as about
                where e.tenant_key = tenant and e.derived_id = l.record_id offset 0
            ) as starts
        ) as root
        where l.tenant_key = tenant and l.subject_key = person and root.starts
    );
end $$;

-- The greatest shortest distance from the roots. The closure comes breadth first, so the last
-- record is one of the farthest and the first source of a record in that order is one step nearer:
-- walking back from the last counts the steps.
create function memory.cascade_depth(tenant text, reached uuid[], roots uuid[]) returns integer
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    nearer integer[];
    at integer := cardinality(reached);
    depth integer := 0;
begin
    if cardinality(reached) = cardinality(roots) then
        return 0;
    end if;
    with placed as (
        select u.id, u.place from unnest(reached) with ordinality as u (id, place)
    ),
    first_source as (
        select d.place, min(s.place) as source_place
        from placed as d
        cross join lateral (
            select e.source_id from memory.provenance as e
            where e.tenant_key = tenant and e.derived_id = d.id offset 0
        ) as e
        join placed as s on s.id = e.source_id
        where d.place > cardinality(roots)
        group by d.place
    )
    select array_agg(f.source_place order by f.place) into nearer from first_source as f;
    while at > cardinality(roots) loop
        at := nearer[at - cardinality(roots)];
        depth := depth + 1;
    end loop;
    return depth;
end $$;

-- What the closure holds, counted once it is locked.
create function memory.count_closure(
    tenant text,
    ids uuid[],
    out memories bigint,
    out derived bigint,
    out provenance_edges bigint,
    out artefacts bigint,
    out kinds jsonb,
    out held bigint
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select
        coalesce(sum(k.n) filter (where k.origin = 'remembered'), 0),
        coalesce(sum(k.n) filter (where k.origin = 'derived'), 0),
        coalesce(sum(k.held), 0)
    into memories, derived, held
    from (
        select r.origin, count(*) as n, count(*) filter (where r.held) as held
        from memory.records as r
        where r.tenant_key = tenant and r.record_id = any (ids) group by r.origin
    ) as k;
    select coalesce(jsonb_object_agg(k.kind, k.n), '{}') into kinds
    from (
        select r.kind, count(*) as n from memory.records as r
        where r.tenant_key = tenant and r.record_id = any (ids) group by r.kind
    ) as k;
    select count(*) into provenance_edges from memory.provenance as p
    where p.tenant_key = tenant and p.derived_id = any (ids);
    select count(distinct (a.adapter, a.artefact_id)) into artefacts from memory.artefacts as a
    where a.tenant_key = tenant and a.record_id = any (ids);
end $$;

-- The adapters that owe a purge for this erasure or for an earlier one of the same people; for a
-- dry run, those that would.
create function memory.owing(
    tenant text, erasure uuid, ids uuid[], hashes text[], dry_run boolean
) returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(array_agg(distinct q.adapter order by q.adapter), '{}')
    from (
        select p.adapter from memory.purges as p
        where p.tenant_key = tenant and p.erasure_id = erasure
        union all
        select p.adapter
        from memory.tombstones as t
        join memory.purges as p on p.tenant_key = tenant and p.erasure_id = t.erasure_id
        where t.tenant_key = tenant and t.subject_hash = any (hashes)
        union all
        select a.adapter from memory.artefacts as a
        where dry_run and a.tenant_key = tenant and a.record_id = any (ids)
    ) as q;
$$;

-- Erases a person, or one record, with everything derived from it, in the caller's transaction.
-- Exact counts need READ COMMITTED (fresh snapshots); in a stricter level it fails closed, 40001.
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
    out closure text,
    out anchor_seq bigint,
    out anchor_digest text,
    out erased_at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
declare
    caller_label text := current_setting('memory.erasure', true);
    reach text := case
        when single is not null then 'record' when narrowed is not null then 'kinds' else 'subject'
    end;
    ids uuid[];
    own_keys text[] := array[person];
begin
    perform memory.check_tenant(tenant);
    erasure_id := erasure;
    erased_at := clock_timestamp();
    if (person is null) = (single is null) then
        raise exception 'name either a person or a record' using errcode = 'ME014';
    end if;
    if person is not null then
        person_hash := memory.hash_of(tenant, person, person_hash);
        subject_hashes := array[person_hash];
    end if;
    if not dry_run then
        set constraints memory.link_record, memory.provenance_derived, memory.provenance_source,
            memory.artefact_record, memory.seal deferred;
        perform memory.lock_subject(tenant, person_hash);
    end if;
    ids := memory.lock_closure(tenant, person, narrowed, single, dry_run);
    if single is not null then
        if ids = '{}' then
            raise exception 'no such record' using errcode = 'ME015';
        end if;
        select
            array_agg(distinct l.subject_key) filter (where l.record_id = single),
            array_agg(distinct l.subject_hash order by l.subject_hash)
        into own_keys, subject_hashes
        from memory.record_subjects as l where l.tenant_key = tenant and l.record_id = any (ids);
    end if;
    select c.* into memories, derived, provenance_edges, artefacts, kinds, held
    from memory.count_closure(tenant, ids) as c;
    select count(distinct l.subject_key), array_agg(distinct l.subject_key) filter (where dry_run)
    into bystanders, bystander_keys
    from memory.record_subjects as l
    where l.tenant_key = tenant and l.record_id = any (ids) and l.subject_key <> all (own_keys);
    cascade_depth := memory.cascade_depth(
        tenant, ids, memory.roots(tenant, person, narrowed, single)
    );
    select encode(sha256(coalesce(string_agg(uuid_send(u.id), '' order by u.id), '')), 'hex')
    into closure from unnest(ids) as u (id);
    if expected is not null and expected <> closure then
        raise exception 'the closure is not the one that was approved' using errcode = 'ME013';
    end if;
    if not dry_run and held = 0 then
        perform set_config(
            'memory.erasure', concat_ws(' ', erasure, why, reach, person_hash), true
        );
        delete from memory.records as r where r.tenant_key = tenant and r.record_id = any (ids);
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
    adapters := memory.owing(tenant, erasure, ids, subject_hashes, dry_run);
end $$;
