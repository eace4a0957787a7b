"""Writers of the same records or about the same person wait for one another."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from memory.ids import uuid7
from rawsql import (
    Connection,
    acting,
    damage,
    derive,
    forget,
    link,
    living,
    remember,
    subjects_of,
    waits,
)


@pytest.mark.parametrize("first", ["derive", "relate"])
async def test_a_later_link_and_a_derive_in_flight_wait_for_each_other(
    connect, inspector: Connection, tenant: str, first: str
) -> None:
    one, two = await connect("app"), await connect("app")
    made = uuid7()
    async with acting(one, tenant):
        root = await remember(one, tenant, "ann")

    async def work(connection: Connection, verb: str) -> None:
        if verb == "derive":
            await derive(connection, tenant, root, record_id=made)
        else:
            await link(connection, tenant, root, "dana")

    async def later() -> None:
        async with acting(two, tenant):
            await work(two, "relate" if first == "derive" else "derive")

    async with acting(one, tenant):
        await work(one, first)
        task = asyncio.create_task(later())
        await waits(task, inspector, two)
    await task
    assert await subjects_of(inspector, tenant, made) == {"ann", "dana"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("first", ["derive", "delete"])
async def test_a_delete_and_a_derive_in_flight_wait_for_each_other(
    connect, inspector: Connection, tenant: str, first: str
) -> None:
    one, two = await connect("app"), await connect("app")
    async with acting(one, tenant):
        root = await remember(one, tenant, "ann")
        bystander = await remember(one, tenant, "bob")

    async def work(connection: Connection, verb: str) -> None:
        if verb == "derive":
            await derive(connection, tenant, root)
        else:
            await connection.execute(
                "delete from memory.records where tenant_key = $1 and record_id = $2",
                tenant,
                root,
            )

    async def later() -> None:
        async with acting(two, tenant):
            await work(two, "delete" if first == "derive" else "derive")

    async with acting(one, tenant):
        await work(one, first)
        task = asyncio.create_task(later())
        await waits(task, inspector, two)
    if first == "derive":
        await task
    else:
        with pytest.raises(asyncpg.PostgresError) as caught:
            await task
        assert caught.value.sqlstate == "ME006"
    assert await living(inspector, tenant) == {bystander}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("verbs", ["remember, forget", "forget, remember", "relate, forget"])
async def test_a_writer_about_a_person_and_an_erasure_wait_for_each_other(
    connect, inspector: Connection, tenant: str, verbs: str
) -> None:
    """Who comes second sees what the first one did: an erasure that blocks leaves no straggler."""
    one, two = await connect("app"), await connect("app")
    first, second = verbs.split(", ")
    async with acting(one, tenant):
        bystander = await remember(one, tenant, "bob")
        await remember(one, tenant, "ann")

    async def work(connection: Connection, verb: str) -> None:
        if verb == "remember":
            await remember(connection, tenant, "ann")
        elif verb == "relate":
            await link(connection, tenant, bystander, "ann")
        else:
            await forget(connection, tenant, "ann")

    async def later() -> None:
        async with acting(two, tenant):
            await work(two, second)

    async with acting(one, tenant):
        await work(one, first)
        task = asyncio.create_task(later())
        await waits(task, inspector, two)
        # Another person's memories wait for neither.
        three = await connect("app")
        async with acting(three, tenant):
            await remember(three, tenant, "carol")
    await task
    left = {"remember, forget": 2, "forget, remember": 3, "relate, forget": 1}[verbs]
    assert len(await living(inspector, tenant)) == left
    assert await damage(inspector, tenant) == []
