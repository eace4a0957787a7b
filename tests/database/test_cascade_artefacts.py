"""A delete turns artefacts into debts, and stops at a legal hold."""

from __future__ import annotations

import pytest

from memory.ids import uuid7
from rawsql import (
    ISOLATION,
    Connection,
    act,
    acting,
    damage,
    derive,
    hash_of,
    living,
    refused,
    register,
    remember,
    tombstones,
)

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"


@pytest.mark.parametrize("role", ["app", "owner", "superuser", "bypass"])
@pytest.mark.parametrize("isolation", ISOLATION)
async def test_a_held_record_is_deleted_by_nobody(
    connect, inspector: Connection, tenant: str, role: str, isolation: str
) -> None:
    connection, owner = await connect(role), await connect("owner")
    async with acting(owner, tenant):
        held = await remember(owner, tenant, "ann")
        bob = await remember(owner, tenant, "bob")
        carol = await remember(owner, tenant, "carol")
        digest = await derive(owner, tenant, held, bob)
        await owner.execute(
            "update memory.records set held = true where tenant_key = $1 and record_id = any ($2)",
            tenant,
            [held, digest],
        )
    # The record itself; and one from which a held record was derived.
    for record_id in (held, digest, bob):
        with refused("ME003"):
            async with acting(connection, tenant, isolation):
                await connection.execute(DELETE, tenant, record_id)
    async with acting(connection, tenant, isolation):
        await connection.execute(DELETE, tenant, carol)
    assert await living(inspector, tenant) == {held, bob, digest}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize(
    ("isolation", "state"),
    [("read_committed", "ME003"), ("repeatable_read", "40001"), ("serializable", "40001")],
)
async def test_a_hold_set_after_the_snapshot_still_keeps_the_record(
    connect, inspector: Connection, tenant: str, isolation: str, state: str
) -> None:
    old, owner = await connect("app"), await connect("owner")
    async with acting(old, tenant):
        held = await remember(old, tenant, "ann")
    with refused(state):
        async with acting(old, tenant, isolation):
            await old.fetch("select from memory.records")
            async with acting(owner, tenant):
                await owner.execute("update memory.records set held = true")
            await old.execute(DELETE, tenant, held)
    assert await living(inspector, tenant) == {held}
    async with acting(owner, tenant):
        await owner.execute("update memory.records set held = false")
    async with acting(old, tenant, isolation):
        await old.execute(DELETE, tenant, held)
    assert await living(inspector, tenant) == set()


async def test_artefacts_become_purges_that_know_their_people(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        digest = await derive(client, tenant, ann)
        await register(client, tenant, "of-both", ann, bob)
        await register(client, tenant, "of-digest", digest, ann)
        await register(client, tenant, "of-bob", bob)
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, ann)
    owed = await inspector.fetch(
        "select artefact_id, subject_hashes from memory.purges where tenant_key = $1", tenant
    )
    assert {row["artefact_id"]: row["subject_hashes"] for row in owed} == {
        "of-both": sorted([hash_of(tenant, "ann"), hash_of(tenant, "bob")]),
        "of-digest": [hash_of(tenant, "ann")],
    }
    left = await inspector.fetch(
        "select artefact_id from memory.artefacts where tenant_key = $1", tenant
    )
    assert [row["artefact_id"] for row in left] == ["of-bob"]
    (stone,) = await tombstones(inspector, tenant)
    assert stone["artefacts"] == 2
    assert await damage(inspector, tenant) == []


async def test_what_another_index_calls_by_the_same_id_stays(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        await register(client, tenant, "vector-1", ann, adapter="first")
        await register(client, tenant, "vector-1", bob, adapter="second")
    other = await connect("app")
    undone = other.transaction()
    await undone.start()
    await act(other, tenant)
    await other.execute(DELETE, tenant, bob)
    # Nor is it waited for.
    await client.execute("set lock_timeout = '2s'")
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, ann)
    await undone.rollback()
    for table, adapter in (("purges", "first"), ("artefacts", "second")):
        rows = await inspector.fetch(
            f"select adapter from memory.{table} where tenant_key = $1", tenant
        )
        assert [row["adapter"] for row in rows] == [adapter]
    # Whom a purge is about is not said of another's either.
    async with acting(client, tenant):
        carol = await remember(client, tenant, "carol")
        await register(client, tenant, "vector-1", carol, adapter="second")
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, carol)
    owed = await inspector.fetch(
        "select adapter, subject_hashes from memory.purges where tenant_key = $1", tenant
    )
    assert {row["adapter"]: row["subject_hashes"] for row in owed} == {
        "first": [hash_of(tenant, "ann")],
        "second": sorted([hash_of(tenant, "bob"), hash_of(tenant, "carol")]),
    }
    assert await damage(inspector, tenant) == []


async def test_an_artefact_of_an_unknown_record_is_refused_at_once(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        with refused("ME006"):
            async with client.transaction():
                await register(client, tenant, "vector-1", root, uuid7())
        await register(client, tenant, "vector-1", root)
    for change in ("update memory.artefacts set artefact_id = 'x'", "delete from memory.artefacts"):
        with refused("42501"):
            async with acting(client, tenant):
                await client.execute(change)
    assert (
        await inspector.fetchval(
            "select artefact_id from memory.artefacts where tenant_key = $1", tenant
        )
        == "vector-1"
    )


async def test_a_job_registers_in_the_tenant_of_the_rows_whatever_tenant_it_says(
    connect, client: Connection, inspector: Connection, tenant: str, neighbour: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
    job = await connect("superuser")
    for said in (None, neighbour):
        async with acting(job, said):
            await register(job, tenant, f"of-{said}", root)
            setting = await job.fetchval("select current_setting('app.current_tenant', true)")
            assert (setting or None) == said
        with refused("ME006"):
            async with acting(job, said):
                await register(job, tenant, "of-nothing", uuid7())
    kept = await inspector.fetch(
        "select artefact_id from memory.artefacts where tenant_key = $1 and record_id = $2",
        tenant,
        root,
    )
    assert {row["artefact_id"] for row in kept} == {"of-None", f"of-{neighbour}"}
