"""Blocked and held people, against raw SQL: refused, taken over, and never passed by."""

from __future__ import annotations

import pytest

from rawsql import (
    WRITERS,
    Connection,
    acting,
    damage,
    derive,
    hash_of,
    insert_record,
    link,
    living,
    refused,
    remember,
    subjects_of,
)


async def set_subject(owner: Connection, tenant: str, person: str, flag: str) -> None:
    async with acting(owner, tenant):
        await owner.execute(
            f"insert into memory.subjects (tenant_key, subject_hash, {flag}) values ($1, $2, true)"
            f" on conflict (tenant_key, subject_hash) do update set {flag} = true",
            tenant,
            hash_of(tenant, person),
        )


@pytest.mark.parametrize("role", WRITERS)
async def test_a_blocked_person_is_refused_directly_and_by_inheritance(
    connect, inspector: Connection, tenant: str, role: str
) -> None:
    connection, owner = await connect(role), await connect("owner")
    async with acting(connection, tenant):
        root = await remember(connection, tenant, "ann")
        other = await remember(connection, tenant, "bob")
        made = await derive(connection, tenant, root)
    await set_subject(owner, tenant, "ann", "blocked")
    with refused("ME005"):
        async with acting(connection, tenant):
            await remember(connection, tenant, "ann")
    with refused("ME005"):
        async with acting(connection, tenant):
            await link(connection, tenant, other, "carol", "ann")
    for sources in ((root,), (other, made)):
        with refused("ME005"):
            async with acting(connection, tenant):
                await derive(connection, tenant, *sources)
    async with acting(connection, tenant):
        await derive(connection, tenant, await remember(connection, tenant, "bob"), other)
    assert await subjects_of(inspector, tenant, made) == {"ann"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("flag", ["blocked", "held"])
@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_block_or_hold_that_an_older_snapshot_cannot_see_is_not_passed_by(
    connect, inspector: Connection, tenant: str, isolation: str, flag: str
) -> None:
    connection, owner = await connect("app"), await connect("owner")
    async with acting(connection, tenant):
        first = await remember(connection, tenant, "ann")
    with refused("40001"):
        async with acting(connection, tenant, isolation):
            await connection.fetch("select from memory.records")
            await set_subject(owner, tenant, "ann", flag)
            await remember(connection, tenant, "ann")
    assert await living(inspector, tenant) == {first}
    async with acting(connection, tenant, isolation):
        await remember(connection, tenant, "bob")


async def test_a_hold_is_taken_over_by_new_and_derived_records(
    connect, inspector: Connection, client: Connection, tenant: str
) -> None:
    owner = await connect("owner")
    async with acting(client, tenant):
        before = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        digest_of_bob = await derive(client, tenant, bob)
    await set_subject(owner, tenant, "ann", "held")
    async with acting(owner, tenant):
        await owner.execute(
            "update memory.records set held = true where tenant_key = $1 and record_id = $2",
            tenant,
            before,
        )
    async with acting(client, tenant):
        after = await remember(client, tenant, "ann")
        digest = await derive(client, tenant, before, bob)
        belief = await derive(client, tenant, digest)
        free = await derive(client, tenant, bob)
    held = "select record_id from memory.records where tenant_key = $1 and held"
    rows = await inspector.fetch(held, tenant)
    assert {row["record_id"] for row in rows} == {before, after, digest, belief}

    # A held person recognised later: the record, and what was derived from it before.
    async with acting(client, tenant):
        await link(client, tenant, bob, "ann")
    rows = await inspector.fetch(held, tenant)
    assert {row["record_id"] for row in rows} == {
        before,
        after,
        digest,
        belief,
        bob,
        digest_of_bob,
        free,
    }


async def test_what_is_derived_beside_a_held_record_in_one_statement_is_not_held(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        await client.execute(
            "select memory.hold(tenant => $1, person => 'ann', person_hash => $2)",
            tenant,
            hash_of(tenant, "ann"),
        )
    async with acting(client, tenant):
        of_ann = await insert_record(client, tenant, origin="derived")
        of_bob = await insert_record(client, tenant, origin="derived")
        await client.execute(
            "insert into memory.provenance (tenant_key, derived_id, source_id)"
            " values ($1, $2, $3), ($1, $4, $5)",
            tenant,
            of_ann,
            ann,
            of_bob,
            bob,
        )
    rows = await inspector.fetch(
        "select record_id from memory.records where tenant_key = $1 and held", tenant
    )
    assert {row["record_id"] for row in rows} == {ann, of_ann}


async def test_a_flag_that_the_owner_set_on_a_record_alone_is_taken_over_too(
    connect, inspector: Connection, client: Connection, tenant: str
) -> None:
    owner = await connect("owner")
    async with acting(client, tenant):
        root, other = await remember(client, tenant, "ann"), await remember(client, tenant, "ann")
    async with acting(owner, tenant):
        await owner.execute("update memory.records set held = true where record_id = $1", root)
    async with acting(client, tenant):
        digest = await derive(client, tenant, root, other)
        free = await derive(client, tenant, other)
    rows = await inspector.fetch(
        "select record_id from memory.records where tenant_key = $1 and held", tenant
    )
    assert {row["record_id"] for row in rows} == {root, digest}
    assert free in await living(inspector, tenant)
