"""Claims on artefacts, by raw SQL: exact, unseen, and without waiting for another tenant."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from rawsql import (
    Connection,
    act,
    acting,
    damage,
    forget,
    living,
    refused,
    register,
    remember,
    waits,
)

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"
CLAIMS = (
    "select count(*) from memory.artefact_claims where artefact_hash = memory.framed_hash($1, $2)"
)


async def told(connection: Connection, tenant: str, *artefacts: str, person: str = "ann") -> UUID:
    async with acting(connection, tenant):
        record = await remember(connection, tenant, person)
        for artefact in artefacts:
            await register(connection, tenant, artefact, record)
    return record


async def claims(inspector: Connection, artefact: str) -> int:
    return await inspector.fetchval(CLAIMS, "index", artefact)


async def drained(connection: Connection, tenant: str) -> dict[str, bool]:
    """Lease everything; whether each artefact is retained."""
    async with acting(connection, tenant):
        rows = await connection.fetch(
            "select * from memory.lease_purges($1, 'index', 10, $2, $3, false, false)",
            tenant,
            timedelta(0),
            uuid4(),
        )
    return {row["artefact_id"]: row["retained"] for row in rows}


@pytest.mark.parametrize("role", ["app", "owner", "superuser", "replica", "bypass"])
async def test_a_claim_goes_with_its_registration_whoever_deletes(
    connect, inspector: Connection, tenant: str, neighbour: str, role: str
) -> None:
    owner = await connect("owner")
    connection = await connect(role.replace("replica", "superuser"))
    if role == "replica":
        await connection.execute("set session_replication_role = replica")
    shared, own = f"{tenant} shared", f"{tenant} own"
    ann = await told(owner, tenant, shared, own)
    bob = await told(owner, tenant, shared, person="bob")
    theirs = await told(owner, neighbour, shared)
    assert (await claims(inspector, shared), await claims(inspector, own)) == (3, 1)
    async with acting(connection, tenant):
        await connection.execute(DELETE, tenant, ann)
    # The artefact of two records goes with either; the neighbour's claim stays.
    assert (await claims(inspector, shared), await claims(inspector, own)) == (1, 0)
    assert await drained(connection, tenant) == {shared: True, own: False}
    async with acting(connection, neighbour):
        await connection.execute(DELETE, neighbour, theirs)
    assert await claims(inspector, shared) == 0
    assert await drained(connection, neighbour) == {shared: False}
    assert await living(inspector, tenant) == {bob}
    assert await damage(inspector, tenant) == []


async def test_names_that_run_together_are_different_artefacts(
    client: Connection, tenant: str, neighbour: str
) -> None:
    ann = await told(client, tenant, f"1{tenant}")
    async with acting(client, neighbour):
        bob = await remember(client, neighbour, "bob")
        await register(client, neighbour, tenant, bob, adapter="index1")
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, ann)
    assert await drained(client, tenant) == {f"1{tenant}": False}


async def test_a_rolled_back_registration_claims_nothing(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    record = await told(client, tenant)
    transaction = client.transaction()
    await transaction.start()
    await act(client, tenant)
    await register(client, tenant, tenant, record)
    await transaction.rollback()
    assert await claims(inspector, tenant) == 0
    async with acting(client, tenant):
        await register(client, tenant, tenant, record)
    assert await claims(inspector, tenant) == 1


async def test_nobody_but_the_owner_reads_the_claims(connect, tenant: str) -> None:
    app, owner, bypass = await connect("app"), await connect("owner"), await connect("bypass")
    await told(app, tenant, tenant)
    for connection in (app, bypass):
        for statement in (
            "select * from memory.artefact_claims",
            "insert into memory.artefact_claims values ('', '')",
            "delete from memory.artefact_claims",
            "select memory.framed_hash('a')",
        ):
            with refused("42501"):
                async with acting(connection, tenant):
                    await connection.execute(statement)
    async with acting(owner, "another"):
        assert await owner.fetchval(CLAIMS, "index", tenant) == 1


async def test_tenants_do_not_wait_for_each_other_over_an_artefact(
    connect, client: Connection, inspector: Connection, tenant: str, neighbour: str
) -> None:
    """A wait would tell that somebody else has it registered."""
    other = await connect("app")
    await other.execute("set lock_timeout = '2s'")
    first, second = await told(client, tenant), await told(client, neighbour)
    async with acting(client, tenant):
        await register(client, tenant, tenant, first)
        async with acting(other, neighbour):
            await register(other, neighbour, tenant, second)
        async with acting(other, neighbour):
            await other.execute(DELETE, neighbour, second)
        assert await drained(other, neighbour) == {tenant: False}
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, first)
        third = await told(other, neighbour, f"{tenant} new")
        async with acting(other, neighbour):
            await other.execute(DELETE, neighbour, third)
    assert await claims(inspector, tenant) == 0


async def test_of_two_open_erasures_the_later_one_purges(
    connect, client: Connection, tenant: str, neighbour: str
) -> None:
    other = await connect("app")
    first = await told(client, tenant, tenant)
    second = await told(client, neighbour, tenant)
    async with acting(other, neighbour):
        await other.execute(DELETE, neighbour, second)
        async with acting(client, tenant):
            await client.execute(DELETE, tenant, first)
        # The neighbour's is not committed: who asks now leaves the artefact to it.
        assert await drained(client, tenant) == {tenant: True}
    assert await drained(other, neighbour) == {tenant: False}


@pytest.mark.parametrize("first", ["register", "erase"])
async def test_a_registration_and_an_erasure_of_the_artefact_wait_for_each_other(
    connect, client: Connection, inspector: Connection, tenant: str, first: str
) -> None:
    """A purge is never owed for what is registered: it would take the new entry."""
    other = await connect("app")
    await told(client, tenant, "digest")
    bob = await told(client, tenant, person="bob")

    async def work(connection: Connection, verb: str) -> None:
        if verb == "register":
            await register(connection, tenant, "digest", bob)
        else:
            await forget(connection, tenant, "ann")

    async def later() -> None:
        async with acting(other, tenant):
            await work(other, "erase" if first == "register" else "register")

    async with acting(client, tenant):
        await work(client, first)
        task = asyncio.create_task(later())
        await waits(task, inspector, other)
    if first == "register":
        # It was made from both, and goes with either.
        await task
    else:
        with refused("ME018"):
            await task
    rows = "select count(*) from memory.{} where tenant_key = $1"
    assert await inspector.fetchval(rows.format("artefacts"), tenant) == 0
    assert await inspector.fetchval(rows.format("purges"), tenant) == 1
    assert await damage(inspector, tenant) == []
    with refused("ME018"):
        async with acting(client, tenant):
            await register(client, tenant, "digest", bob)
    async with acting(client, tenant):
        await register(client, tenant, "another", bob)
    assert await living(inspector, tenant) == {bob}


async def test_a_registration_waits_for_the_erasure_of_its_record_and_is_refused(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    other = await connect("app")
    ann = await told(client, tenant)

    async def later() -> None:
        async with acting(other, tenant):
            await register(other, tenant, "late", ann)

    async with acting(client, tenant):
        await client.execute(DELETE, tenant, ann)
        task = asyncio.create_task(later())
        await waits(task, inspector, other)
    with refused("ME006"):
        await task
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("way", ["forget", "delete"])
async def test_of_two_erasures_of_an_artefact_one_counts_it(
    connect, client: Connection, inspector: Connection, tenant: str, way: str
) -> None:
    other = await connect("app")
    people = {name: await told(client, tenant, "both", person=name) for name in ("ann", "bob")}
    counted = []

    async def erase(connection: Connection, person: str) -> None:
        if way == "forget":
            receipt = await forget(connection, tenant, person)
            counted.append((receipt["artefacts"], receipt["memories"]))
        else:
            await connection.execute(DELETE, tenant, people[person])

    async def later() -> None:
        async with acting(other, tenant):
            await erase(other, "bob")

    async with acting(client, tenant):
        await erase(client, "ann")
        task = asyncio.create_task(later())
        await waits(task, inspector, other)
    await task
    stones = await inspector.fetch(
        "select artefacts, memories from memory.tombstones where tenant_key = $1 order by seq",
        tenant,
    )
    assert [tuple(row) for row in stones] == [(1, 1), (0, 1)]
    assert counted == ([] if way == "delete" else [(1, 1), (0, 1)])
    assert await drained(client, tenant) == {"both": False}
    assert await damage(inspector, tenant) == []
