"""What is done to an installation, as a superuser, and what verify_install must say to it.

``{owner}``, ``{app}``, ``{operator}``, ``{bypass}`` and ``{host}`` stand for roles of the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

VECTOR_CHECK = "alter table memory.records drop constraint embedding_is_vector"
FOREIGN_KEY = (
    "foreign key (tenant_key, source_id) references memory.records deferrable initially deferred"
)
RECORDS = """
    insert into memory.records (tenant_key, record_id, text)
        select 'acme', gen_random_uuid(), 'Dana likes window seats ' || n
        from generate_series(1, 50) as n;
    insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)
        select tenant_key, record_id, 'customer:dana', repeat('a', 64) from memory.records;
    set constraints all immediate;
    set constraints all deferred
"""
SKIP = "create function public.skip() returns trigger language plpgsql as 'begin return null; end'"
INVOKER_VIEW = (
    "create view public.mine with (security_invoker = true) as select * from memory.records"
)
HOST_TABLE = "create table public.tickets (ticket_id bigint, tenant_key text, record_id uuid)"


@dataclass(frozen=True)
class Damage:
    """What is done to an installation, and which properties must turn false for it, no others."""

    turns: str
    by: str


DAMAGES = [
    # tables and columns
    Damage(
        "tables_present no_unknown_tables",
        "alter table memory.tenant_counts rename to counts",
    ),
    Damage("no_unknown_tables", "create table memory.notes (note text)"),
    Damage("no_unknown_tables", "create view memory.now as select now()"),
    Damage("columns_exact", "alter table memory.records add column note text"),
    Damage("columns_exact", "alter table memory.subjects alter column blocked drop not null"),
    Damage("evidence_content_free", "alter table memory.tombstones add column note text"),
    Damage("evidence_content_free", "alter table memory.decisions add column subject_key text"),
    Damage(
        "evidence_content_free", "alter table memory.purge_receipts add column artefact_id text"
    ),
    Damage(
        "column_defaults", "alter table memory.pending_evidence alter column xid set default '1'"
    ),
    Damage("column_defaults", "alter table memory.records alter embedding_dims drop expression"),
    Damage(
        "keys_collate_c",
        'alter table memory.record_subjects alter column subject_key type text collate "POSIX"',
    ),
    Damage("embedding_external", "alter table memory.records alter embedding set storage main"),
    Damage("tables_permanent", "alter table memory.tenant_counts set unlogged"),
    Damage("one_owner", "alter table memory.postings owner to {host}"),
    Damage("owner_bound_by_rls", "alter role {owner} bypassrls"),
    # constraints and indexes
    Damage("primary_keys_present", "alter table memory.postings drop constraint postings_pkey"),
    Damage("checks_present", "alter table memory.tombstones drop constraint subject_hash_is_hash"),
    Damage(
        "checks_validated",
        "alter table memory.records drop constraint metadata_is_object,"
        " add constraint metadata_is_object check (jsonb_typeof(metadata) = 'object') not valid",
    ),
    Damage("embedding_check", VECTOR_CHECK),
    Damage(
        "embedding_check",
        f"{VECTOR_CHECK}, add constraint embedding_is_vector check (cardinality(embedding) > 0)",
    ),
    Damage(
        "foreign_keys_present", "alter table memory.provenance drop constraint provenance_source"
    ),
    Damage(
        "foreign_keys_present",
        "alter table memory.provenance drop constraint provenance_source, add constraint"
        f" provenance_source {FOREIGN_KEY.replace('records ', 'records on delete cascade ')}",
    ),
    Damage(
        "foreign_keys_validated",
        "alter table memory.provenance drop constraint provenance_source,"
        f" add constraint provenance_source {FOREIGN_KEY} not valid",
    ),
    Damage(
        "foreign_keys_deferred",
        "alter table memory.record_subjects alter constraint link_record not deferrable",
    ),
    Damage(
        "foreign_keys_enforced triggers_enabled truncate_refused",
        "alter table memory.provenance disable trigger all",
    ),
    Damage(
        "foreign_keys_enforced",
        "do $$ begin execute (select format('alter table %s disable trigger %I',"
        " tgrelid::regclass, tgname) from pg_trigger where tgisinternal and tgrelid ="
        " 'memory.records'::regclass limit 1); end $$",
    ),
    Damage("foreign_keys_indexed indexes_present", "drop index memory.provenance_sources"),
    Damage("indexes_present", "drop index memory.records_recent"),
    Damage(
        "indexes_present",
        "drop index memory.records_current; create index records_current"
        " on memory.records (tenant_key, record_key)",
    ),
    Damage(
        "indexes_valid",
        "update pg_index set indisvalid = false"
        " where indexrelid = 'memory.records_recent'::regclass",
    ),
    # row level security
    Damage("rls_enabled", "alter table memory.postings disable row level security"),
    Damage("rls_forced", "alter table memory.tombstones no force row level security"),
    Damage("policies_present", "drop policy tenant on memory.provenance"),
    Damage("policies_present", "alter policy tenant on memory.records using (true)"),
    Damage("policies_present", "alter policy owner_only on memory.artefact_claims to {app}"),
    Damage("no_unknown_policies", "create policy open on memory.records using (true)"),
    Damage("no_rules", "create rule keep as on delete to memory.records do instead nothing"),
    # triggers
    Damage("triggers_present", "drop trigger erase on memory.records"),
    Damage(
        "triggers_present",
        "drop trigger edge_kept on memory.provenance; create trigger edge_kept after delete on"
        " memory.provenance referencing old table as gone for each statement"
        " execute function memory.link_kept();"
        " alter table memory.provenance enable always trigger edge_kept",
    ),
    Damage("triggers_enabled", "alter table memory.record_subjects disable trigger admit"),
    Damage("triggers_enabled", "alter table memory.records enable trigger erase"),
    Damage("triggers_enabled", "alter table memory.records enable replica trigger complete"),
    Damage("truncate_refused", "drop trigger no_truncate on memory.postings"),
    Damage("truncate_refused", "alter table memory.tombstones enable trigger no_truncate"),
    Damage(
        "no_unknown_triggers",
        f"{SKIP}; create trigger host before delete on memory.records for each row"
        " execute function public.skip()",
    ),
    # functions
    Damage("functions_present", "drop function memory.strays"),
    Damage(
        "function_bodies",
        "create or replace function memory.check_tenant(tenant text) returns void language plpgsql"
        " stable set search_path = pg_catalog, pg_temp as 'begin end'",
    ),
    Damage(
        "no_unknown_functions",
        "create function memory.extra() returns int language sql as 'select 1';"
        " revoke execute on function memory.extra() from public",
    ),
    Damage("function_security", "alter function memory.forget security invoker"),
    Damage("function_security function_settings", "alter function memory.closure security definer"),
    Damage("function_owner", "alter function memory.closure owner to {host}"),
    Damage("function_settings", "alter function memory.erase set search_path = public"),
    Damage("function_settings", "alter function memory.erase reset row_security"),
    Damage(
        "function_settings", "alter function memory.erase set session_replication_role = replica"
    ),
    Damage("no_public_execute", "grant execute on function memory.erase to public"),
    # privileges
    Damage("no_public_table_privileges", "grant select on memory.records to public"),
    Damage("no_public_table_privileges", "grant select (text) on memory.records to public"),
    Damage("no_public_schema_privileges", "grant usage on schema memory to public"),
    Damage("schema_closed", "grant create on schema memory to {app}"),
    Damage("flags_owner_only", "grant update (held) on memory.records to {app}"),
    Damage("flags_owner_only", "grant update on memory.subjects to {app}"),
    Damage("flags_owner_only", "grant insert on memory.records to {app}"),
    Damage("links_not_forged", "grant insert on memory.record_subjects to {app}"),
    Damage("links_not_forged", "grant insert (inherited) on memory.record_subjects to {app}"),
    Damage("evidence_owner_only", "grant insert on memory.tombstones to {app}"),
    Damage("evidence_owner_only", "grant update (digest) on memory.chain_heads to {app}"),
    Damage("private_tables_owner_only", "grant select on memory.artefact_claims to {app}"),
    Damage("no_structural_privileges", "grant trigger on memory.records to {app}"),
    Damage("no_structural_privileges", "grant truncate on memory.postings to {app}"),
    Damage(
        "default_privileges",
        "alter default privileges for role {owner} in schema memory"
        " grant select on tables to {host}",
    ),
    Damage(
        "default_privileges",
        "alter default privileges for role {owner} grant select on tables to {host}",
    ),
    Damage("users_bound_by_rls", "alter role {app} bypassrls"),
    Damage("users_bound_by_rls", "alter role {app} superuser"),
    Damage("users_bound_by_rls", "grant {app} to {bypass}"),
    Damage("users_not_owner", "grant {owner} to {app}"),
    Damage("users_not_owner", "grant {owner} to {host}; grant {host} to {app}"),
    Damage("users_not_writing_all", "grant pg_write_all_data to {app}"),
    # statistics
    Damage("statistics_targets", "alter table memory.records alter column text set statistics 100"),
    Damage("statistics_targets", "alter table memory.postings alter column term set statistics -1"),
    Damage("index_statistics_targets", "create index peek on memory.records (lower(text))"),
    Damage(
        "no_extended_statistics",
        "create statistics public.s (dependencies) on kind, origin from memory.records",
    ),
    Damage(
        "no_statistics_of_content",
        f"{RECORDS}; alter table memory.records alter column text set statistics 100;"
        " analyze memory.records; alter table memory.records alter column text set statistics 0",
    ),
    Damage(
        "no_statistics_of_content",
        f"{RECORDS}; create index peek on memory.records (lower(text)); analyze memory.records;"
        " alter index memory.peek alter column 1 set statistics 0",
    ),
    # copies and ways around
    Damage("no_children", "create table public.child () inherits (memory.records)"),
    Damage("no_children", "create table memory.child () inherits (memory.records)"),
    Damage("views_are_invoker", "create view public.peek as select record_id from memory.records"),
    Damage(
        "views_are_invoker",
        f"{INVOKER_VIEW}; create view public.peek as select record_id from public.mine",
    ),
    Damage(
        "no_materialized_views",
        "create materialized view public.peek as select text from memory.records",
    ),
    Damage("no_full_replica_identity", "alter table memory.records replica identity full"),
    Damage("not_published", "create publication p for table memory.records"),
    Damage("not_published", "create publication p for all tables with (publish = 'insert')"),
    Damage("not_published", "create publication p for tables in schema memory"),
    Damage(
        "not_subscribed",
        "create subscription s connection '' publication p"
        " with (connect = false, enabled = false, slot_name = none);"
        " insert into pg_subscription_rel (srsubid, srrelid, srsubstate)"
        " select oid, 'memory.records'::regclass, 'r' from pg_subscription where subname = 's'",
    ),
    Damage("no_preset_tenant", "alter role {app} set app.current_tenant = 'acme'"),
    Damage("no_preset_tenant", "alter database {database} set app.current_tenant = 'acme'"),
    Damage("no_preset_label", "alter role {app} set memory.erasure = 'x'"),
    Damage(
        "no_preset_replication_role",
        "alter role {app} in database {database} set session_replication_role = replica",
    ),
    Damage("no_preset_row_security", "alter role {app} set row_security = off"),
    # the installation
    Damage(
        "encoding_utf8",
        "update pg_database set encoding = pg_char_to_encoding('SQL_ASCII')"
        " where datname = current_database()",
    ),
    Damage("revision", "update memory.alembic_version set version_num = 'memory_0001'"),
    Damage("installation_recorded", "delete from memory.installation"),
]

# What a host does beside us, and operators with us, without weakening anything.
ALLOWED = [
    "select memory.grant_app('{host}')",
    "select memory.grant_auditor('{host}')",
    "alter role {bypass} nobypassrls; select memory.grant_app('{bypass}')",
    "grant {app} to {host}",
    INVOKER_VIEW,
    f"{INVOKER_VIEW}; create view public.two with (security_invoker) as"
    " select text from public.mine",
    HOST_TABLE,
    f"{HOST_TABLE}; alter table public.tickets add foreign key (tenant_key, record_id)"
    " references memory.records on delete set null (record_id)",
    "create index host on memory.records (tenant_key, kind)",
    "create index peek on memory.records (lower(text));"
    " alter index memory.peek alter column 1 set statistics 0",
    f"{RECORDS}; analyze memory.records",
    "alter table memory.records replica identity using index records_pkey",
    f"{HOST_TABLE}; create publication p for table public.tickets",
    "alter role {app} set session_replication_role = origin",
    "alter role {app} set row_security = on",
    "alter role {app} set statement_timeout = '5s'",
    "alter default privileges for role {owner} in schema public grant select on tables to {host}",
    "alter default privileges for role {owner} in schema memory revoke execute on functions"
    " from public",
    "revoke select on memory.tombstones from {app}",
    "drop table memory.alembic_version",
    "select memory.claim_installation(repeat('a', 64))",
    "drop extension if exists vector",
]
