"""Writers of the same records or about the same person wait for one another."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from deciding import actions, decide, decided, held
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
    source,
    subjects_of,
    waits,
)

TOUCH = "update memory.records set superseded_at = now() where record_id = $1"


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


@pytest.mark.parametrize(
    "verbs",
    ["remember, hold", "hold, remember", "remember, release", "block, readmit", "release, another"],
)
async def test_who_decides_about_a_person_waits_for_who_writes_or_decides(
    connect, inspector: Connection, tenant: str, verbs: str
) -> None:
    """A hold that overlooks a record leaves it free; a readmission, a block to come for good."""
    one, two = await connect("operator"), await connect("operator")
    first, second = verbs.split(", ")
    async with acting(one, tenant):
        bystander = await remember(one, tenant, "bob")
    if "release" in verbs:
        await decided(one, "hold", tenant, "ann")

    async def work(connection: Connection, verb: str) -> None:
        if verb == "remember":
            await remember(connection, tenant, "ann")
        elif verb == "block":
            await forget(connection, tenant, "ann", block=True)
        elif verb == "another":
            await decide(connection, "release", tenant, "bob")
        else:
            await decide(connection, verb, tenant, "ann")

    async def later() -> None:
        async with acting(two, tenant):
            await work(two, second)

    async with acting(one, tenant):
        await work(one, first)
        task = asyncio.create_task(later())
        await waits(task, inspector, two)
    await task
    written = await living(inspector, tenant) - {bystander}
    assert len(written) == ("remember" in verbs)
    assert await held(inspector, tenant) == (written if "hold" in verbs else set())
    if second == "readmit":
        assert await actions(inspector, tenant) == ["block", "readmit"]
        async with acting(one, tenant):
            await remember(one, tenant, "ann")
    assert await damage(inspector, tenant) == []


async def test_an_erasure_counts_what_was_derived_from_what_came_while_it_waited(
    connect, inspector: Connection, tenant: str
) -> None:
    eraser, one, two = [await connect("app") for _ in range(3)]
    async with acting(one, tenant):
        first, root = await remember(one, tenant, "ann"), await remember(one, tenant, "ann")
        other = await remember(one, tenant, "bob")
        digest = await derive(one, tenant, other)
    receipts = []

    async def erase() -> None:
        async with acting(eraser, tenant):
            receipts.append(await forget(eraser, tenant, "ann"))

    async with acting(two, tenant):
        async with acting(one, tenant):
            await one.execute(TOUCH, first)
            task = asyncio.create_task(erase())
            await waits(task, inspector, eraser)
            async with acting(inspector, tenant):
                await source(inspector, tenant, digest, root)
            # Ann is in the digest now, and somebody makes more of it.
            await derive(two, tenant, digest)
        await waits(task, inspector, eraser, behind=two)
    await task
    (receipt,) = receipts
    assert (receipt["memories"], receipt["derived"]) == (2, 2)
    assert await living(inspector, tenant) == {other}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("way", ["forget", "delete"])
async def test_an_erasure_that_waits_has_locked_nothing_that_comes_later_in_order(
    connect, inspector: Connection, tenant: str, way: str
) -> None:
    """Two that lock in orders of their own would wait for each other."""
    eraser, one = await connect("app"), await connect("app")
    digest, belief, root = sorted(uuid7() for _ in range(3))
    async with acting(one, tenant):
        await remember(one, tenant, "ann", record_id=root)
        await derive(one, tenant, root, record_id=belief)
        await derive(one, tenant, belief, record_id=digest)

    async def erase() -> None:
        async with acting(eraser, tenant):
            if way == "forget":
                await forget(eraser, tenant, "ann")
            else:
                await eraser.execute("delete from memory.records where record_id = $1", root)

    async with acting(one, tenant):
        await one.execute(TOUCH, digest)
        task = asyncio.create_task(erase())
        await waits(task, inspector, eraser)
        free = "select from memory.records where record_id = $1 for update skip locked"
        assert len(await inspector.fetch(free, belief)) == 1
    await task
    assert await living(inspector, tenant) == set()
    assert await damage(inspector, tenant) == []
