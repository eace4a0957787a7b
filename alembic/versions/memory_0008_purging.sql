-- Takes purges to work on. The lease is committed before an index is called, so that no row stays
-- locked while somebody else's endpoint answers; a drainer that dies loses it when it runs out.
create function memory.lease_purges(tenant text, registered text[], most integer, lease interval)
returns table (adapter text, artefact_id text, erasure_id uuid)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
begin
    perform memory.check_tenant(tenant);
    return query
    update memory.purges as p
    set leased_until = clock_timestamp() + lease, attempts = p.attempts + 1
    from (
        select q.adapter, q.artefact_id from memory.purges as q
        where q.tenant_key = tenant and q.adapter = any (registered)
            and (q.leased_until is null or q.leased_until < clock_timestamp())
        order by q.adapter, q.artefact_id limit most
        for update skip locked
    ) as due
    where p.tenant_key = tenant and p.adapter = due.adapter and p.artefact_id = due.artefact_id
    returning p.adapter, p.artefact_id, p.erasure_id;
end $$;

-- Settles purges that an index has confirmed: the debt goes, and with it the artefact's id, which
-- may be a name; a content-free receipt stays. Returns how many debts this call settled.
-- A debt is of the erasure it was leased for: one that was erased again meanwhile stays owed.
create function memory.settle_purges(
    tenant text, index_name text, ids text[], erasures uuid[]
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
declare
    settled bigint;
begin
    perform memory.check_tenant(tenant);
    with gone as (
        delete from memory.purges as p
        using unnest(ids, erasures) as u (id, erasure)
        where p.tenant_key = tenant and p.adapter = index_name and p.artefact_id = u.id
            and p.erasure_id = u.erasure
        returning p.erasure_id
    ),
    receipts as (
        insert into memory.purge_receipts (tenant_key, adapter, erasure_id, artefacts)
        select tenant, index_name, g.erasure_id, count(*) from gone as g group by g.erasure_id
        returning artefacts
    )
    select coalesce(sum(r.artefacts), 0) into settled from receipts as r;
    return settled;
end $$;

-- Gives purges back after a failure. Only the class of the error is kept: its message may quote.
create function memory.defer_purges(
    tenant text, index_name text, ids text[], error_class text, wait interval
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
begin
    perform memory.check_tenant(tenant);
    update memory.purges as p
    set leased_until = null, last_error = error_class, next_try_at = clock_timestamp() + wait
    where p.tenant_key = tenant and p.adapter = index_name and p.artefact_id = any (ids);
end $$;
