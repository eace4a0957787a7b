-- The next records that a sweep erases, behind those of the last call, and where the call after
-- this one goes on (null: nowhere). Whole numbers of them are read, kept ones too, so that what a
-- hold keeps is passed by.
create function memory.sweep_batch(
    tenant text,
    reach text,
    due timestamptz,
    narrowed text[],
    before timestamptz,
    most integer,
    after text,
    out ids uuid[],
    out next text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    from_at timestamptz := coalesce(split_part(after, '|', 1)::timestamptz, '-infinity');
    from_id uuid := coalesce(split_part(after, '|', 2), '00000000-0000-0000-0000-000000000000');
    times timestamptz[];
begin
    if reach = 'tenant' then
        select array_agg(r.record_id order by r.record_id), array_agg(from_at) into ids, times
        from (
            select x.record_id from memory.records as x
            where x.tenant_key = tenant and x.record_id >= from_id
                and (after is null or x.record_id > from_id)
            order by x.record_id limit most
        ) as r;
    elsif before is null then
        select
            array_agg(r.record_id order by r.expires_at, r.record_id),
            array_agg(r.expires_at order by r.expires_at, r.record_id)
        into ids, times
        from (
            select x.record_id, x.expires_at from memory.records as x
            where x.tenant_key = tenant and x.expires_at >= from_at and x.expires_at <= due
                and (after is null or x.expires_at > from_at or x.record_id > from_id)
            order by x.expires_at, x.record_id limit most
        ) as r;
    else
        select
            array_agg(r.record_id order by r.occurred_at, r.record_id),
            array_agg(r.occurred_at order by r.occurred_at, r.record_id)
        into ids, times
        from (
            select x.record_id, x.occurred_at from memory.records as x
            where x.tenant_key = tenant and x.occurred_at >= from_at and x.occurred_at < before
                and (after is null or x.occurred_at > from_at or x.record_id > from_id)
                and (narrowed is null or x.kind = any (narrowed))
            order by x.occurred_at, x.record_id limit most
        ) as r;
    end if;
    if cardinality(ids) = most then
        -- In JSON a time reads the same whatever the session's DateStyle.
        next := concat(to_jsonb(times[most]) #>> '{}', '|', ids[most]);
    end if;
end $$;

-- One batch of an erasure that names nobody: of a whole tenant, confirmed by its key; or of what
-- retention says, that is, what has expired by due or, with before, what occurred before it. Call
-- it with the same erasure and after => next until next is null; each call may be a transaction of
-- its own. What a hold keeps is passed by and counted.
create function memory.sweep(
    tenant text,
    reach text default 'retention',
    confirm text default null,
    due timestamptz default clock_timestamp(),
    narrowed text[] default null,
    before timestamptz default null,
    erasure uuid default gen_random_uuid(),
    why text default 'retention_policy',
    most integer default 1000,
    after text default null,
    sealed boolean default false,
    out next text,
    out memories bigint,
    out derived bigint,
    out provenance_edges bigint,
    out artefacts bigint,
    out kinds jsonb,
    out cascade_depth integer,
    out held bigint,
    out adapters text[],
    out anchor_seq bigint,
    out anchor_digest text
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    given uuid[];
    starts uuid[];
    ids uuid[];
begin
    perform memory.check_tenant(tenant);
    if erasure is null or coalesce(most < 1, true)
        or coalesce(why, '') not in ('subject_request', 'retention_policy', 'operator')
        or coalesce(reach, '') not in ('retention', 'tenant')
        or (reach = 'tenant' and confirm is distinct from tenant)
        or (reach = 'retention' and due is null)
    then
        raise exception 'a sweep has an id, a known reason and scope, and is confirmed'
            using errcode = 'ME014';
    end if;
    perform memory.require_fresh_snapshots();
    set constraints memory.link_record, memory.provenance_derived, memory.provenance_source,
        memory.seal deferred;
    select b.ids, b.next into given, next
    from memory.sweep_batch(tenant, reach, due, narrowed, before, most, after) as b;
    select l.starts, l.ids into starts, ids
    from memory.lock_closure(tenant, null, null, coalesce(given, '{}'), false) as l;
    given := starts;
    select c.* into memories, derived, provenance_edges, artefacts, adapters, kinds, held
    from memory.count_closure(tenant, ids) as c;
    if held > 0 then
        select s.starts, s.ids into starts, ids from memory.spare(tenant, starts, ids, false) as s;
        select c.memories, c.derived, c.provenance_edges, c.artefacts, c.adapters, c.kinds
        into memories, derived, provenance_edges, artefacts, adapters, kinds
        from memory.count_closure(tenant, ids) as c;
        held := (
            select count(*) from (
                select g.id from unnest(given) as g (id)
                except
                select u.id from unnest(ids) as u (id)
            ) as kept
            cross join lateral (
                select r.expires_at from memory.records as r
                where r.tenant_key = tenant and r.record_id = kept.id offset 0
            ) as r
            -- What has expired is counted by the sweep that asks for that.
            where reach = 'tenant' or before is null or coalesce(r.expires_at > due, true)
        );
    end if;
    cascade_depth := memory.cascade_depth(tenant, ids, cardinality(starts));
    perform memory.delete_as(tenant, ids, concat_ws(' ', erasure, why, reach));
    if reach = 'tenant' and next is null then
        -- Locks about people of whom nothing is left, unless somebody writes about them now.
        delete from memory.subjects as s
        where s.ctid = any (array(
            select f.ctid from memory.subjects as f
            where f.tenant_key = tenant and not f.blocked and not f.held
            for update skip locked
        ));
    end if;
    if sealed then
        select s.seq, s.digest into anchor_seq, anchor_digest
        from memory.seal_now(tenant, erasure) as s;
    end if;
end $$;
