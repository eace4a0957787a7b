"""Tombstones are sealed at commit and chained, with one digest in SQL and in Python."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from memory import embedded
from memory.fingerprint import tombstone_digest
from memory.types import Tombstone
from rawsql import (
    ISOLATION,
    Connection,
    act,
    acting,
    damage,
    derive,
    forget,
    hash_of,
    living,
    refused,
    register,
    remember,
    tombstones,
)

DELETE = "delete from memory.records where tenant_key = $1 and record_id = $2"


def stones(rows: list[asyncpg.Record]) -> list[Tombstone]:
    return [Tombstone(**dict(row)) for row in rows]


async def test_the_chain_links_every_tombstone_to_the_one_before(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    for person in ("ann", "bob", "carol"):
        async with acting(client, tenant):
            await remember(client, tenant, person)
    for person in ("ann", "bob", "carol"):
        async with acting(client, tenant):
            await forget(client, tenant, person)
    chain = stones(await tombstones(inspector, tenant))
    assert [stone.seq for stone in chain] == [1, 2, 3]
    assert [stone.previous for stone in chain] == ["", chain[0].digest, chain[1].digest]
    assert [tombstone_digest(stone) for stone in chain] == [stone.digest for stone in chain]
    head = await inspector.fetchrow(
        "select seq, digest from memory.chain_heads where tenant_key = $1", tenant
    )
    assert tuple(head) == (3, chain[2].digest)


async def sql_digests(connection: Connection, given: list[Tombstone]) -> list[str]:
    query = await connection.prepare(
        "select memory.tombstone_digest(row($1::text, $2::bigint, $3::uuid, $4::text, $5::text,"
        " $6::text, $7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::timestamptz,"
        " $12::smallint, $13::text, $14::text)::memory.tombstones)"
    )
    return [
        await query.fetchval(*(getattr(stone, name) for name in Tombstone.__slots__))
        for stone in given
    ]


GOLDEN = Tombstone(
    tenant_key="acmé",
    seq=2,
    erasure_id=UUID("0190a9c0-0000-7000-8000-000000000000"),
    subject_hash="ab" * 32,
    reason="subject_request",
    scope="subject",
    memories=3,
    derived=1,
    provenance_edges=2,
    artefacts=0,
    erased_at=datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    format=1,
    previous="cd" * 32,
    digest="903d997cb1d771365318bdb85bd5d1ee999c3c97cc399be4056ec666e2921ec7",
)


async def test_the_golden_vector_has_one_digest_in_both_languages(client: Connection) -> None:
    assert await sql_digests(client, [GOLDEN]) == [GOLDEN.digest]
    assert tombstone_digest(GOLDEN) == GOLDEN.digest
    changed = dataclasses.replace(GOLDEN, memories=4)
    assert await sql_digests(client, [changed]) == [tombstone_digest(changed)]
    assert tombstone_digest(changed) != GOLDEN.digest


async def test_random_rows_have_one_digest_in_both_languages(client: Connection) -> None:
    chance = random.Random(7)  # noqa: S311 - rows to compare, not secrets
    start = datetime(1900, 1, 1, tzinfo=UTC)
    rows = [
        Tombstone(
            tenant_key="".join(chance.choices("ab:0 é中😀\"'\\", k=chance.randint(1, 20))),
            seq=chance.randint(1, 2**62),
            erasure_id=UUID(int=chance.getrandbits(128)),
            subject_hash=f"{chance.getrandbits(256):064x}",
            reason=chance.choice(["subject_request", "retention_policy", "operator"]),
            scope=chance.choice(["subject", "kinds", "record", "retention", "tenant"]),
            memories=chance.randint(0, 2**40),
            derived=chance.randint(0, 9),
            provenance_edges=chance.randint(0, 9),
            artefacts=chance.randint(0, 9),
            erased_at=start + timedelta(microseconds=chance.randint(0, 200 * 365 * 86400 * 10**6)),
            format=1,
            previous=chance.choice(["", f"{chance.getrandbits(256):064x}"]),
            digest="",
        )
        for _ in range(300)
    ]
    assert await sql_digests(client, rows) == [tombstone_digest(row) for row in rows]


@pytest.mark.parametrize("setting", ["TimeZone to 'Asia/Kolkata'", "DateStyle to 'German'"])
async def test_the_digest_does_not_depend_on_the_session(client: Connection, setting: str) -> None:
    await client.execute(f"set {setting}")
    assert await sql_digests(client, [GOLDEN]) == [GOLDEN.digest]


@pytest.mark.parametrize("mode", ["memory.seal", "memory.seal, memory.complete"])
async def test_evidence_sealed_at_once_counts_the_same(
    client: Connection, inspector: Connection, tenant: str, mode: str
) -> None:
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
        await derive(client, tenant, root)
        await register(client, tenant, "vector-1", root)
    async with acting(client, tenant):
        await client.execute(f"set constraints {mode} immediate")
        await client.execute(DELETE, tenant, root)
    rows = await tombstones(inspector, tenant)
    totals = [sum(row[name] for row in rows) for name in ("memories", "derived", "artefacts")]
    assert totals == [1, 1, 1]
    assert {row["subject_hash"] for row in rows} == {hash_of(tenant, "ann")}
    assert await damage(inspector, tenant) == []


async def test_a_transaction_of_two_tenants_seals_both_chains(
    client: Connection, inspector: Connection, tenant: str, neighbour: str
) -> None:
    for name in (tenant, neighbour):
        async with acting(client, name):
            await remember(client, name, "ann")
            await remember(client, name, "bob")
    async with client.transaction():
        for name in (tenant, neighbour):
            await act(client, name)
            await forget(client, name, "ann")
        await act(client, "")
    for name in (tenant, neighbour):
        (stone,) = stones(await tombstones(inspector, name))
        assert (stone.seq, stone.memories, stone.previous) == (1, 1, "")
        assert stone.digest == tombstone_digest(stone)
        assert len(await living(inspector, name)) == 1


async def test_a_sealed_erasure_returns_the_anchor_of_its_newest_tombstone(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        await remember(client, tenant, "ann")
        root = await remember(client, tenant, "bob", "carol")
        eve = await remember(client, tenant, "eve")
        await derive(client, tenant, eve)
    async with acting(client, tenant):
        one = await forget(client, tenant, "ann", sealed=True)
    async with acting(client, tenant):
        two = await forget(client, tenant, single=root, sealed=True)
        # What follows is sealed at the commit again, as one.
        await client.execute(DELETE, tenant, eve)
        unsealed = await forget(client, tenant, "dana")
    rows = await tombstones(inspector, tenant)
    assert (one["anchor_seq"], one["anchor_digest"]) == (1, rows[0]["digest"])
    assert (two["anchor_seq"], two["anchor_digest"]) == (3, rows[2]["digest"])
    assert unsealed["anchor_seq"] is None
    assert [row["seq"] for row in rows] == [1, 2, 3, 4, 5]
    assert [(row["memories"], row["derived"]) for row in rows[3:]] == [(1, 1), (0, 0)]


async def test_an_open_erasure_does_not_make_another_wait(
    connect, inspector: Connection, tenant: str
) -> None:
    """The lock on the chain is taken at commit: a long job holds up nobody."""
    job, other = await connect("app"), await connect("app")
    async with acting(job, tenant):
        ann = await remember(job, tenant, "ann")
        await remember(job, tenant, "bob")
    async with asyncio.timeout(10), acting(job, tenant):
        await job.execute(DELETE, tenant, ann)
        async with acting(other, tenant):
            await forget(other, tenant, "bob")
    rows = stones(await tombstones(inspector, tenant))
    assert [row.subject_hash for row in rows] == [hash_of(tenant, "bob"), hash_of(tenant, "ann")]
    assert rows[1].previous == rows[0].digest


@pytest.mark.parametrize("isolation", ISOLATION)
async def test_chains_never_fork(
    connect, inspector: Connection, tenant: str, isolation: str
) -> None:
    one, two = await connect("app"), await connect("app")
    async with acting(one, tenant):
        ann = await remember(one, tenant, "ann")
        bob = await remember(one, tenant, "bob")
    failed = None
    try:
        async with acting(one, tenant, isolation):
            await one.execute(DELETE, tenant, ann)
            async with acting(two, tenant):
                await two.execute(DELETE, tenant, bob)
    except asyncpg.SerializationError as error:
        failed = error
    assert (failed is None) is (isolation == "read_committed")
    chain = stones(await tombstones(inspector, tenant))
    assert [stone.seq for stone in chain] == list(range(1, 2 if failed else 3))
    for before, after in itertools.pairwise(chain):
        assert after.previous == before.digest


async def test_prepared_transactions_are_off_on_the_server_of_the_tests(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    if await inspector.fetchval("show max_prepared_transactions") != "0":
        return
    async with acting(client, tenant):
        root = await remember(client, tenant, "ann")
    with refused("55000"):
        await client.execute("begin")
        await act(client, tenant)
        await client.execute(DELETE, tenant, root)
        await client.execute("prepare transaction 'erasure'")
    assert await living(inspector, tenant) == {root}


async def test_a_prepared_transaction_is_sealed_when_it_is_prepared() -> None:
    settings = {"max_prepared_transactions": "4", "fsync": "off"}
    async with embedded.serve(settings=settings) as server:
        connection = await asyncpg.connect(server.url)
        superuser = await asyncpg.connect(server.superuser_url)
        try:
            async with acting(connection, "acme"):
                root = await remember(connection, "acme", "ann")
                kept = await remember(connection, "acme", "bob")
            await connection.execute("begin")
            await act(connection, "acme")
            await connection.execute(DELETE, "acme", root)
            await connection.execute("prepare transaction 'erasure'")
            assert await tombstones(superuser, "acme") == []
            await connection.execute("commit prepared 'erasure'")
            (stone,) = stones(await tombstones(superuser, "acme"))
            assert (stone.memories, stone.digest) == (1, tombstone_digest(stone))
            assert await living(superuser, "acme") == {kept}
            assert await damage(superuser, "acme") == []
        finally:
            await superuser.close()
            await connection.close()


async def test_the_tenant_of_every_chain_is_known_to_who_walks_them(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        await forget(client, tenant, "stranger")
    assert len(await tombstones(inspector, tenant)) == 1
    known = "select count(*) from memory.tenants where tenant_key = $1"
    assert await inspector.fetchval(known, tenant) == 1
