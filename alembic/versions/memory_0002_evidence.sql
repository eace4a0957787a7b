alter table memory.pending_evidence
    alter column tenant_key set statistics 0,
    alter column subject_hash set statistics 0;

alter table memory.tombstones
    alter column tenant_key set statistics 0,
    alter column subject_hash set statistics 0;

alter table memory.chain_heads alter column tenant_key set statistics 0;

alter table memory.decisions
    alter column tenant_key set statistics 0,
    alter column subject_hash set statistics 0;

alter table memory.artefacts
    alter column tenant_key set statistics 0,
    alter column artefact_id set statistics 0;

alter table memory.purges
    alter column tenant_key set statistics 0,
    alter column artefact_id set statistics 0,
    alter column subject_hashes set statistics 0;

alter table memory.purge_receipts alter column tenant_key set statistics 0;

-- Evidence that the erasing party can edit is not evidence: refused for everyone, the owner too.
create function memory.refuse_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'rows of %.% are never changed', tg_table_schema, tg_table_name
        using errcode = 'ME010';
end $$;

create trigger immutable before update or delete on memory.tombstones
for each statement execute function memory.refuse_change();

create trigger immutable before update or delete on memory.decisions
for each statement execute function memory.refuse_change();

create trigger immutable before update or delete on memory.purge_receipts
for each statement execute function memory.refuse_change();

alter table memory.tombstones enable always trigger immutable;

alter table memory.decisions enable always trigger immutable;

alter table memory.purge_receipts enable always trigger immutable;

-- The twin of memory.fingerprint.tombstone_digest: every column, length-prefixed, so that no two
-- rows share an encoding.
create function memory.tombstone_digest(stone memory.tombstones) returns text
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
    framed text;
begin
    select string_agg(octet_length(convert_to(f.field, 'UTF8')) || ':' || f.field, '' order by f.n)
    into framed
    from unnest(array[
        stone.format::text,
        stone.previous,
        stone.tenant_key,
        stone.seq::text,
        stone.erasure_id::text,
        stone.subject_hash,
        stone.reason,
        stone.scope,
        stone.memories::text,
        stone.derived::text,
        stone.provenance_edges::text,
        stone.artefacts::text,
        (extract(epoch from stone.erased_at) * 1000000)::bigint::text
    ]) with ordinality as f (field, n);
    return encode(sha256(convert_to(framed, 'UTF8')), 'hex');
end $$;

-- Evidence becomes a tombstone at commit, not when it is written: the lock on the tenant's chain
-- is then held for the commit alone, and a long job does not make every other erasure wait.
-- The head is a row, not an advisory lock, so that REPEATABLE READ fails instead of forking.
create function memory.seal() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    proof memory.pending_evidence;
    stone memory.tombstones;
begin
    if tg_relid <> 'memory.pending_evidence'::regclass then
        raise exception 'this trigger belongs to memory.pending_evidence' using errcode = 'ME009';
    end if;
    perform set_config('app.current_tenant', new.tenant_key, true);
    delete from memory.pending_evidence as p
    where p.tenant_key = new.tenant_key and p.xid = new.xid and p.erasure_id = new.erasure_id
        and p.subject_hash = new.subject_hash and p.reason = new.reason and p.scope = new.scope
    returning * into proof;
    if found then
        insert into memory.chain_heads as h (tenant_key, seq, digest)
        values (proof.tenant_key, 1, '')
        on conflict (tenant_key) do update set seq = h.seq + 1
        returning h.seq, h.digest into stone.seq, stone.previous;
        if stone.seq = 1 then
            -- Whoever walks the tenants finds its chain, also where no record was ever linked.
            insert into memory.tenants (tenant_key) values (proof.tenant_key)
            on conflict do nothing;
        end if;
        stone.tenant_key := proof.tenant_key;
        stone.erasure_id := proof.erasure_id;
        stone.subject_hash := proof.subject_hash;
        stone.reason := proof.reason;
        stone.scope := proof.scope;
        stone.memories := proof.memories;
        stone.derived := proof.derived;
        stone.provenance_edges := proof.provenance_edges;
        stone.artefacts := proof.artefacts;
        stone.erased_at := clock_timestamp();
        stone.format := 1;
        stone.digest := memory.tombstone_digest(stone);
        insert into memory.tombstones values (stone.*);
        update memory.chain_heads set digest = stone.digest where tenant_key = proof.tenant_key;
    end if;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    return null;
end $$;

create constraint trigger seal after insert on memory.pending_evidence
deferrable initially deferred for each row execute function memory.seal();

alter table memory.pending_evidence enable always trigger seal;

-- Until it is sealed, evidence is changed by the triggers that write and seal it, and by nobody.
create trigger immutable before update or delete on memory.pending_evidence
for each statement when (pg_trigger_depth() = 0) execute function memory.refuse_change();

alter table memory.pending_evidence enable always trigger immutable;

-- An artefact made from several records goes when any one of them does. Its purge is then about
-- the people of those that stay too: none of them may be held when it is carried out.
create function memory.unregister(tenant text, adapters text[], artefacts text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    with gone as (
        delete from memory.artefacts as gone
        using (
            select distinct u.adapter, u.artefact_id
            from unnest(adapters, artefacts) as u (adapter, artefact_id)
        ) as owed
        cross join lateral (
            select a.ctid from memory.artefacts as a
            where a.tenant_key = tenant and a.adapter = owed.adapter
                and a.artefact_id = owed.artefact_id offset 0
        ) as found
        where gone.ctid = found.ctid
        returning gone.adapter, gone.artefact_id, gone.record_id
    ),
    others as (
        select g.adapter, g.artefact_id, array_agg(l.subject_hash) as hashes
        from gone as g
        cross join lateral (
            select k.subject_hash from memory.record_subjects as k
            where k.tenant_key = tenant and k.record_id = g.record_id offset 0
        ) as l
        group by g.adapter, g.artefact_id
    )
    update memory.purges as owed set subject_hashes = array(
        select distinct h.hash
        from unnest(owed.subject_hashes || o.hashes) as h (hash) order by h.hash
    )
    from others as o
    cross join lateral (
        select p.ctid from memory.purges as p
        where p.tenant_key = tenant and p.adapter = o.adapter
            and p.artefact_id = o.artefact_id offset 0
    ) as found
    where owed.ctid = found.ctid;
end $$;
