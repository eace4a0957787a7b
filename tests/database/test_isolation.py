"""Tenants are kept apart by the database: every table, every verb, every role that RLS binds."""

from __future__ import annotations

import json

import pytest

from rawsql import (
    TENANT_TABLES,
    Connection,
    acting,
    damage,
    derive,
    forget,
    hash_of,
    living,
    refused,
    register,
    remember,
    tombstones,
)

# Tables in which the application may not look at all.
HIDDEN = {"subjects", "tenants", "pending_evidence", "chain_heads"}


async def furnish(owner: Connection, tenant: str) -> None:
    """A row or more in every table that has tenants, but for evidence that is pending."""
    async with acting(owner, tenant):
        kept = await remember(owner, tenant, "ann")
        await derive(owner, tenant, kept)
        await register(owner, tenant, "vector-1", kept)
        gone = await remember(owner, tenant, "bob")
        await register(owner, tenant, "vector-2", gone)
        await forget(owner, tenant, "bob")
        await owner.execute(
            "insert into memory.decisions (tenant_key, subject_hash, action)"
            " values ($1, $2, 'hold')",
            tenant,
            hash_of(tenant, "ann"),
        )
        await owner.execute(
            "insert into memory.purge_receipts (tenant_key, adapter, erasure_id, artefacts)"
            " values ($1, 'index', gen_random_uuid(), 1)",
            tenant,
        )


@pytest.mark.parametrize("role", ["app", "owner", "operator"])
@pytest.mark.parametrize("table", TENANT_TABLES)
async def test_a_role_reads_the_rows_of_its_tenant_and_of_no_other(
    connect, tenant: str, neighbour: str, table: str, role: str
) -> None:
    owner, connection = await connect("owner"), await connect(role)
    for name in (tenant, neighbour):
        await furnish(owner, name)
    query = f"select tenant_key, count(*) from memory.{table} group by tenant_key"
    if table in HIDDEN and role != "owner":
        with refused("42501"):
            await connection.fetch(query)
        return
    for said in (None, "", "nobody", "%", f"{tenant}%", tenant.upper(), f"{tenant} "):
        async with acting(connection, said):
            found = await connection.fetch(query)
        if table == "tenants":
            # Operator commands walk this one table as its owner.
            assert {tenant, neighbour} <= {row["tenant_key"] for row in found}
        else:
            assert found == [], said
    async with acting(connection, tenant):
        found = await connection.fetch(query)
    if table not in ("tenants", "pending_evidence"):
        assert [row["tenant_key"] for row in found] == [tenant]
    if table == "tenants":
        async with acting(connection, tenant):
            delete = "delete from memory.tenants where tenant_key = $1"
            assert await connection.execute(delete, neighbour) == "DELETE 0"


@pytest.mark.parametrize("said", [None, "", "somebody-else"])
@pytest.mark.parametrize("role", ["app", "owner"])
@pytest.mark.parametrize(
    "table", ["records", "record_subjects", "provenance", "postings", "artefacts"]
)
async def test_rows_of_another_tenant_are_not_inserted(
    connect, inspector: Connection, tenant: str, table: str, role: str, said: str | None
) -> None:
    connection = await connect(role)
    async with acting(connection, tenant):
        root = await remember(connection, tenant, "ann")
    values = {
        "records": "(tenant_key, record_id, text) values ($1, gen_random_uuid(), $2::uuid::text)",
        "record_subjects": "(tenant_key, record_id, subject_key, subject_hash)"
        f" values ($1, $2, 'eve', '{'0' * 64}')",
        "provenance": "(tenant_key, derived_id, source_id) values ($1, gen_random_uuid(), $2)",
        "postings": "(tenant_key, term, record_id) values ($1, 'eve', $2)",
        "artefacts": "(tenant_key, adapter, artefact_id, record_id)"
        " values ($1, 'index', 'eve', $2)",
    }[table]
    # The policy, or the rule that looks for the source first.
    with refused("42501", "ME006"):
        async with acting(connection, said):
            await connection.execute(f"insert into memory.{table} {values}", tenant, root)
    assert await living(inspector, tenant) == {root}
    assert await damage(inspector, tenant) == []
    async with acting(connection, tenant):
        await derive(connection, tenant, root)
        await register(connection, tenant, "vector-1", root)


@pytest.mark.parametrize("said", [None, "", "somebody-else"])
@pytest.mark.parametrize("role", ["app", "owner"])
async def test_rows_of_another_tenant_are_neither_updated_nor_locked(
    connect, tenant: str, role: str, said: str | None
) -> None:
    connection = await connect(role)
    async with acting(connection, tenant):
        root = await remember(connection, tenant, "ann")
    update = "update memory.records set superseded_at = now() where record_id = $1"
    lock = "select from memory.records where record_id = $1 for update"
    async with acting(connection, said):
        assert await connection.execute(update, root) == "UPDATE 0"
        assert await connection.fetch(lock, root) == []
    async with acting(connection, tenant):
        assert await connection.execute(update, root) == "UPDATE 1"
        assert len(await connection.fetch(lock, root)) == 1


async def test_every_table_has_row_security_enabled_and_forced(inspector: Connection) -> None:
    rows = await inspector.fetch(
        "select relname, relrowsecurity and relforcerowsecurity as bound from pg_class"
        " where relnamespace = 'memory'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f')"
    )
    unbound = {row["relname"] for row in rows if not row["bound"]}
    assert unbound == {"alembic_version"}
    assert {row["relname"] for row in rows} >= set(TENANT_TABLES)


async def test_every_policy_reads_the_setting_once_and_binds_every_verb(
    inspector: Connection,
) -> None:
    rows = await inspector.fetch(
        "select tablename, policyname, cmd, roles, permissive, qual, with_check from pg_policies"
        " where schemaname = 'memory' and policyname = 'tenant'"
    )
    assert {row["tablename"] for row in rows} == set(TENANT_TABLES)
    expected = (
        "(tenant_key = ( SELECT NULLIF(current_setting('app.current_tenant'::text, true),"
        " ''::text) AS \"nullif\"))"
    )
    assert {(row["cmd"], tuple(row["roles"]), row["with_check"]) for row in rows} == {
        ("ALL", ("public",), None)
    }
    assert {row["qual"] for row in rows} == {expected}


async def explained(connection: Connection, query: str) -> str:
    return json.dumps(json.loads(await connection.fetchval(f"explain (format json) {query}")))


@pytest.mark.parametrize(
    "query",
    [
        "select * from memory.records",
        "select * from memory.records where kind = 'episodic'",
        "select record_id from memory.postings where term = 'word'",
        "delete from memory.records where kind = 'x'",
    ],
)
async def test_the_tenant_is_read_once_a_statement_and_not_once_a_row(
    client: Connection, tenant: str, query: str
) -> None:
    async with acting(client, tenant):
        plan = await explained(client, query)
    assert "InitPlan" in plan
    assert '"SubPlan"' not in plan
    assert "current_setting" not in plan.split("InitPlan", 1)[0]


@pytest.mark.parametrize("role", ["app", "owner", "superuser", "bypass"])
async def test_an_erasure_of_another_tenant_is_refused(
    connect, inspector: Connection, tenant: str, neighbour: str, role: str
) -> None:
    connection = await connect(role)
    for name in (tenant, neighbour):
        async with acting(connection, name):
            await remember(connection, name, "ann")
    for said in (None, "", neighbour):
        for dry_run in (True, False):
            with refused("ME012"):
                async with acting(connection, said):
                    await forget(connection, tenant, "ann", dry_run=dry_run)
    for argument, said in ((None, None), (None, ""), ("", ""), (None, tenant), ("", tenant)):
        with refused("ME012"):
            async with acting(connection, said):
                await forget(connection, argument, "ann", person_hash="0" * 64, dry_run=True)
    assert len(await living(inspector, tenant)) == 1
    async with acting(connection, tenant):
        await forget(connection, tenant, "ann")
    assert await living(inspector, tenant) == set()
    assert len(await living(inspector, neighbour)) == 1
    assert await tombstones(inspector, neighbour) == []


LEASE = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    "call",
    [
        "memory.lease_purges($1, 'index', 10, '1 minute', gen_random_uuid(), false, false)",
        "memory.settle_purges($1, 'index', '{vector-2}',"
        " array(select p.erasure_id from memory.purges as p where p.tenant_key = $1))",
        f"memory.defer_purges($1, 'index', '{{vector-2}}', '{LEASE}', 'OSError', '1 minute')",
    ],
)
@pytest.mark.parametrize("role", ["app", "superuser"])
async def test_purges_of_another_tenant_are_not_touched(
    connect, inspector: Connection, tenant: str, neighbour: str, role: str, call: str
) -> None:
    owner, connection = await connect("owner"), await connect(role)
    await furnish(owner, tenant)
    await inspector.execute(
        "update memory.purges set lease = $2, leased_until = now() where tenant_key = $1",
        tenant,
        LEASE,
    )
    owed = "select attempts, last_error from memory.purges where tenant_key = $1"
    for argument, said in ((tenant, None), (tenant, ""), (tenant, neighbour), (None, "")):
        with refused("ME012"):
            async with acting(connection, said):
                await connection.fetch(f"select * from {call}", argument)
    assert [tuple(row) for row in await inspector.fetch(owed, tenant)] == [(0, None)]
    async with acting(connection, tenant):
        await connection.fetch(f"select * from {call}", tenant)
    assert [tuple(row) for row in await inspector.fetch(owed, tenant)] != [(0, None)]
