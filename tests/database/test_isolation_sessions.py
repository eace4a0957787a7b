"""What a session may set, switch off or become, and what binds it all the same."""

from __future__ import annotations

import asyncpg
import pytest

from memory.ids import uuid7
from rawsql import (
    Connection,
    act,
    acting,
    damage,
    derive,
    forget,
    insert_record,
    link,
    living,
    refused,
    remember,
    source,
)
from servers import Database


@pytest.mark.parametrize("role", ["app", "owner"])
async def test_switching_row_security_off_shows_an_error_and_not_the_rows(
    connect, inspector: Connection, tenant: str, role: str
) -> None:
    connection = await connect(role)
    async with acting(connection, tenant):
        root = await remember(connection, tenant, "ann")
    await connection.execute("set row_security = off")
    for statement in ("select * from memory.records", "delete from memory.records"):
        with refused("42501"):
            async with acting(connection, tenant):
                await connection.execute(statement)
    assert await living(inspector, tenant) == {root}
    async with acting(connection, tenant):
        await forget(connection, tenant, "ann")
    assert await living(inspector, tenant) == set()


@pytest.mark.parametrize("role", ["superuser", "bypass"])
async def test_a_job_without_row_security_cascades_in_the_tenant_alone(
    connect, inspector: Connection, tenant: str, neighbour: str, role: str
) -> None:
    connection = await connect(role)
    await connection.execute("set row_security = off")
    for name in (tenant, neighbour):
        async with acting(connection, None):
            await derive(connection, name, await remember(connection, name, "ann"))
    async with acting(connection, None):
        await connection.execute("delete from memory.records where tenant_key = $1", tenant)
    assert await living(inspector, tenant) == set()
    assert len(await living(inspector, neighbour)) == 2
    assert await damage(inspector, tenant) == []


async def test_a_superuser_that_became_the_application_is_bound_like_it(
    connect, shared: Database, tenant: str, neighbour: str
) -> None:
    superuser = await connect("superuser")
    for name in (tenant, neighbour):
        async with acting(superuser, name):
            await remember(superuser, name, "ann")
    await superuser.execute(f"set role {shared.role('app')}")
    async with acting(superuser, tenant):
        rows = await superuser.fetch("select tenant_key from memory.records")
        assert [row["tenant_key"] for row in rows] == [tenant]
    assert await superuser.fetch("select tenant_key from memory.records") == []


@pytest.mark.parametrize("target", ["owner", "superuser", "bypass"])
async def test_the_application_cannot_become_another_role(
    connect, shared: Database, target: str
) -> None:
    connection = await connect("app")
    for statement in ("set role", "set session authorization"):
        with refused("42501"):
            await connection.execute(f'{statement} "{shared.role(target)}"')
    await connection.execute(f"set role {shared.role('app')}")


async def test_bulk_rows_come_by_insert_since_copy_is_refused_under_row_security(
    client: Connection, tenant: str
) -> None:
    with pytest.raises(asyncpg.FeatureNotSupportedError):
        async with acting(client, tenant):
            await client.copy_records_to_table(
                "postings", schema_name="memory", records=[], columns=["tenant_key", "term"]
            )
    async with acting(client, tenant):
        await remember(client, tenant, "ann")


async def test_the_tenant_does_not_outlive_its_transaction(
    client: Connection, tenant: str, neighbour: str
) -> None:
    for name in (tenant, neighbour):
        async with acting(client, name):
            await remember(client, name, "ann")
            rows = await client.fetch("select tenant_key from memory.records")
            assert [row["tenant_key"] for row in rows] == [name]
        assert await client.fetch("select from memory.records") == []
    with pytest.raises(asyncpg.DivisionByZeroError):
        async with acting(client, tenant):
            await client.execute("select 1 / 0")
    assert await client.fetch("select from memory.records") == []


async def test_every_trigger_puts_back_the_tenant_that_a_job_says(
    connect, inspector: Connection, tenant: str, neighbour: str
) -> None:
    job = await connect("superuser")

    async def said(statement: str = "select", *values: object) -> str:
        await job.execute(statement, *values)
        return await job.fetchval("select current_setting('app.current_tenant', true)")

    async with acting(job, neighbour):
        root = await insert_record(job, tenant)
        assert await said() == neighbour
        await link(job, tenant, root, "ann")
        assert await said() == neighbour
        made = await insert_record(job, tenant, origin="derived")
        await source(job, tenant, made, root)
        assert await said() == neighbour
        assert await said("set constraints all immediate") == neighbour
        await job.execute("set constraints all deferred")
        # An edge and a link of no record may be taken back until the commit.
        none = uuid7()
        await source(job, tenant, none, root)
        await act(job, neighbour)
        for table, column in (("provenance", "derived_id"), ("record_subjects", "record_id")):
            delete = f"delete from memory.{table} where tenant_key = $1 and {column} = $2"
            assert await said(delete, tenant, none) == neighbour
    assert await living(inspector, tenant) == {root, made}
    assert await damage(inspector, tenant) == []


async def test_a_definer_trigger_puts_back_a_tenant_set_for_the_session(
    client: Connection, tenant: str
) -> None:
    await client.execute("select set_config('app.current_tenant', $1, false)", tenant)
    async with client.transaction():
        root = await remember(client, tenant, "ann")
        await derive(client, tenant, root)
    assert await client.fetchval("select current_setting('app.current_tenant')") == tenant
    async with client.transaction():
        await act(client, "somebody-else")
    assert await client.fetchval("select current_setting('app.current_tenant')") == tenant
    assert len(await client.fetch("select from memory.records")) == 2
