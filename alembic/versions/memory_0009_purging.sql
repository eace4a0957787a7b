-- SHA-256 over fields with their lengths, so that no two lists of fields share an encoding.
-- Plain, since no secret is in the database: who may read artefact_claims, the owner, may read the
-- artefacts themselves; the hash keeps the table free of content.
create function memory.framed_hash(variadic fields text[]) returns text
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
    framed text := '';
    piece text;
begin
    foreach piece in array fields loop
        framed := framed || octet_length(piece) || ':' || piece;
    end loop;
    return encode(sha256(convert_to(framed, 'UTF8')), 'hex');
end $$;

-- An artefact is made from records that exist and stay until it is registered. There is no foreign
-- key, which would cost a check per erased row; so older records are written to: a delete whose
-- snapshot cannot see the artefact then fails (40001) instead of leaving it without a purge.
-- While its purge is owed an artefact cannot be registered anew: the purge would take what is
-- written now. An erasure in flight that takes the artefact's rows is waited for, and then seen.
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
            where r.tenant_key = tenant and r.record_id = u.id offset 0 for no key update
        ) as q;
        if found_sources <> cardinality(sources) then
            raise exception 'a source does not exist' using errcode = 'ME006';
        end if;
        update memory.records as touched set held = touched.held
        from memory.each(sources) as u (id)
        cross join lateral (
            select r.ctid from memory.records as r
            where r.tenant_key = tenant and r.record_id = u.id
                and r.xmin <> pg_current_xact_id()::xid offset 0
        ) as older
        where touched.ctid = older.ctid;
        perform
        from (
            select distinct a.adapter, a.artefact_id from added as a
            where a.tenant_key = tenant order by a.adapter, a.artefact_id
        ) as named
        cross join lateral (
            select from memory.artefacts as x
            where x.tenant_key = tenant and x.adapter = named.adapter
                and x.artefact_id = named.artefact_id and x.xmin <> pg_current_xact_id()::xid
            order by x.record_id offset 0 for key share
        ) as others;
        if exists (
            select from added as a
            cross join lateral (
                select from memory.purges as p
                where a.tenant_key = tenant and p.tenant_key = tenant
                    and p.adapter = a.adapter and p.artefact_id = a.artefact_id offset 0
            ) as owed
        ) then
            raise exception 'the purge of this artefact is still owed' using errcode = 'ME018';
        end if;
    end loop;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    insert into memory.artefact_claims (artefact_hash, claim_hash)
    select
        memory.framed_hash(a.adapter, a.artefact_id),
        memory.framed_hash(a.tenant_key, a.adapter, a.artefact_id, a.record_id::text)
    from added as a order by 1, 2
    on conflict do nothing;
    return null;
end $$;

create trigger sources_exist after insert on memory.artefacts referencing new table as added
for each statement execute function memory.artefact_added();

create trigger artefact_fixed before update on memory.artefacts
for each statement execute function memory.refuse_identity();

alter table memory.artefacts enable always trigger artefact_fixed;

-- Each registration is a claim of its own, so no two tenants ever wait for each other over one, and
-- it goes with its registration, exactly: an artefact of two tenants is purged with the last claim.
create function memory.artefact_removed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
begin
    if tg_relid <> 'memory.artefacts'::regclass then
        raise exception 'this trigger belongs to memory.artefacts' using errcode = 'ME009';
    end if;
    delete from memory.artefact_claims as c
    using (
        select
            memory.framed_hash(g.adapter, g.artefact_id) as artefact_hash,
            memory.framed_hash(g.tenant_key, g.adapter, g.artefact_id, g.record_id::text) as claim
        from gone as g
    ) as lost
    cross join lateral (
        select x.ctid from memory.artefact_claims as x
        where x.artefact_hash = lost.artefact_hash and x.claim_hash = lost.claim offset 0
    ) as found
    where c.ctid = found.ctid;
    return null;
end $$;

create trigger unclaim after delete on memory.artefacts referencing old table as gone
for each statement execute function memory.artefact_removed();

alter table memory.artefacts enable always trigger unclaim;

-- Locks every row of the records' artefacts, in order, before they are counted and deleted: another
-- erasure of the same artefact is then over and has counted it, and a registration in flight, which
-- holds the rows that were there, is seen and goes too.
create function memory.lock_artefacts(tenant text, ids uuid[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform
    from (
        select distinct x.adapter, x.artefact_id
        from unnest(ids) as u (id)
        cross join lateral (
            select a.adapter, a.artefact_id from memory.artefacts as a
            where a.tenant_key = tenant and a.record_id = u.id offset 0
        ) as x
        order by x.adapter, x.artefact_id
    ) as owed
    cross join lateral (
        select from memory.artefacts as a
        where a.tenant_key = tenant and a.adapter = owed.adapter
            and a.artefact_id = owed.artefact_id
        order by a.record_id offset 0 for update
    ) as locked;
end $$;

-- Takes purges to work on. The lease is committed before an index is called, so that no row stays
-- locked while somebody else's endpoint answers. It ends with the backend that took it (lasting),
-- with the server, or when it runs out: through a pooler the backend outlives the client.
-- Debts that failed as often come together, so what makes a call fail does not take fresh debts
-- along. since is the time of the drain's first lease: each debt is asked for once in a drain, also
-- when the clock is set back meanwhile.
-- What another tenant has registered too is retained: it is settled, but not purged. That is
-- decided here, after the erasure has committed: of two that erase at once, the later one purges.
-- What was made from a held person's records too waits for the release, and is owed until then.
create function memory.lease_purges(
    tenant text,
    index_name text,
    most integer,
    duration interval,
    token uuid,
    lasting boolean,
    due_only boolean,
    people text[] default null,
    since timestamptz default null
) returns table (
    artefact_id text, erasure_id uuid, retained boolean, attempts integer, leased_at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set jit = off as $$
declare
    started timestamptz := clock_timestamp();
    living integer[] := array(select b.pid from pg_stat_get_activity(null) as b);
    holders text[];
begin
    perform memory.check_tenant(tenant);
    if pg_current_xact_id_if_assigned() is not null then
        raise exception 'purges are leased after the erasure has committed'
            using errcode = 'ME019';
    end if;
    holders := array(
        select s.subject_hash from memory.subjects as s where s.tenant_key = tenant and s.held
    );
    return query
    with free as (
        select q.ctid as place, q.attempts from memory.purges as q
        where q.tenant_key = tenant and q.adapter = index_name
            and (q.leased_at is null or q.leased_at < coalesce(since, 'infinity'))
            and (
                q.lease is null
                or q.leased_until < started
                or q.leased_at < pg_postmaster_start_time()
                or q.leased_pid <> all (living)
            )
            and (not due_only or q.next_try_at is null or q.next_try_at <= started)
            and (people is null or q.subject_hashes && people)
            and not q.subject_hashes && holders
        order by q.attempts, q.artefact_id limit most
        for update skip locked
    ),
    taken as (
        update memory.purges as p set
            attempts = p.attempts + 1,
            lease = token,
            leased_at = greatest(started, since),
            leased_until = started + duration,
            leased_pid = case when lasting then pg_backend_pid() end
        from free as f
        where p.ctid = f.place and f.attempts = (select min(x.attempts) from free as x)
        returning p.artefact_id, p.erasure_id, p.attempts
    )
    select
        t.artefact_id,
        t.erasure_id,
        exists (
            select from memory.artefact_claims as c
            where c.artefact_hash = memory.framed_hash(index_name, t.artefact_id)
                and c.claim_hash not in (
                    select memory.framed_hash(tenant, index_name, t.artefact_id, a.record_id::text)
                    from memory.artefacts as a
                    where a.tenant_key = tenant and a.adapter = index_name
                        and a.artefact_id = t.artefact_id
                )
        ),
        t.attempts,
        started
    from taken as t;
end $$;

-- Before a statement by ctid, which would miss a row that another transaction moves meanwhile.
create function memory.lock_purges(tenant text, index_name text, ids text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform
    from (select u.id from unnest(ids) as u (id) order by u.id) as u
    cross join lateral (
        select from memory.purges as q
        where q.tenant_key = tenant and q.adapter = index_name and q.artefact_id = u.id
        offset 0 for update
    ) as locked;
end $$;

-- Settles purges that an index has confirmed: the debt goes, and with it the artefact's id, which
-- may be a name; a content-free receipt stays. Returns how many debts this call settled.
-- A debt is of the erasure it was leased for: one that was erased again meanwhile stays owed. Who
-- holds the lease by now does not matter, since what was confirmed is confirmed.
create function memory.settle_purges(
    tenant text, index_name text, ids text[], erasures uuid[]
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    settled bigint;
begin
    perform memory.check_tenant(tenant);
    perform memory.lock_purges(tenant, index_name, ids);
    with gone as (
        delete from memory.purges as p
        using unnest(ids, erasures) as u (id, erasure)
        cross join lateral (
            select q.ctid from memory.purges as q
            where q.tenant_key = tenant and q.adapter = index_name and q.artefact_id = u.id
                and q.erasure_id = u.erasure offset 0
        ) as paid
        where p.ctid = paid.ctid
        returning p.erasure_id
    ),
    receipts as (
        insert into memory.purge_receipts (tenant_key, adapter, erasure_id, artefacts)
        select tenant, index_name, g.erasure_id, count(*) from gone as g
        group by g.erasure_id order by g.erasure_id
        returning artefacts
    )
    select coalesce(sum(r.artefacts), 0) into settled from receipts as r;
    return settled;
end $$;

-- Gives purges back: after a failure with its class, whose message may quote, and when to try
-- again; without a class the index was not to blame, and the attempt does not count.
create function memory.defer_purges(
    tenant text, index_name text, ids text[], token uuid, error_class text, wait interval
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
begin
    perform memory.check_tenant(tenant);
    perform memory.lock_purges(tenant, index_name, ids);
    update memory.purges as p set
        attempts = p.attempts - (error_class is null)::integer,
        last_error = coalesce(error_class, p.last_error),
        next_try_at = case
            when error_class is null then p.next_try_at else clock_timestamp() + wait
        end,
        lease = null,
        leased_until = null,
        leased_pid = null
    from memory.each(ids) as u (id)
    cross join lateral (
        select q.ctid from memory.purges as q
        where q.tenant_key = tenant and q.adapter = index_name and q.artefact_id = u.id
            and q.lease = token offset 0
    ) as mine
    where p.ctid = mine.ctid;
end $$;
