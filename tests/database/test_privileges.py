"""What roles may do, and what they get by putting things in the way."""

from __future__ import annotations

import asyncpg
import pytest

from memory.fingerprint import tombstone_digest
from memory.types import Tombstone
from rawsql import (
    TABLES,
    Connection,
    act,
    acting,
    damage,
    derive,
    forget,
    hash_of,
    living,
    refused,
    remember,
    tombstones,
)
from servers import Database, Postgres

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"

READ = {
    "records",
    "record_subjects",
    "provenance",
    "postings",
    "tenant_counts",
    "tombstones",
    "artefacts",
    "purges",
    "purge_receipts",
    "decisions",
}
TABLE_GRANTS = {
    **{table: {"SELECT"} for table in READ},
    "records": {"SELECT", "DELETE"},
    "provenance": {"SELECT", "INSERT"},
    "postings": {"SELECT", "INSERT"},
    "artefacts": {"SELECT", "INSERT"},
}
INSERTED = {
    "records": "tenant_key record_id origin kind text metadata redacted embedding embedding_model"
    " record_key version term_count occurred_at created_at expires_at superseded_at",
    "record_subjects": "tenant_key record_id subject_key subject_hash",
}
UPDATED = {"records": "record_key superseded_at"}
COLUMN_GRANTS = {
    (table, column, verb)
    for verb, columns in (("INSERT", INSERTED), ("UPDATE", UPDATED))
    for table, names in columns.items()
    for column in names.split()
}
FUNCTIONS = {
    "write_records",
    "forget",
    "claim_installation",
    "pepper_matches",
    "revision",
    "each",
    "lease_purges",
    "settle_purges",
    "defer_purges",
    "tombstone_digest",
}


async def table_grants(inspector: Connection, role: str) -> dict[str, set[str]]:
    rows = await inspector.fetch(
        "select c.relname, a.privilege_type from pg_class as c, aclexplode(c.relacl) as a"
        " where c.relnamespace = 'memory'::regnamespace and c.relkind <> 'S'"
        " and a.grantee = (select oid from pg_roles where rolname = $1)",
        role,
    )
    grants: dict[str, set[str]] = {}
    for name, verb in rows:
        grants.setdefault(name, set()).add(verb)
    return grants


async def column_grants(inspector: Connection, role: str) -> set[tuple[str, str, str]]:
    rows = await inspector.fetch(
        "select c.relname, t.attname, a.privilege_type from pg_attribute as t"
        " join pg_class as c on c.oid = t.attrelid, aclexplode(t.attacl) as a"
        " where c.relnamespace = 'memory'::regnamespace"
        " and a.grantee = (select oid from pg_roles where rolname = $1)",
        role,
    )
    return {tuple(row) for row in rows}


@pytest.mark.parametrize("role", ["app", "operator"])
async def test_the_application_has_exactly_these_rights(
    inspector: Connection, shared: Database, role: str
) -> None:
    name = shared.role(role)
    assert await table_grants(inspector, name) == TABLE_GRANTS
    assert await column_grants(inspector, name) == COLUMN_GRANTS
    schema = await inspector.fetch(
        "select a.privilege_type from pg_namespace, aclexplode(nspacl) as a"
        " where nspname = 'memory' and a.grantee = (select oid from pg_roles where rolname = $1)",
        name,
    )
    assert [row[0] for row in schema] == ["USAGE"]
    sequences = await inspector.fetch(
        "select relname from pg_class where relnamespace = 'memory'::regnamespace"
        " and case when relkind = 'S'"
        " then has_sequence_privilege($1, oid, 'usage, select, update') end",
        name,
    )
    assert sequences == []


@pytest.mark.parametrize(("role", "expected"), [("app", FUNCTIONS), ("host", set())])
async def test_a_role_may_call_exactly_these_functions(
    inspector: Connection, shared: Database, role: str, expected: set[str]
) -> None:
    rows = await inspector.fetch(
        "select proname from pg_proc where pronamespace = 'memory'::regnamespace"
        " and has_function_privilege($1, oid, 'execute')",
        shared.role(role),
    )
    assert {row["proname"] for row in rows} == expected


async def test_public_has_nothing_in_the_schema(inspector: Connection) -> None:
    rows = await inspector.fetch(
        "select 'schema' from pg_namespace, aclexplode(nspacl) as a"
        " where nspname = 'memory' and a.grantee = 0"
        " union all select relname from pg_class, aclexplode(relacl) as a"
        " where relnamespace = 'memory'::regnamespace and a.grantee = 0"
        " union all select proname from pg_proc, aclexplode("
        " coalesce(proacl, acldefault('f', proowner))) as a"
        " where pronamespace = 'memory'::regnamespace and a.grantee = 0"
    )
    assert rows == []


async def test_definer_functions_are_closed_to_their_callers_session(
    inspector: Connection,
) -> None:
    rows = await inspector.fetch(
        "select proname, prosecdef, proconfig, proowner = (select nspowner from pg_namespace"
        " where nspname = 'memory') as ours from pg_proc"
        " where pronamespace = 'memory'::regnamespace"
    )
    assert all(row["ours"] for row in rows)
    definers = [row for row in rows if row["prosecdef"]]
    assert len(definers) >= 12
    for row in rows:
        assert "search_path=pg_catalog, pg_temp" in (row["proconfig"] or []), row["proname"]
    for row in definers:
        assert "row_security=on" in row["proconfig"], row["proname"]


async def trigger_functions(inspector: Connection) -> list[str]:
    rows = await inspector.fetch(
        "select proname from pg_proc where pronamespace = 'memory'::regnamespace"
        " and prorettype = 'trigger'::regtype and prosecdef"
    )
    return [row["proname"] for row in rows]


@pytest.mark.parametrize("timing", ["after delete", "after insert"])
async def test_a_trigger_function_on_a_temporary_table_is_no_way_to_other_tenants(
    connect, inspector: Connection, tenant: str, neighbour: str, timing: str
) -> None:
    """With EXECUTE left to PUBLIC the cascade on a table of one's own erases across tenants."""
    app, superuser = await connect("app"), await connect("superuser")
    async with acting(app, neighbour):
        theirs = await derive(app, neighbour, await remember(app, neighbour, "ann"))
    names = await trigger_functions(inspector)
    assert {"erase", "seal", "edge_added", "link_added", "link_kept", "edge_kept"} <= set(names)
    rows = "old table as gone" if "delete" in timing else "new table as added"
    for connection, state in ((app, "42501"), (superuser, "ME009")):
        await connection.execute("create temp table bait (like memory.records)")
        for name in names:
            seal = name in ("seal", "record_complete")
            each = "row" if seal else f"statement execute function memory.{name}()"
            creation = f"create trigger t {timing} on bait " + (
                f"for each row execute function memory.{name}()"
                if each == "row"
                else f"referencing {rows} for each {each}"
            )
            with refused(state):
                async with acting(connection, tenant):
                    await connection.execute(creation)
                    await connection.execute(
                        "insert into bait (tenant_key, record_id, origin, kind, text, metadata,"
                        " redacted, version, term_count, occurred_at, created_at, held)"
                        " values ($1, $2, 'remembered', 'x', 'x', '{}', '{}', 1, 1, now(),"
                        " now(), false)",
                        neighbour,
                        theirs,
                    )
                    await connection.execute("delete from bait")
    assert len(await living(inspector, neighbour)) == 2
    assert await tombstones(inspector, neighbour) == []
    async with acting(app, neighbour):
        await forget(app, neighbour, "ann")
    assert await living(inspector, neighbour) == set()


async def test_the_application_puts_no_trigger_rule_or_policy_on_our_tables(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    await client.execute(
        "create function pg_temp.swallow() returns trigger language plpgsql as"
        " 'begin return null; end'"
    )
    for statement in (
        "create trigger t before delete on memory.records for each row"
        " execute function pg_temp.swallow()",
        "create rule r as on delete to memory.records do instead nothing",
        "create policy open on memory.records using (true)",
        "alter table memory.records disable trigger all",
        "alter table memory.records disable row level security",
        "drop trigger erase on memory.records",
        "create table memory.mine (a int)",
        "create function memory.mine() returns int language sql as 'select 1'",
        "alter function memory.erase() set search_path = public",
        "create index on memory.records (text)",
        "set session_replication_role = replica",
        "create table child () inherits (memory.records)",
    ):
        with refused("42501"):
            async with client.transaction():
                await client.execute(statement)
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        await client.execute(DELETE, tenant, root)
    assert len(await tombstones(inspector, tenant)) == 1


HIJACKS = {
    "temporary tables": [
        "create temp table records as select * from memory.records where false",
        "create temp table record_subjects as select * from memory.record_subjects where false",
        "create temp table provenance as select * from memory.provenance where false",
        "create temp table pending_evidence as select 1 as a",
        "create temp table subjects as select 1 as a",
    ],
    "temporary types": [
        "create type pg_temp.text as enum ('a')",
        "create domain pg_temp.uuid as int",
        "create type pg_temp.tombstones as (a int)",
    ],
    "temporary functions": [
        "create function pg_temp.each(uuid[]) returns setof uuid language sql as 'select $1[1]'",
        "create function pg_temp.closure(text, uuid[]) returns uuid[] language sql as 'select $2'",
        "create function pg_temp.set_config(text, text, boolean) returns text language sql as"
        " 'select $2'",
        "create function pg_temp.sha256(bytea) returns bytea language sql as 'select $1'",
        "set search_path = pg_temp, public, pg_catalog",
    ],
    "public functions": [
        "create function public.unnest(uuid[]) returns setof uuid language sql as"
        " 'select $1[1] where false'",
        "create function public.set_config(text, text, boolean) returns text language sql as"
        " 'select $2'",
        "create function public.current_setting(text, boolean) returns text language sql as"
        " $$ select 'somebody-else' $$",
        "create function public.encode(bytea, text) returns text language sql as"
        " $$ select repeat('0', 64) $$",
        "set search_path = public, pg_catalog",
    ],
    "public operators": [
        "create function public.never(text, text) returns boolean language sql as 'select false'",
        "create function public.never(uuid, uuid) returns boolean language sql as 'select false'",
        "create operator public.= (function = public.never, leftarg = text, rightarg = text)",
        "create operator public.= (function = public.never, leftarg = uuid, rightarg = uuid)",
        "create operator public.<> (function = public.never, leftarg = text, rightarg = text)",
        "set search_path = public, pg_catalog",
    ],
    "session settings": [
        "set standard_conforming_strings = off",
        "set array_nulls = off",
        "set transform_null_equals = on",
        "set enable_indexscan = off",
        "set enable_indexonlyscan = off",
        "set enable_nestloop = off",
        "set plan_cache_mode = force_custom_plan",
        "set quote_all_identifiers = on",
        "set bytea_output = escape",
        "set DateStyle = German",
        "set from_collapse_limit = 1",
        "set memory.erasure = 'mine, write nothing'",
    ],
}


@pytest.mark.parametrize("kind", HIJACKS)
async def test_nothing_put_in_the_way_of_names_changes_an_erasure(
    server: Postgres, kind: str
) -> None:
    with server.migrated() as database:
        superuser = await asyncpg.connect(database.superuser_url)
        await superuser.execute("grant create on schema public to public")
        client = await asyncpg.connect(database.app_url)
        try:
            made = {}
            async with acting(client, "acme"):
                for person in ("ann", "bob", "carol"):
                    made[person] = await remember(client, "acme", person)
                    await derive(client, "acme", made[person])
            for statement in HIJACKS[kind]:
                await client.execute(statement)
            await superuser.execute("set search_path = pg_catalog")
            # The attacker's own statement names what it means; the triggers find their own way.
            await client.execute(
                "begin; select pg_catalog.set_config('app.current_tenant', 'acme', true);"
                " delete from memory.records"
                f" where record_id operator(pg_catalog.=) '{made['ann']}'::pg_catalog.uuid;"
                f" select memory.forget('acme', 'bob', '{'0' * 64}'); commit"
            )
            assert len(await living(superuser, "acme")) == 2
            assert made["carol"] in await living(superuser, "acme")
            assert await damage(superuser, "acme") == []
            chain = [Tombstone(**dict(row)) for row in await tombstones(superuser, "acme")]
            assert {stone.subject_hash for stone in chain} == {
                hash_of("acme", "ann"),
                hash_of("acme", "bob"),
            }
            for stone in chain:
                assert (stone.memories, stone.derived) == (1, 1)
                assert stone.digest == tombstone_digest(stone)
        finally:
            await client.close()
            await superuser.close()


async def test_the_application_lifts_no_hold_and_no_block(
    connect, inspector: Connection, tenant: str
) -> None:
    owner, app, operator = await connect("owner"), await connect("app"), await connect("operator")
    async with acting(owner, tenant):
        root = await remember(owner, tenant, "ann")
        await owner.execute("update memory.records set held = true where record_id = $1", root)
        await owner.execute("update memory.subjects set blocked = true, held = true")
    for connection in (app, operator):
        for statement in (
            "update memory.records set held = false",
            "update memory.subjects set held = false",
            "update memory.subjects set blocked = false",
            "delete from memory.subjects",
            "select * from memory.subjects for update",
        ):
            with refused("42501"):
                async with acting(connection, tenant):
                    await connection.execute(statement)
        with refused("ME005"):
            async with acting(connection, tenant):
                await remember(connection, tenant, "ann")
        with refused("ME003"):
            async with acting(connection, tenant):
                await connection.execute(DELETE, tenant, root)
        # An insert cannot bring the flag along either.
        with refused("42501"):
            async with acting(connection, tenant):
                await connection.execute(
                    "insert into memory.records (tenant_key, record_id, text, held)"
                    " values ($1, gen_random_uuid(), 'x', false)",
                    tenant,
                )
        async with acting(connection, tenant):
            await remember(connection, tenant, "bob")
    assert root in await living(inspector, tenant)


async def test_a_host_role_has_no_way_in(connect, tenant: str) -> None:
    host, app = await connect("host"), await connect("app")
    async with acting(app, tenant):
        await remember(app, tenant, "ann")
    for table in TABLES:
        with refused("42501"):
            async with acting(host, tenant):
                await host.execute(f"select from memory.{table}")
    with refused("42501"):
        async with acting(host, tenant):
            await forget(host, tenant, "ann")
    async with acting(app, tenant):
        await act(app, tenant)
        await forget(app, tenant, "ann")
