-- Deny by default: without a tenant, or with the empty string that an unset setting turns into
-- after its first use, no row is there. The scalar subquery is evaluated once per statement.
do $$
declare
    name text;
begin
    foreach name in array array[
        'records', 'record_subjects', 'provenance', 'postings', 'subjects', 'tenants',
        'tenant_counts', 'pending_evidence', 'tombstones', 'chain_heads', 'decisions', 'artefacts',
        'purges', 'purge_receipts'
    ] loop
        execute format(
            'create policy tenant on memory.%I using ('
            'tenant_key = (select nullif(current_setting(''app.current_tenant'', true), '''')))',
            name
        );
    end loop;
end $$;

-- Operator commands walk the tenants and set each; no other table is read across tenants.
create policy owner_walks on memory.tenants for select to current_user using (true);

create policy owner_only on memory.installation to current_user using (true);

create policy owner_only on memory.artefact_claims to current_user using (true);

create function memory.refuse_truncate() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'TRUNCATE would erase without evidence' using errcode = 'ME007';
end $$;

do $$
declare
    name text;
begin
    foreach name in array array[
        'records', 'record_subjects', 'provenance', 'postings', 'subjects', 'tenants',
        'tenant_counts', 'pending_evidence', 'tombstones', 'chain_heads', 'decisions', 'artefacts',
        'purges', 'purge_receipts', 'artefact_claims', 'installation'
    ] loop
        execute format('alter table memory.%I enable row level security', name);
        execute format('alter table memory.%I force row level security', name);
        execute format(
            'create trigger no_truncate before truncate on memory.%I '
            'for each statement execute function memory.refuse_truncate()', name
        );
        execute format('alter table memory.%I enable always trigger no_truncate', name);
    end loop;
end $$;

-- Records the check value of the pepper once; false when another one is recorded. A process with
-- another pepper would write other hashes: blocks and holds would miss, tombstones not match.
create function memory.claim_installation(check_value text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
begin
    update memory.installation set pepper_check = check_value where pepper_check is null;
    return exists (select from memory.installation where pepper_check = check_value);
end $$;

-- True, false, or null while no process has claimed the installation yet.
create function memory.pepper_matches(check_value text) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
    select i.pepper_check = check_value from memory.installation as i;
$$;

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

-- Gives an existing role what an application needs and nothing more: it writes and deletes records,
-- and cannot touch a link, an edge, a hold, a block or a piece of evidence.
create function memory.grant_app(app_role name) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('grant usage on schema memory to %I', app_role);
    execute format(
        'grant select on memory.records, memory.record_subjects, memory.provenance, '
        'memory.postings, memory.tenant_counts, memory.tombstones, memory.artefacts, '
        'memory.purges, memory.purge_receipts, memory.decisions to %I',
        app_role
    );
    execute format(
        'grant insert (tenant_key, record_id, origin, kind, text, metadata, redacted, embedding, '
        'embedding_model, record_key, version, term_count, occurred_at, created_at, expires_at, '
        'superseded_at), update (record_key, superseded_at) on memory.records to %I', app_role
    );
    execute format('grant delete on memory.records to %I', app_role);
    execute format(
        'grant insert (tenant_key, record_id, subject_key, subject_hash) '
        'on memory.record_subjects to %I', app_role
    );
    execute format(
        'grant insert on memory.provenance, memory.postings, memory.artefacts to %I', app_role
    );
    execute format(
        'grant execute on function memory.write_records, memory.forget, memory.revision, '
        'memory.each, '
        'memory.claim_installation, '
        'memory.pepper_matches, memory.lease_purges, memory.settle_purges, memory.defer_purges, '
        'memory.tombstone_digest to %I', app_role
    );
end $$;

-- Gives a role what an application has; lifting blocks and holds is an operator's right beside it.
create function memory.grant_operator(operator_role name) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform memory.grant_app(operator_role);
end $$;

-- Left to PUBLIC, the cascade function on a trigger of a temporary table is a cross-tenant erase.
revoke execute on all functions in schema memory from public;
