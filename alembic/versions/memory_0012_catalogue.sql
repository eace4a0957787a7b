-- The tables to protect, and their owner: the role that owns most of them.
create function memory.guarded() returns table (relid oid, name text, owner oid)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with found as (
        select c.oid, c.relname::text as name, c.relowner from memory.manifest() as m
        join pg_class as c on c.relname = m.name and c.relnamespace = 'memory'::regnamespace
        where m.kind = 'table'
    )
    select f.oid, f.name, (select mode() within group (order by o.relowner) from found as o)
    from found as f;
$$;

-- Every privilege on our objects that somebody other than their owner has; grantee 0 is PUBLIC.
create function memory.grants()
returns table (class text, object text, part text, grantee oid, privilege text)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with owner as (select distinct g.owner as oid from memory.guarded() as g),
    held (class, object, part, grantee, privilege) as (
        select 'schema', n.nspname::text, null, a.grantee, a.privilege_type
        from pg_namespace as n cross join lateral aclexplode(n.nspacl) as a
        where n.nspname = 'memory' and a.grantee <> n.nspowner
        union all
        select 'table', c.relname::text, null, a.grantee, a.privilege_type
        from pg_class as c cross join lateral aclexplode(c.relacl) as a
        where c.relnamespace = 'memory'::regnamespace and a.grantee <> c.relowner
        union all
        select 'table', c.relname::text, t.attname::text, a.grantee, a.privilege_type
        from pg_class as c join pg_attribute as t on t.attrelid = c.oid and not t.attisdropped
        cross join lateral aclexplode(t.attacl) as a
        where c.relnamespace = 'memory'::regnamespace and a.grantee <> c.relowner
        union all
        select 'function', p.proname::text, null, a.grantee, a.privilege_type
        from pg_proc as p
        cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
        where p.pronamespace = 'memory'::regnamespace and a.grantee <> p.proowner and not exists (
            select from pg_depend as d
            where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
        )
    )
    select h.class, h.object, h.part, h.grantee, h.privilege
    from held as h where h.grantee not in (select o.oid from owner as o);
$$;

-- What is there: everything in schema memory that an erasure relies on, one object a row, in words
-- that PostgreSQL 15 to 18 share. What a host may add without weakening anything (an index, a
-- CHECK, a foreign key of its own) is listed too; whether it matters is for verify_install to say.
-- The version table is absent where the host keeps our revisions in its own history, and functions
-- of an extension are the extension's.
create function memory.catalogue() returns table (kind text, name text, definition text)
language sql stable
set search_path = pg_catalog, pg_temp set quote_all_identifiers = off as $$
    with tables as (
        select c.oid, c.relname::text as name, c.relkind, c.relowner from pg_class as c
        where c.relnamespace = 'memory'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
            and c.relname <> 'alembic_version'
            and not exists (select from pg_inherits as i where i.inhrelid = c.oid)
    ),
    columns as (
        select
            t.name as table_name, t.name || '.' || a.attname as name, a.atttypid, a.atttypmod,
            a.attnotnull, a.attidentity, a.attcollation, a.attstattarget, a.attstorage,
            pg_get_expr(d.adbin, d.adrelid) as expression
        from tables as t
        join pg_attribute as a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
    ),
    triggers as (
        select
            t.name || '.' || g.tgname as name, g.tgname = 'no_truncate' as truncate,
            g.tgenabled::text as enabled,
            replace(pg_get_triggerdef(g.oid), ' ON memory.' || quote_ident(t.name), '')
                as definition
        from tables as t join pg_trigger as g on g.tgrelid = t.oid and not g.tgisinternal
    ),
    functions as (
        select p.oid, p.proname::text as name, p.prosecdef, p.provolatile, p.proisstrict,
            p.proleakproof, p.prolang, p.prosrc
        from pg_proc as p
        where p.pronamespace = 'memory'::regnamespace
            and p.proname <> 'manifest'
            and not exists (
                select from pg_depend as d
                where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
            )
    ),
    listed (kind, name, definition) as (
        select 'table', t.name, case when t.relkind in ('r', 'p') then 'table' else 'other' end
        from tables as t
        union all
        select
            case when c.table_name in (
                'tombstones', 'pending_evidence', 'chain_heads', 'decisions', 'purge_receipts'
            ) then 'evidence column' else 'column' end,
            c.name,
            format_type(c.atttypid, c.atttypmod) || case when c.attnotnull then ' not null'
                else '' end
        from columns as c
        union all
        select 'default', c.name, concat_ws(' ', nullif(c.attidentity::text, ''), c.expression)
        from columns as c where c.expression is not null or c.attidentity <> ''
        union all
        select 'collation', c.name, 'C' from columns as c
        join pg_collation as l on l.oid = c.attcollation and l.collname = 'C'
        union all
        select 'statistics', c.name, '0' from columns as c where c.attstattarget = 0
        union all
        select 'storage', c.name, 'external' from columns as c where c.attstorage = 'e'
        union all
        select
            case
                when k.contype = 'p' then 'primary key'
                when k.contype = 'f' then 'foreign key'
                when k.conname = 'embedding_is_vector' then 'vector check'
                else 'check'
            end,
            t.name || '.' || k.conname,
            case k.contype
                when 'c' then pg_get_expr(k.conbin, k.conrelid)
                -- deferral, validity and enforcement are properties of their own
                else regexp_replace(
                    pg_get_constraintdef(k.oid),
                    '(^(PRIMARY|FOREIGN) KEY )|( (NOT )?(DEFERRABLE|VALID|ENFORCED).*$)', '', 'g'
                )
            end
        from tables as t join pg_constraint as k on k.conrelid = t.oid
        where k.contype in ('p', 'f', 'c')
        union all
        select 'index', x.relname::text, case when i.indisunique then 'unique ' else '' end
            || regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING ', '')
        from tables as t join pg_index as i on i.indrelid = t.oid and not i.indisprimary
        join pg_class as x on x.oid = i.indexrelid
        union all
        select 'policy', t.name || '.' || p.polname, concat_ws(
            ' ', p.polpermissive, p.polcmd,
            array(
                select case r.oid when 0 then 'public' when t.relowner then 'owner' else 'role' end
                from unnest(p.polroles) as r (oid) order by 1
            ),
            pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)
        )
        from tables as t join pg_policy as p on p.polrelid = t.oid
        union all
        select 'truncate', g.name, g.enabled || ' ' || g.definition
        from triggers as g where g.truncate
        union all
        select 'trigger', g.name, g.definition from triggers as g where not g.truncate
        union all
        select 'enabled', g.name, g.enabled from triggers as g where not g.truncate
        union all
        select 'function', f.name, concat_ws(
            chr(10), pg_get_function_arguments(f.oid), pg_get_function_result(f.oid), l.lanname,
            f.provolatile, f.proisstrict, f.proleakproof, f.prosrc
        )
        from functions as f join pg_language as l on l.oid = f.prolang
        union all
        select 'definer', f.name, 'definer' from functions as f where f.prosecdef
    )
    select l.kind, l.name, case when length(l.definition) <= 64 then l.definition
        else left(encode(sha256(convert_to(l.definition, 'UTF8')), 'hex'), 32) end
    from listed as l;
$$;

-- Each function here returns what it found wrong, as (property, offence): names of database objects
-- and roles, never a key or a text. verify_install turns that into its answer. They run as the
-- caller, since a definer would not see what only a superuser may read; and they write nothing.

-- Differences between the manifest and the catalogue. Of a table that is missing or unknown, only
-- that is said.
create function memory.catalogue_offences() returns table (property text, offence text)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with differences as (
        select coalesce(m.kind, c.kind) as kind, coalesce(m.name, c.name) as name, case
            when c.name is null then 'missing' when m.name is null then 'unexpected' else 'changed'
        end as how
        from memory.manifest() as m
        full join memory.catalogue() as c on c.kind = m.kind and c.name = m.name
        where m.definition is distinct from c.definition
    )
    select p.property, case when d.name is not null then d.name || ' is ' || d.how end
    from (values
        ('tables_present', 'table', '{missing,changed}'::text[]),
        ('no_unknown_tables', 'table', '{unexpected}'),
        ('columns_exact', 'column', '{missing,changed,unexpected}'),
        ('evidence_content_free', 'evidence column', '{missing,changed,unexpected}'),
        ('column_defaults', 'default', '{missing,changed,unexpected}'),
        ('keys_collate_c', 'collation', '{missing}'),
        ('statistics_targets', 'statistics', '{missing}'),
        ('embedding_external', 'storage', '{missing}'),
        ('embedding_check', 'vector check', '{missing,changed}'),
        ('checks_present', 'check', '{missing,changed}'),
        ('primary_keys_present', 'primary key', '{missing,changed}'),
        ('foreign_keys_present', 'foreign key', '{missing,changed}'),
        ('indexes_present', 'index', '{missing,changed}'),
        ('policies_present', 'policy', '{missing,changed}'),
        ('no_unknown_policies', 'policy', '{unexpected}'),
        ('triggers_present', 'trigger', '{missing,changed}'),
        ('no_unknown_triggers', 'trigger', '{unexpected}'),
        ('triggers_enabled', 'enabled', '{changed}'),
        ('truncate_refused', 'truncate', '{missing,changed}'),
        ('functions_present', 'function', '{missing}'),
        ('function_bodies', 'function', '{changed}'),
        ('no_unknown_functions', 'function', '{unexpected}'),
        ('function_security', 'definer', '{missing,unexpected}')
    ) as p (property, kind, hows)
    left join differences as d on d.kind = p.kind and d.how = any (p.hows)
        and (p.kind = 'table' or split_part(d.name, '.', 1) not in (
            select t.name from differences as t where t.kind = 'table'
        ));
$$;

-- What is set on, hangs on or copies our tables.
create function memory.table_offences() returns table (property text, offence text)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with recursive ours as (
        select g.relid, g.name, g.owner, c.relrowsecurity, c.relforcerowsecurity, c.relpersistence,
            c.relreplident, c.relowner
        from memory.guarded() as g join pg_class as c on c.oid = g.relid
    ),
    children (relid) as (
        select i.inhrelid from ours as o join pg_inherits as i on i.inhparent = o.relid
        union
        select i.inhrelid from children as c join pg_inherits as i on i.inhparent = c.relid
    ),
    -- A view is a rule of type "select"; a view over a view counts, whoever checks the first.
    views (relid) as (
        select r.ev_class from ours as o
        join pg_depend as d on d.refclassid = 'pg_class'::regclass and d.refobjid = o.relid
            and d.classid = 'pg_rewrite'::regclass
        join pg_rewrite as r on r.oid = d.objid and r.ev_class <> o.relid
        union
        select r.ev_class from views as v
        join pg_depend as d on d.refclassid = 'pg_class'::regclass and d.refobjid = v.relid
            and d.classid = 'pg_rewrite'::regclass
        join pg_rewrite as r on r.oid = d.objid and r.ev_class <> v.relid
    )
    select 'rls_enabled', o.name from ours as o where not o.relrowsecurity
    union all
    select 'rls_forced', o.name from ours as o where not o.relforcerowsecurity
    union all
    select 'tables_permanent', o.name from ours as o where o.relpersistence <> 'p'
    union all
    -- FULL would write whole rows, texts included, into the log on every delete.
    select 'no_full_replica_identity', o.name from ours as o where o.relreplident = 'f'
    union all
    select 'one_owner', o.name from ours as o where o.relowner <> o.owner
    union all
    -- Such an owner is not bound by the policies even where they are forced.
    select 'owner_bound_by_rls', r.rolname from pg_roles as r
    where r.oid = any (select o.owner from ours as o) and (r.rolsuper or r.rolbypassrls)
    union all
    select 'no_rules', o.name || '.' || r.rulename from ours as o
    join pg_rewrite as r on r.ev_class = o.relid
    union all
    -- A partition or child starts without policies and statement triggers, TRUNCATE and DETACH
    -- pass its parent's refusal, and our trigger functions refuse to serve another table.
    select 'no_children', c.relid::regclass::text from children as c
    union all
    select 'views_are_invoker', c.oid::regclass::text from views as v
    join pg_class as c on c.oid = v.relid and c.relkind = 'v'
    where not exists (
        select from pg_options_to_table(c.reloptions) as p
        where p.option_name = 'security_invoker' and p.option_value::boolean
    )
    union all
    select 'no_materialized_views', c.oid::regclass::text from views as v
    join pg_class as c on c.oid = v.relid and c.relkind = 'm'
    union all
    -- A subscriber has a copy that our triggers do not reach.
    select 'not_published', p.pubname || case when p.pubdelete then '' else ' without deletes' end
    from pg_publication as p
    where p.puballtables
        or exists (
            select from pg_publication_rel as r
            where r.prpubid = p.oid and r.prrelid in (select o.relid from ours as o)
        )
        or exists (
            select from pg_publication_namespace as n
            where n.pnpubid = p.oid and n.pnnspid = 'memory'::regnamespace
        )
    union all
    -- Applying changes fires no statement trigger: neither the cascade nor the evidence.
    select 'not_subscribed', o.name from ours as o
    join pg_subscription_rel as s on s.srrelid = o.relid;
$$;

revoke execute on all functions in schema memory from public;
