"""What roles may do: exactly this and nothing more."""

from __future__ import annotations

import pytest

from rawsql import (
    TABLES,
    Connection,
    act,
    acting,
    forget,
    living,
    refused,
    remember,
)
from servers import Database

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


UPDATED = {"records": "record_key superseded_at expires_at"}


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
    "hold",
    "sweep",
}


LIFTING = {"release", "readmit"}


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


@pytest.mark.parametrize(
    ("role", "expected"),
    [("app", FUNCTIONS), ("operator", FUNCTIONS | LIFTING), ("host", set())],
)
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
