"""Long chains, wide closures and cycles are erased whole."""

from __future__ import annotations

import pytest

from memory.ids import uuid7
from rawsql import (
    Connection,
    acting,
    damage,
    derive,
    forget,
    hash_of,
    living,
    remember,
    source,
    tombstones,
)

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"


@pytest.mark.parametrize("start", ["root", "inside"])
async def test_a_cycle_made_by_hand_is_erased_whole(
    client: Connection, inspector: Connection, tenant: str, start: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        bystander = await remember(client, tenant, "bob")
        one = await derive(client, tenant, root)
        two = await derive(client, tenant, one)
        await source(client, tenant, one, two)
    async with acting(client, tenant):
        if start == "root":
            receipt = await forget(client, tenant, "ann")
            assert (receipt["derived"], receipt["provenance_edges"]) == (2, 3)
            assert receipt["cascade_depth"] == 2
        else:
            await client.execute(DELETE, tenant, two)
    kept = {bystander} if start == "root" else {bystander, root}
    assert await living(inspector, tenant) == kept
    assert await damage(inspector, tenant) == []


async def test_a_chain_of_ten_thousand_is_erased_whole(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    """Cascades nested one per level end at about a thousand with "stack depth limit exceeded"."""
    chain = [uuid7() for _ in range(10_000)]
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        await remember(client, tenant, "bob")
        await client.execute(
            "insert into memory.records (tenant_key, record_id, origin, text)"
            " select $1, u, 'derived', 'x' from unnest($2::uuid[]) as u",
            tenant,
            chain,
        )
        await client.execute(
            "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
            " select $1, u, 'ann', $3 from unnest($2::uuid[]) as u",
            tenant,
            chain,
            hash_of(tenant, "ann"),
        )
        await client.execute(
            "insert into memory.provenance (tenant_key, derived_id, source_id)"
            " select $1, d, s from unnest($2::uuid[], $3::uuid[]) as e (d, s)",
            tenant,
            chain,
            [root, *chain[:-1]],
        )
    async with acting(client, tenant):
        dry = await forget(client, tenant, "ann", dry_run=True)
        assert (dry["derived"], dry["cascade_depth"]) == (10_000, 0)
        single = await forget(client, tenant, single=root, dry_run=True)
        assert (single["derived"], single["cascade_depth"]) == (10_000, 10_000)
    async with acting(client, tenant):
        await client.execute(DELETE, tenant, root)
    assert len(await living(inspector, tenant)) == 1
    assert await damage(inspector, tenant) == []
    (stone,) = await tombstones(inspector, tenant)
    assert (stone["memories"], stone["derived"]) == (1, 10_000)


@pytest.mark.parametrize("how", ["forget", "delete"])
async def test_twenty_thousand_records_and_five_thousand_derived_are_erased_whole(
    client: Connection, inspector: Connection, tenant: str, how: str
) -> None:
    roots = [uuid7() for _ in range(20_000)]
    derived = [uuid7() for _ in range(5_000)]
    async with acting(client, tenant):
        kept = await remember(client, tenant, "bob")
        await client.execute(
            "insert into memory.records (tenant_key, record_id, origin, text)"
            " select $1, u, 'remembered', 'x' from unnest($2::uuid[]) as u"
            " union all select $1, u, 'derived', 'x' from unnest($3::uuid[]) as u",
            tenant,
            roots,
            derived,
        )
        await client.execute(
            "insert into memory.record_subjects (tenant_key, record_id, subject_key, subject_hash)"
            " select $1, u, 'ann', $3 from unnest($2::uuid[]) as u",
            tenant,
            roots,
            hash_of(tenant, "ann"),
        )
        await client.execute(
            "insert into memory.provenance (tenant_key, derived_id, source_id)"
            " select $1, d, s from unnest($2::uuid[], $3::uuid[]) as e (d, s)",
            tenant,
            [record_id for record_id in derived for _ in range(4)],
            roots,
        )
    async with acting(client, tenant):
        if how == "forget":
            receipt = await forget(client, tenant, "ann")
            assert (receipt["memories"], receipt["derived"]) == (20_000, 5_000)
            assert receipt["cascade_depth"] == 1
        else:
            await client.execute(
                "delete from memory.records where tenant_key = $1 and record_id = any ($2)",
                tenant,
                roots,
            )
    assert await living(inspector, tenant) == {kept}
    assert await damage(inspector, tenant) == []
    (stone,) = await tombstones(inspector, tenant)
    assert (stone["memories"], stone["derived"], stone["provenance_edges"]) == (
        20_000,
        5_000,
        20_000,
    )
