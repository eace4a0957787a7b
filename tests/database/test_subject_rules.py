"""Whom a record is about, against raw SQL: hashes, and what is inherited of them."""

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
    refused,
    remember,
    source,
    subjects_of,
)


async def test_the_application_cannot_call_a_direct_link_inherited(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await insert_record(client, tenant)
        with refused("42501"):
            async with client.transaction():
                await client.execute(
                    "insert into memory.record_subjects"
                    " (tenant_key, record_id, subject_key, subject_hash, inherited)"
                    " values ($1, $2, 'ann', $3, true)",
                    tenant,
                    root,
                    hash_of(tenant, "ann"),
                )
        await link(client, tenant, root, "ann")
        made = await derive(client, tenant, root)
    rows = await inspector.fetch(
        "select record_id, inherited from memory.record_subjects where tenant_key = $1", tenant
    )
    assert {row["record_id"]: row["inherited"] for row in rows} == {root: False, made: True}


@pytest.mark.parametrize("role", WRITERS)
async def test_a_subject_key_has_one_hash(
    connect, inspector: Connection, tenant: str, neighbour: str, role: str
) -> None:
    connection = await connect(role)
    insert = (
        "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
        " values ($1, $2, 'ann', $3)"
    )
    async with acting(connection, tenant):
        await remember(connection, tenant, "ann")
    for other in (hash_of(tenant, "bob"), "0" * 64, "f" * 64):
        with refused("ME011"):
            async with acting(connection, tenant):
                record_id = await insert_record(connection, tenant)
                await connection.execute(insert, tenant, record_id, other)
    with refused("ME011"):
        async with acting(connection, tenant):
            pair = [await insert_record(connection, tenant) for _ in range(2)]
            await connection.execute(
                "insert into memory.record_subjects"
                " (tenant_key, record_id, subject_key, subject_hash)"
                " select $1, u.id, 'new', u.hash"
                " from unnest($2::uuid[], $3::text[]) as u (id, hash)",
                tenant,
                pair,
                ["0" * 64, "1" * 64],
            )
    async with acting(connection, tenant):
        record_id = await insert_record(connection, tenant)
        await connection.execute(insert, tenant, record_id, hash_of(tenant, "ann"))
    async with acting(connection, neighbour):
        await remember(connection, neighbour, "ann")
    assert await damage(inspector, tenant) == []


async def test_a_derived_record_is_about_everybody_its_sources_are_about(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        one = await remember(client, tenant, "ann", "acme")
        two = await remember(client, tenant, "bob")
        digest = await derive(client, tenant, one, two)
        belief = await derive(client, tenant, digest)
    assert await subjects_of(inspector, tenant, belief) == {"ann", "acme", "bob"}
    # Whoever walks the tenants finds it.
    known = "select count(*) from memory.tenants where tenant_key = $1"
    assert await inspector.fetchval(known, tenant) == 1
    assert await damage(inspector, tenant) == []


async def test_a_later_link_reaches_a_whole_chain(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        bystander = await remember(client, tenant, "carol")
        chain = [await derive(client, tenant, root)]
        for _ in range(30):
            chain.append(await derive(client, tenant, chain[-1]))
        outside = await derive(client, tenant, bystander)
    async with acting(client, tenant):
        await link(client, tenant, root, "dana")
    direct = "select record_id from memory.record_subjects where tenant_key = $1 and not inherited"
    rows = await inspector.fetch(f"{direct} and subject_key = 'dana'", tenant)
    assert [row["record_id"] for row in rows] == [root]
    for record_id in chain:
        assert await subjects_of(inspector, tenant, record_id) == {"ann", "dana"}
    assert await subjects_of(inspector, tenant, outside) == {"carol"}
    assert await damage(inspector, tenant) == []


async def test_a_link_reaches_what_was_derived_in_the_same_transaction(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        belief = await derive(client, tenant, await derive(client, tenant, root))
        await link(client, tenant, root, "dana")
    assert await subjects_of(inspector, tenant, belief) == {"ann", "dana"}
    assert await damage(inspector, tenant) == []


async def test_a_link_reaches_what_was_derived_from_a_record_touched_in_the_same_transaction(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        digest = await derive(client, tenant, root)
    async with acting(client, tenant):
        await client.execute(
            "update memory.records set superseded_at = now()"
            " where tenant_key = $1 and record_id = $2",
            tenant,
            root,
        )
        await link(client, tenant, root, "dana")
    assert await subjects_of(inspector, tenant, digest) == {"ann", "dana"}
    assert await damage(inspector, tenant) == []


async def test_edges_written_in_the_wrong_order_pass_everybody_on(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        digest = await insert_record(client, tenant, origin="derived")
        belief = await insert_record(client, tenant, origin="derived")
        await source(client, tenant, belief, bob, digest)
        await source(client, tenant, digest, ann)
    assert await subjects_of(inspector, tenant, belief) == {"ann", "bob"}
    assert await damage(inspector, tenant) == []


async def test_an_edge_added_later_passes_everybody_on(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        ann = await remember(client, tenant, "ann")
        bob = await remember(client, tenant, "bob")
        digest = await derive(client, tenant, ann)
        belief = await derive(client, tenant, digest)
    async with acting(client, tenant):
        await source(client, tenant, digest, bob)
    assert await subjects_of(inspector, tenant, belief) == {"ann", "bob"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_later_link_that_might_overlook_a_derivation_is_refused(
    connect, inspector: Connection, tenant: str, isolation: str
) -> None:
    old, new = await connect("app"), await connect("app")
    async with acting(new, tenant):
        root = await remember(new, tenant, "ann")
        digest = await derive(new, tenant, root)
        bob = await remember(new, tenant, "bob")
    for work in ((link, root, "dana"), (source, digest, bob)):
        with refused("40001"):
            async with acting(old, tenant, isolation):
                await old.fetch("select from memory.records")
                async with acting(new, tenant):
                    await derive(new, tenant, digest)
                await work[0](old, tenant, *work[1:])
    # Of its own making, also under a savepoint, a record takes links as ever.
    async with acting(old, tenant, isolation):
        async with old.transaction():
            fresh = await remember(old, tenant, "ann")
            made = await derive(old, tenant, fresh, root)
        async with old.transaction():
            await link(old, tenant, fresh, "dana")
        await link(old, tenant, made, "eve")
    assert await subjects_of(inspector, tenant, made) == {"ann", "dana", "eve"}
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
@pytest.mark.parametrize("where", ["root", "digest"])
async def test_a_derivation_that_cannot_see_a_later_link_fails(
    connect, inspector: Connection, tenant: str, where: str, isolation: str
) -> None:
    old, new = await connect("app"), await connect("app")
    async with acting(new, tenant):
        root = await remember(new, tenant, "ann")
        digest = await derive(new, tenant, root)
    of = {"root": root, "digest": digest}[where]
    with refused("40001"):
        async with acting(old, tenant, isolation):
            await old.fetch("select from memory.records")
            async with acting(new, tenant):
                await link(new, tenant, root, "dana")
            await derive(old, tenant, of)
    async with acting(old, tenant, isolation):
        made = await derive(old, tenant, of)
    assert await subjects_of(inspector, tenant, made) == {"ann", "dana"}
    assert await damage(inspector, tenant) == []
