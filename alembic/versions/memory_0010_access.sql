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

-- A hold or a block ends by the decision to end it, which stays on record, and by nothing else: the
-- owner's UPDATE would lift it without a trace, to delete then.
create function memory.decision_kept() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set jit = off as $$
declare
    caller text := current_setting('app.current_tenant', true);
    lifted boolean := false;
begin
    if tg_relid not in ('memory.records'::regclass, 'memory.subjects'::regclass)
        and pg_partition_root(tg_relid) is distinct from 'memory.records'::regclass
    then
        raise exception 'this trigger belongs to memory.records and memory.subjects'
            using errcode = 'ME009';
    end if;
    perform set_config('app.current_tenant', old.tenant_key, true);
    if tg_relid <> 'memory.subjects'::regclass then
        lifted := cardinality(memory.held_among(old.tenant_key, array[old.record_id])) = 0;
    elsif tg_op = 'UPDATE' then
        lifted := not exists (
            select from (
                values (old.held and not new.held, 'hold', 'release'),
                    (old.blocked and not new.blocked, 'block', 'readmit')
            ) as t (ended, setting, lifting)
            where t.ended and t.lifting is distinct from (
                select d.action from memory.decisions as d
                where d.tenant_key = old.tenant_key and d.subject_hash = old.subject_hash
                    and d.action in (t.setting, t.lifting)
                order by d.seq desc limit 1
            )
        );
    end if;
    perform set_config('app.current_tenant', coalesce(caller, ''), true);
    if not lifted then
        raise exception 'a hold or a block ends by its decision' using errcode = 'ME010';
    end if;
    return new;
end $$;

create trigger hold_kept before update of held on memory.records
for each row when (old.held and not new.held) execute function memory.decision_kept();

create trigger decision_kept before update on memory.subjects
for each row when (old.held and not new.held or old.blocked and not new.blocked)
execute function memory.decision_kept();

create trigger decision_stays before delete on memory.subjects
for each row when (old.held or old.blocked) execute function memory.decision_kept();

create trigger subject_fixed before update of tenant_key, subject_hash on memory.subjects
for each statement execute function memory.refuse_identity();

alter table memory.records enable always trigger hold_kept;

alter table memory.subjects enable always trigger decision_kept;

alter table memory.subjects enable always trigger decision_stays;

alter table memory.subjects enable always trigger subject_fixed;

-- Records the check value of the pepper once; false when another one is recorded. A process with
-- another pepper would write other hashes: blocks and holds would miss, tombstones not match.
create function memory.claim_installation(check_value text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
begin
    -- Not even an UPDATE of no row: on a replica what only reads asks this too.
    if exists (select from memory.installation where pepper_check is null) then
        update memory.installation set pepper_check = check_value where pepper_check is null;
    end if;
    return exists (select from memory.installation where pepper_check = check_value);
end $$;

-- True, false, or null while no process has claimed the installation yet.
create function memory.pepper_matches(check_value text) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp set row_security = on as $$
    select i.pepper_check = check_value from memory.installation as i;
$$;

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
        'superseded_at), update (record_key, expires_at, superseded_at) on memory.records to %I',
        app_role
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
        'memory.tombstone_digest, memory.hold, memory.sweep to %I', app_role
    );
end $$;

-- Gives a role what an application has; lifting blocks and holds is an operator's right beside it.
create function memory.grant_operator(operator_role name) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform memory.grant_app(operator_role);
    execute format(
        'grant execute on function memory.release, memory.readmit to %I', operator_role
    );
end $$;

-- Left to PUBLIC, the cascade function on a trigger of a temporary table is a cross-tenant erase.
revoke execute on all functions in schema memory from public;
