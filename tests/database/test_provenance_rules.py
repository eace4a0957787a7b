"""What a record came from, against raw SQL: sources, origin and identity."""

from __future__ import annotations

import pytest

from memory.ids import uuid7
from rawsql import (
    ISOLATION,
    WRITERS,
    Connection,
    act,
    acting,
    damage,
    derive,
    insert_record,
    link,
    living,
    refused,
    remember,
    source,
    subjects_of,
)

# What the session says its tenant is when it commits, {} being the right one.
AT_COMMIT = ("{}", "", "somebody-else")


@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("said", AT_COMMIT)
@pytest.mark.parametrize("role", WRITERS)
async def test_a_derived_record_without_source_does_not_commit_whatever_tenant_is_said(
    connect, inspector: Connection, tenant: str, role: str, said: str, isolation: str
) -> None:
    connection = await connect(role)
    with refused("ME001"):
        async with acting(connection, tenant, isolation):
            orphan = await insert_record(connection, tenant, origin="derived")
            await link(connection, tenant, orphan, "ann")
            await act(connection, said.format(tenant))
    assert await living(inspector, tenant) == set()

    async with acting(connection, tenant, isolation):
        root = await remember(connection, tenant, "ann")
        made = await derive(connection, tenant, root)
        await act(connection, said.format(tenant))
    assert await living(inspector, tenant) == {root, made}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("role", ["superuser", "bypass"])
async def test_a_job_that_never_set_a_tenant_is_judged_all_the_same(
    connect, inspector: Connection, tenant: str, role: str
) -> None:
    connection = await connect(role)
    with refused("ME001"):
        async with acting(connection, None):
            orphan = await insert_record(connection, tenant, origin="derived")
            await link(connection, tenant, orphan, "ann")
    async with acting(connection, None):
        made = await derive(connection, tenant, await remember(connection, tenant, "ann"))
    assert made in await living(inspector, tenant)
    assert await damage(inspector, tenant) == []
    assert await connection.fetchval("select current_setting('app.current_tenant', true)") in (
        None,
        "",
    )


@pytest.mark.parametrize("said", AT_COMMIT)
@pytest.mark.parametrize("role", WRITERS)
async def test_a_record_about_nobody_does_not_commit(
    connect, inspector: Connection, tenant: str, role: str, said: str
) -> None:
    connection = await connect(role)
    with refused("ME008"):
        async with acting(connection, tenant):
            await insert_record(connection, tenant)
            await act(connection, said.format(tenant))
    assert await living(inspector, tenant) == set()

    async with acting(connection, tenant):
        kept = await insert_record(connection, tenant)
        await link(connection, tenant, kept, "ann")
        await act(connection, said.format(tenant))
    assert await living(inspector, tenant) == {kept}


@pytest.mark.parametrize("role", WRITERS)
async def test_an_unknown_source_is_refused_at_once(connect, tenant: str, role: str) -> None:
    connection = await connect(role)
    async with acting(connection, tenant):
        made = await insert_record(connection, tenant, origin="derived")
        with refused("ME006"):
            async with connection.transaction():
                await source(connection, tenant, made, uuid7())
        known = await remember(connection, tenant, "ann")
        with refused("ME006"):
            async with connection.transaction():
                await source(connection, tenant, made, known, uuid7())
        await source(connection, tenant, made, known)


async def test_a_source_of_another_tenant_is_unknown(
    connect, inspector: Connection, tenant: str, neighbour: str
) -> None:
    connection = await connect("superuser")
    async with acting(connection, None):
        theirs = await remember(connection, neighbour, "ann")
        ours = await remember(connection, tenant, "ann")
    with refused("ME006"):
        async with acting(connection, None):
            await derive(connection, tenant, theirs)
    async with acting(connection, None):
        await derive(connection, tenant, ours)
    assert len(await living(inspector, tenant)) == 2


async def test_an_edge_from_a_record_that_is_not_there_does_not_commit(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
    with refused("23503"):
        async with acting(client, tenant):
            await source(client, tenant, uuid7(), root)
    async with acting(client, tenant):
        await derive(client, tenant, root)
    assert await damage(inspector, tenant) == []


async def test_a_link_of_a_record_that_is_not_there_does_not_commit(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    with refused("23503"):
        async with acting(client, tenant):
            await link(client, tenant, uuid7(), "ann")
    assert await damage(inspector, tenant) == []


async def test_a_record_is_not_its_own_source(client: Connection, tenant: str) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        made = await derive(client, tenant, root)
        with refused("23514"):
            async with client.transaction():
                await source(client, tenant, made, made)
        await derive(client, tenant, made)


async def test_a_remembered_record_takes_no_sources(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        rewrite = await remember(client, tenant, "acme")
        made = await derive(client, tenant, root)
    with refused("ME002"):
        async with acting(client, tenant):
            await source(client, tenant, rewrite, root)
    async with acting(client, tenant):
        await source(client, tenant, made, rewrite)
    assert await subjects_of(inspector, tenant, made) == {"ann", "acme"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize(
    "change",
    ["origin = 'remembered'", "record_id = gen_random_uuid()", "tenant_key = 'somebody-else'"],
)
@pytest.mark.parametrize("role", ["owner", "superuser"])
async def test_identity_and_origin_of_a_record_never_change(
    connect, tenant: str, role: str, change: str
) -> None:
    connection = await connect(role)
    async with acting(connection, tenant):
        root = await remember(connection, tenant, "ann")
        made = await derive(connection, tenant, root)
    update = "update memory.records set {} where tenant_key = $1 and record_id = $2"
    with refused("ME002"):
        async with acting(connection, tenant):
            await connection.execute(update.format(change), tenant, made)
    async with acting(connection, tenant):
        done = await connection.execute(update.format("kind = 'digest'"), tenant, made)
    assert done == "UPDATE 1"


async def test_the_application_cannot_rewrite_a_record(client: Connection, tenant: str) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
    update = "update memory.records set {} where tenant_key = $1 and record_id = $2"
    for change in ("origin = 'derived'", "text = 'other'", "held = false", "record_id = null"):
        with refused("42501"):
            async with acting(client, tenant):
                await client.execute(update.format(change), tenant, root)
    async with acting(client, tenant):
        done = await client.execute(update.format("superseded_at = now()"), tenant, root)
    assert done == "UPDATE 1"
