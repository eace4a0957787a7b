-- Leaves the row that says what was decided, in codes and ids only.
create function memory.decide(
    tenant text,
    person_hash text,
    what text,
    erasure uuid default null,
    out seq bigint,
    out at timestamptz
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    -- The tenant may be new, and what walks the tenants must find its decisions.
    insert into memory.tenants (tenant_key) values (tenant) on conflict do nothing;
    insert into memory.decisions as d (tenant_key, subject_hash, action, erasure_id)
    values (tenant, person_hash, what, erasure)
    returning d.seq, d.at into seq, at;
end $$;

-- The row of the person is locked by forget: a writer about them waits, and is then refused.
create function memory.block(tenant text, person_hash text, erasure uuid) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    update memory.subjects as s set blocked = true
    where s.tenant_key = tenant and s.subject_hash = person_hash and not s.blocked;
    perform memory.decide(tenant, person_hash, 'block', erasure);
end $$;

-- Records an erasure that a hold defers: for the person, or for everybody whom the one record is
-- about. The release that carries it out asks for the same once more, and adds nothing here.
create function memory.request(
    tenant text,
    person_hash text,
    erasure uuid,
    why text,
    reach text,
    narrowed text[],
    single uuid
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into memory.tenants (tenant_key) values (tenant) on conflict do nothing;
    insert into memory.decisions (
        tenant_key, subject_hash, action, erasure_id, reason, scope, kinds, record_id
    )
    select
        tenant, h.hash, 'request', erasure, why, reach, array_to_string(narrowed, ' '), single
    from (
        select person_hash as hash where person_hash is not null
        union
        select l.subject_hash from memory.record_subjects as l
        where l.tenant_key = tenant and l.record_id = single
    ) as h
    where not exists (
        select from memory.decisions as d
        where d.tenant_key = tenant and d.erasure_id = erasure and d.action = 'request'
    )
    order by h.hash;
end $$;

-- Parts a locked closure into what a hold keeps and what goes. Kept are the held records and all
-- that they were derived from; everything, where the person is held. The rest is closed under
-- derivation: its roots are the roots in it and what was derived from what is kept.
create function memory.spare(
    tenant text, inout starts uuid[], inout ids uuid[], everything boolean, out spared bigint
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    kept uuid[] := ids;
begin
    if not everything then
        kept := array(
            with recursive back (record_id) as (
                select u.id from unnest(ids) as u (id)
                cross join lateral (
                    select from memory.records as r
                    where r.tenant_key = tenant and r.record_id = u.id and r.held offset 0
                ) as h
                union
                select e.source_id from back as b
                cross join lateral (
                    select p.source_id from memory.provenance as p
                    where p.tenant_key = tenant and p.derived_id = b.record_id offset 0
                ) as e
            )
            select b.record_id from back as b
            intersect
            select u.id from unnest(ids) as u (id)
        );
    end if;
    starts := array(
        (
            select u.id from unnest(starts) as u (id)
            union
            select e.derived_id from unnest(kept) as k (id)
            cross join lateral (
                select p.derived_id from memory.provenance as p
                where p.tenant_key = tenant and p.source_id = k.id offset 0
            ) as e
        )
        except
        select k.id from unnest(kept) as k (id)
    );
    ids := memory.closure(tenant, starts);
    spared := cardinality(kept);
end $$;

-- Deletes under a label that says why, and puts the caller's label back.
create function memory.delete_as(tenant text, ids uuid[], label text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    caller text := current_setting('memory.erasure', true);
begin
    perform set_config('memory.erasure', label, true);
    perform memory.delete_records(tenant, ids);
    perform set_config('memory.erasure', coalesce(caller, ''), true);
end $$;

-- Turns the evidence into tombstones now and returns the newest one of the erasure.
create function memory.seal_now(
    tenant text, erasure uuid, out seq bigint, out digest text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    set constraints memory.seal immediate;
    select t.seq, t.digest into seq, digest from memory.tombstones as t
    where t.tenant_key = tenant and t.erasure_id = erasure order by t.seq desc limit 1;
    set constraints memory.seal deferred;
end $$;

-- A legal hold: from now on nothing about the person is deleted, by anybody. It may come before
-- there is any record; what is written or derived later takes the hold over. Each call is recorded.
create function memory.hold(
    tenant text,
    person text,
    person_hash text default null,
    out seq bigint,
    out subject_hash text,
    out at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
begin
    perform memory.check_tenant(tenant);
    perform memory.require_fresh_snapshots();
    subject_hash := memory.hash_of(tenant, person, person_hash);
    perform memory.lock_subject(tenant, subject_hash);
    update memory.subjects as s set held = true
    where s.tenant_key = tenant and s.subject_hash = hold.subject_hash and not s.held;
    perform memory.flag_records(tenant, l.ids, true)
    from memory.lock_closure(tenant, person, null, null, false) as l;
    select d.seq, d.at into seq, at from memory.decide(tenant, subject_hash, 'hold') as d;
end $$;

-- Lifts the hold, however often it was set, and carries out the erasures that waited for it. A
-- record about somebody else who is held stays held. The row of the tenant is locked because two
-- releases at once, over an erasure that waits for both, would wait for each other's records.
create function memory.release(
    tenant text,
    person text,
    person_hash text default null,
    sealed boolean default false,
    out seq bigint,
    out subject_hash text,
    out at timestamptz,
    out receipts jsonb
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    freed uuid[];
begin
    perform memory.check_tenant(tenant);
    perform memory.require_fresh_snapshots();
    subject_hash := memory.hash_of(tenant, person, person_hash);
    perform from memory.tenants as t where t.tenant_key = tenant for update;
    perform memory.lock_subject(tenant, subject_hash);
    select d.seq, d.at into seq, at from memory.decide(tenant, subject_hash, 'release') as d;
    update memory.subjects as s set held = false
    where s.tenant_key = tenant and s.subject_hash = release.subject_hash and s.held;
    select l.ids into freed from memory.lock_closure(tenant, person, null, null, false) as l;
    freed := array(
        select u.id from unnest(freed) as u (id)
        except
        select h.id from unnest(memory.held_among(tenant, freed)) as h (id)
    );
    perform memory.flag_records(tenant, freed, false);
    receipts := memory.complete_requests(tenant, person, subject_hash, sealed);
end $$;

-- Says of everybody whose request this was that it is complete.
create function memory.complete(tenant text, erasure uuid) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform memory.decide(tenant, h.hash, 'complete', erasure)
    from (
        select d.subject_hash as hash from memory.decisions as d
        where d.tenant_key = tenant and d.erasure_id = erasure and d.action = 'request'
        order by d.subject_hash
    ) as h;
end $$;

-- Asks again for every erasure that a hold deferred. A person other than the released one is found
-- by their hash, the one exception, through the whole tenant's links: a request holds no key. What
-- is complete now is said to be; a receipt is returned for that, and for what could be erased of
-- the others.
create function memory.complete_requests(
    tenant text, released text, released_hash text, sealed boolean
) returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    asked memory.decisions;
    person text;
    done record;
    receipts jsonb := '[]';
begin
    for asked in
        select distinct on (d.erasure_id) d.* from memory.decisions as d
        where d.tenant_key = tenant and d.action = 'request' and not exists (
            select from memory.decisions as c
            where c.tenant_key = tenant and c.erasure_id = d.erasure_id and c.action = 'complete'
        )
        order by d.erasure_id
    loop
        person := null;
        if asked.record_id is null and asked.subject_hash = released_hash then
            person := released;
        elsif asked.record_id is null then
            select l.subject_key into person from memory.record_subjects as l
            where l.tenant_key = tenant and l.subject_hash = asked.subject_hash
                and l.subject_key is not null
            limit 1;
            -- Nobody has the empty key: of somebody who is gone, a tombstone says zero.
            person := coalesce(person, '');
        elsif not exists (
            select from memory.records as r
            where r.tenant_key = tenant and r.record_id = asked.record_id
        ) then
            perform memory.complete(tenant, asked.erasure_id);
            continue;
        end if;
        select f.* into done from memory.forget(
            tenant => tenant,
            person => person,
            person_hash => asked.subject_hash,
            erasure => asked.erasure_id,
            why => asked.reason,
            narrowed => string_to_array(asked.kinds, ' '),
            single => asked.record_id,
            sealed => sealed
        ) as f;
        if not done.deferred then
            perform memory.complete(tenant, asked.erasure_id);
        end if;
        if not done.deferred or done.memories + done.derived > 0 then
            receipts := receipts || jsonb_build_array(
                to_jsonb(done) || jsonb_build_object('reason', asked.reason, 'scope', asked.scope)
            );
        end if;
    end loop;
    return receipts;
end $$;

-- Lifts a block: what was refused about the person is admitted again.
create function memory.readmit(
    tenant text,
    person text,
    person_hash text default null,
    out seq bigint,
    out subject_hash text,
    out at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
begin
    perform memory.check_tenant(tenant);
    subject_hash := memory.hash_of(tenant, person, person_hash);
    perform memory.lock_subject(tenant, subject_hash);
    select d.seq, d.at into seq, at from memory.decide(tenant, subject_hash, 'readmit') as d;
    update memory.subjects as s set blocked = false
    where s.tenant_key = tenant and s.subject_hash = readmit.subject_hash and s.blocked;
end $$;
