"""A hold or a block ends by the decision to end it, whoever types what."""

from __future__ import annotations

import pytest

from rawsql import (
    ISOLATION,
    Connection,
    acting,
    damage,
    forget,
    hash_of,
    link,
    living,
    refused,
    remember,
)

OWNING = ["owner", "superuser"]
DELETE = "delete from memory.records where tenant_key = $1"


async def decided(connection: Connection, verb: str, tenant: str, person: str) -> None:
    """Call memory.hold, release or readmit in a transaction of its own."""
    async with acting(connection, tenant):
        await connection.execute(
            f"select memory.{verb}(tenant => $1, person => $2, person_hash => $3)",
            tenant,
            person,
            hash_of(tenant, person),
        )


LIFTS = {
    "the flag of a record": "update memory.records set held = false where tenant_key = $1",
    "the flag of a person": "update memory.subjects set held = false where tenant_key = $1",
    "the block of a person": "update memory.subjects set blocked = false where tenant_key = $1",
    "both": "update memory.subjects set held = false, blocked = false where tenant_key = $1",
    "the person": "delete from memory.subjects where tenant_key = $1",
    "who it is": "update memory.subjects set subject_hash = repeat('0', 64) where tenant_key = $1",
    "whose it is": "update memory.subjects set tenant_key = 'elsewhere' where tenant_key = $1",
    "in one statement": "with lifted as (update memory.subjects set held = false where"
    " tenant_key = $1 returning 1) update memory.records set held = false where tenant_key = $1",
    "a row put over it": "insert into memory.subjects (tenant_key, subject_hash)"
    " select tenant_key, subject_hash from memory.subjects where tenant_key = $1"
    " on conflict (tenant_key, subject_hash) do update set held = false",
}


@pytest.mark.parametrize("role", OWNING)
@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("lift", LIFTS)
async def test_no_hold_and_no_block_is_lifted_without_its_decision(
    connect, client: Connection, inspector: Connection, tenant: str, role, isolation, lift
) -> None:
    connection = await connect(role)
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
    await decided(client, "hold", tenant, "ann")
    async with acting(client, tenant):
        await forget(client, tenant, "ann", block=True)
    before = await inspector.fetch(
        "select s::text from memory.subjects as s where tenant_key = $1", tenant
    )
    with refused("ME002" if lift in ("who it is", "whose it is") else "ME010"):
        async with acting(connection, tenant, isolation):
            await connection.execute(LIFTS[lift], tenant)
    after = await inspector.fetch(
        "select s::text from memory.subjects as s where tenant_key = $1", tenant
    )
    assert after == before
    with refused("ME003"):
        async with acting(connection, tenant, isolation):
            await connection.execute(DELETE, tenant)
    assert await living(inspector, tenant) == {ann}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("replica", [False, True])
@pytest.mark.parametrize("lift", LIFTS)
async def test_a_job_that_says_another_tenant_or_none_lifts_nothing_either(
    connect,
    client: Connection,
    inspector: Connection,
    tenant: str,
    neighbour: str,
    lift: str,
    replica: bool,
) -> None:
    job = await connect("superuser")
    if replica:
        await job.execute("set session_replication_role = replica")
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
    await decided(client, "hold", tenant, "ann")
    async with acting(client, tenant):
        await forget(client, tenant, "ann", block=True)
    for said in (None, neighbour):
        with refused("ME002" if lift in ("who it is", "whose it is") else "ME010"):
            async with acting(job, said):
                await job.execute(LIFTS[lift], tenant)
        with refused("ME003"):
            async with acting(job, said):
                await job.execute(DELETE, tenant)
    assert await living(inspector, tenant) == {ann}
    await decided(await connect("operator"), "release", tenant, "ann")
    assert await living(inspector, tenant) == set()
    assert await damage(inspector, tenant) == []


async def test_an_old_release_lifts_no_later_hold(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    owner, operator = await connect("owner"), await connect("operator")
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        await link(client, tenant, bob, "carol")
    for person in ("ann", "bob", "ann", "carol"):
        await decided(client, "hold", tenant, person)
        if person == "bob":
            await decided(operator, "release", tenant, "ann")
    for statement in (LIFTS["the flag of a record"], LIFTS["the flag of a person"]):
        with refused("ME010"):
            async with acting(owner, tenant):
                await owner.execute(statement, tenant)
    # The operator's decision does, for the one person it is about.
    await decided(operator, "release", tenant, "ann")
    await decided(operator, "release", tenant, "carol")
    with refused("ME010"):
        async with acting(owner, tenant):
            await owner.execute(LIFTS["the flag of a person"], tenant)
    with refused("ME003"):
        async with acting(client, tenant):
            await client.execute(DELETE + " and record_id = $2", tenant, bob)
    async with acting(client, tenant):
        await client.execute(DELETE + " and record_id = $2", tenant, ann)
    assert await living(inspector, tenant) == {bob}


async def test_a_flag_that_nobody_asked_for_may_be_put_right(
    connect, client: Connection, inspector: Connection, tenant: str, neighbour: str
) -> None:
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
    for role, said in (("owner", tenant), ("superuser", neighbour)):
        connection = await connect(role)
        async with acting(connection, said):
            for flag in (True, False):
                update = f"update memory.records set held = {flag} where tenant_key = $1"
                assert await connection.execute(update, tenant) == "UPDATE 1"
            assert await connection.fetchval("select current_setting('app.current_tenant')") == said
    async with acting(client, tenant):
        await client.execute(DELETE, tenant)
    assert await living(inspector, tenant) == set()
