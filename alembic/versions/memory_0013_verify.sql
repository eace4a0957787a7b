create function memory.constraint_offences() returns table (property text, offence text)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with constraints as (
        select k.oid, g.name || '.' || k.conname as name, k.contype, k.condeferrable,
            k.condeferred, k.conkey, k.conrelid,
            -- conenforced exists since 18
            k.convalidated and coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true) as holds
        from memory.guarded() as g
        join pg_constraint as k on k.conrelid = g.relid
        join memory.manifest() as m on m.name = g.name || '.' || k.conname
            and m.kind in ('check', 'vector check', 'foreign key')
    )
    select 'checks_validated', k.name from constraints as k where k.contype = 'c' and not k.holds
    union all
    select 'foreign_keys_validated', k.name from constraints as k
    where k.contype = 'f' and not k.holds
    union all
    select 'foreign_keys_deferred', k.name from constraints as k
    where k.contype = 'f' and not (k.condeferrable and k.condeferred)
    union all
    -- "disable trigger all", a superuser's, leaves a foreign key in place that checks nothing.
    select 'foreign_keys_enforced', k.name from constraints as k
    where k.contype = 'f' and 4 <> (
        select count(*) from pg_trigger as t
        where t.tgconstraint = k.oid and t.tgenabled in ('O', 'A')
    )
    union all
    -- A partial index serves when its predicate is that the key is there.
    select 'foreign_keys_indexed', k.name from constraints as k
    where k.contype = 'f' and not exists (
        select from pg_index as i
        where i.indrelid = k.conrelid and i.indisvalid
            and (i.indkey::smallint[])[0:cardinality(k.conkey) - 1] = k.conkey
            and (
                i.indpred is null
                or pg_get_expr(i.indpred, i.indrelid) in (
                    select format('(%I IS NOT NULL)', a.attname) from pg_attribute as a
                    where a.attrelid = k.conrelid and a.attnum = any (k.conkey)
                )
            )
    );
$$;

create function memory.index_offences() returns table (property text, offence text)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select 'indexes_valid', i.indexrelid::regclass::text from memory.guarded() as g
    join pg_index as i on i.indrelid = g.relid
    where not (i.indisvalid and i.indisready and i.indislive)
    union all
    -- An expression has statistics of its own, which pg_stats shows past row level security.
    select 'index_statistics_targets', i.indexrelid::regclass::text from memory.guarded() as g
    join pg_index as i on i.indrelid = g.relid
    join pg_attribute as a on a.attrelid = i.indexrelid
    where i.indkey[a.attnum - 1] = 0 and a.attstattarget is distinct from 0
    union all
    select 'no_extended_statistics', s.stxname::text from memory.guarded() as g
    join pg_statistic_ext as s on s.stxrelid = g.relid;
$$;

-- Owners, privileges, memberships and settings.
create function memory.access_offences() returns table (property text, offence text)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with recursive owner as (select distinct g.owner as oid from memory.guarded() as g),
    functions as (
        select p.proname::text as name, p.proowner, p.prosecdef, p.proconfig
        from pg_proc as p join memory.manifest() as m on m.kind = 'function' and m.name = p.proname
        where p.pronamespace = 'memory'::regnamespace
    ),
    grants as (
        select h.class, h.object, h.part, h.privilege, h.grantee,
            concat_ws('.', h.object, h.part) || ' ' || h.privilege as name
        from memory.grants() as h
    ),
    -- Who may use the memory: whoever has a privilege, and members who can act with it.
    -- inherit_option and set_option exist since 16.
    users (oid, direct) as (
        select h.grantee, true from grants as h where h.grantee <> 0 and h.class <> 'schema'
        union
        select m.member, false from users as u join pg_auth_members as m on m.roleid = u.oid
        where coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, true)
            or coalesce((to_jsonb(m) ->> 'set_option')::boolean, true)
    )
    select 'function_owner', f.name from functions as f
    where f.proowner not in (select o.oid from owner as o)
    union all
    select 'function_settings', f.name from functions as f
    where f.proconfig is null or not 'search_path=pg_catalog, pg_temp' = any (f.proconfig)
        or (f.prosecdef and not 'row_security=on' = any (f.proconfig))
        or exists (
            select from unnest(f.proconfig) as s (setting)
            where split_part(s.setting, '=', 1) not in (
                'search_path', 'row_security', 'plan_cache_mode', 'enable_seqscan',
                'enable_bitmapscan', 'enable_nestloop', 'enable_sort', 'jit',
                'quote_all_identifiers'
            )
        )
    union all
    select 'no_public_execute', h.name from grants as h where h.class = 'function' and h.grantee = 0
    union all
    select 'no_public_table_privileges', h.name from grants as h
    where h.class = 'table' and h.grantee = 0
    union all
    select 'no_public_schema_privileges', h.name from grants as h
    where h.class = 'schema' and h.grantee = 0
    union all
    select 'schema_closed', h.name from grants as h
    where h.class = 'schema' and h.grantee <> 0 and h.privilege = 'CREATE'
    union all
    -- A part is null where the privilege is on the whole table.
    select 'flags_owner_only', h.name from grants as h
    where h.class = 'table' and h.grantee <> 0 and h.privilege in ('INSERT', 'UPDATE')
        and (h.object, coalesce(h.part, 'held')) in (
            ('subjects', 'blocked'), ('subjects', 'held'), ('records', 'held')
        )
    union all
    -- An inherited link is admitted without asking whether the person is blocked.
    select 'links_not_forged', h.name from grants as h
    where h.object = 'record_subjects' and h.grantee <> 0
        and h.privilege = 'INSERT' and coalesce(h.part, 'inherited') = 'inherited'
    union all
    select 'evidence_owner_only', h.name from grants as h
    where h.grantee <> 0 and h.privilege in ('INSERT', 'UPDATE', 'DELETE') and h.object in (
        'tombstones', 'pending_evidence', 'chain_heads', 'decisions', 'purge_receipts'
    )
    union all
    -- Who reads the claims learns what another tenant registered.
    select 'private_tables_owner_only', h.name from grants as h
    where h.object in ('artefact_claims', 'installation') and h.grantee <> 0
    union all
    -- TRIGGER lets its holder run code as whoever writes; REFERENCES shows which keys exist.
    select 'no_structural_privileges', h.name from grants as h
    where h.class = 'table' and h.grantee <> 0
        and h.privilege in ('TRUNCATE', 'TRIGGER', 'REFERENCES')
    union all
    select 'default_privileges', concat_ws(
        ' ', pg_get_userbyid(d.defaclrole), a.privilege_type, d.defaclobjtype
    )
    from pg_default_acl as d cross join lateral aclexplode(d.defaclacl) as a
    where a.grantee <> d.defaclrole and (
        d.defaclnamespace = 'memory'::regnamespace
        or (d.defaclnamespace = 0 and d.defaclrole in (select o.oid from owner as o))
    )
    union all
    -- A superuser among the members is an administrator; as the grantee it is the application.
    select 'users_bound_by_rls', r.rolname from users as u join pg_roles as r on r.oid = u.oid
    where (r.rolsuper or r.rolbypassrls) and (u.direct or not r.rolsuper)
    union all
    select 'users_not_owner', r.rolname from users as u join pg_roles as r on r.oid = u.oid
    where not r.rolsuper and pg_has_role(u.oid, (select o.oid from owner as o), 'member')
    union all
    select 'users_not_writing_all', r.rolname from users as u join pg_roles as r on r.oid = u.oid
    where not r.rolsuper and pg_has_role(u.oid, 'pg_write_all_data', 'member')
    union all
    select p.property, p.setting || ' of ' || coalesce(pg_get_userbyid(nullif(s.setrole, 0)), 'all')
    from pg_db_role_setting as s cross join lateral unnest(s.setconfig) as c (setting)
    join (values
        ('no_preset_tenant', 'app.current_tenant', ''),
        ('no_preset_label', 'memory.erasure', ''),
        ('no_preset_replication_role', 'session_replication_role', 'origin'),
        ('no_preset_row_security', 'row_security', 'on')
    ) as p (property, setting, harmless)
        on lower(split_part(c.setting, '=', 1)) = p.setting
        and lower(substr(c.setting, strpos(c.setting, '=') + 1)) <> p.harmless
    where s.setdatabase = 0
        or s.setdatabase = (select d.oid from pg_database as d where d.datname = current_database())
    union all
    -- The server's own file counts like a preset.
    select 'no_preset_replication_role', g.name || ' of this session' from pg_settings as g
    where g.name = 'session_replication_role' and g.reset_val <> 'origin'
    union all
    select 'encoding_utf8', pg_encoding_to_char(d.encoding) from pg_database as d
    where d.datname = current_database() and pg_encoding_to_char(d.encoding) <> 'UTF8';
$$;

-- What has to be read from tables. Null where this role may not.
create function memory.installation_state()
returns table (property text, ok boolean, detail text)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    wanted text := (select m.name from memory.manifest() as m where m.kind = 'revision');
    owner oid := (select distinct g.owner from memory.guarded() as g);
    copies text;
    claimed boolean;
begin
    property := 'revision';
    if to_regclass('memory.alembic_version') is null then
        ok := true;
        detail := 'in the history of the host';
    elsif has_table_privilege('memory.alembic_version', 'select') then
        ok := exists (select from memory.alembic_version as v where v.version_num = wanted);
        detail := case when ok then wanted else 'not ' || wanted end;
    else
        ok := null;
        detail := 'no privilege to read it';
    end if;
    return next;

    property := 'installation_recorded';
    if to_regclass('memory.installation') is null then
        ok := false;
        detail := 'the table is missing';
    elsif has_table_privilege('memory.installation', 'select')
        and (not row_security_active('memory.installation') or pg_has_role(owner, 'usage'))
    then
        select count(*) = 1, bool_or(to_jsonb(i) ->> 'pepper_check' is not null)
        into ok, claimed from memory.installation as i;
        detail := case when claimed then 'a pepper is recorded' else 'no pepper recorded yet' end;
    else
        ok := null;
        detail := 'no privilege to read it';
    end if;
    return next;

    -- A target of zero stops new samples and leaves the old ones.
    property := 'no_statistics_of_content';
    if has_table_privilege('pg_catalog.pg_statistic', 'select') then
        select string_agg(distinct s.starelid::regclass::text, ', ') into copies
        from pg_statistic as s
        where exists (
            select from memory.guarded() as g join pg_attribute as a on a.attrelid = g.relid
            join memory.manifest() as m
                on m.kind = 'statistics' and m.name = g.name || '.' || a.attname
            where s.starelid = g.relid and s.staattnum = a.attnum
        ) or exists (
            select from memory.guarded() as g join pg_index as i on i.indrelid = g.relid
            where s.starelid = i.indexrelid
        );
        ok := copies is null;
        detail := coalesce(copies, '');
    else
        ok := null;
        detail := 'only a superuser may read pg_statistic';
    end if;
    return next;

    property := 'vector_search';
    ok := true;
    detail := coalesce(
        (select 'pgvector ' || e.extversion from pg_extension as e where e.extname = 'vector'),
        'no pgvector: vectors are ranked in the client'
    );
    return next;
end $$;

-- Whether the installation still enforces what it promises. ok is null where the caller may not
-- read what the answer depends on, never for a superuser. detail names what is wrong.
-- Beyond its reach: a superuser who sets session_replication_role in a session of his own, and
-- whoever owns this function.
create function memory.verify_install() returns table (property text, ok boolean, detail text)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with offences (property, offence) as (
        select o.property, o.offence from memory.catalogue_offences() as o
        union all
        select o.property, o.offence from memory.table_offences() as o
        union all
        select o.property, o.offence from memory.constraint_offences() as o
        union all
        select o.property, o.offence from memory.index_offences() as o
        union all
        select o.property, o.offence from memory.access_offences() as o
        union all
        select u.property, null from unnest(array[
            'rls_enabled', 'rls_forced', 'tables_permanent', 'no_full_replica_identity',
            'one_owner', 'owner_bound_by_rls', 'no_rules', 'no_children', 'views_are_invoker',
            'no_materialized_views', 'not_published', 'not_subscribed', 'checks_validated',
            'foreign_keys_validated', 'foreign_keys_deferred', 'foreign_keys_enforced',
            'foreign_keys_indexed', 'indexes_valid', 'index_statistics_targets',
            'no_extended_statistics', 'function_owner', 'function_settings', 'no_public_execute',
            'no_public_table_privileges', 'no_public_schema_privileges', 'schema_closed',
            'flags_owner_only', 'links_not_forged', 'evidence_owner_only',
            'private_tables_owner_only', 'no_structural_privileges', 'default_privileges',
            'users_bound_by_rls', 'users_not_owner', 'users_not_writing_all', 'no_preset_tenant',
            'no_preset_label', 'no_preset_replication_role', 'no_preset_row_security',
            'encoding_utf8'
        ]) as u (property)
    )
    select o.property, count(o.offence) = 0,
        coalesce(string_agg(distinct o.offence, ', ' order by o.offence), '')
    from offences as o group by o.property
    union all
    select s.property, s.ok, s.detail from memory.installation_state() as s
    order by 1;
$$;

-- Gives a role that is neither the owner nor a superuser what verify_install needs. Not part of
-- grant_app: the answer is a map of what is weak, which an application has no use for.
create function memory.grant_auditor(auditor name) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('grant usage on schema memory to %I', auditor);
    execute format(
        'grant execute on function memory.verify_install, memory.installation_state, '
        'memory.access_offences, memory.index_offences, memory.constraint_offences, '
        'memory.table_offences, memory.catalogue_offences, memory.catalogue, memory.manifest, '
        'memory.guarded, memory.grants to %I', auditor
    );
end $$;

-- The newest revision that was applied, whoever keeps the history: where a host has our revisions
-- in its own, there is no memory.alembic_version to ask.
create function memory.revision() returns text
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    select 'memory_0013';
$$;

revoke execute on all functions in schema memory from public;
