"""Retention and whole tenants in PostgreSQL: batches, crashes, neighbours, and what is left."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import LegalHoldError, Memory, Receipt
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection, acting, damage, hash_of, living, refused, remember, tombstones
from servers import Database
from stores import broken_rules, image, record_statements, rows_of

SWEEPING = Path(__file__).parents[1] / "support" / "sweeping.py"
PAST = datetime(2026, 1, 1, tzinfo=UTC)
DUE = 60


@pytest.fixture
async def engine(shared: Database) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(normalize_url(shared.operator_url), pool_size=10)
    yield engine
    await engine.dispose()


@pytest.fixture
def memory(engine: AsyncEngine) -> Memory:
    return Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")


async def fill(memory: Memory, tenant: str) -> None:
    """Due records of two people, digests of them, and as much that is not due."""
    for expires in (PAST, None):
        told = await memory.remember_many(
            tenant,
            items=[
                {
                    "text": f"note {n}",
                    "subject_keys": "ann" if n % 3 else ["ann", "bob"],
                    "expires_at": expires,
                }
                for n in range(DUE)
            ],
        )
        for n in range(0, DUE, 10):
            sources = [one.record for one in told[n : n + 3]]
            await memory.derive(tenant, kind="summary", text="notes", sources=sources)


def swept(stones: list[Any]) -> tuple[int, int, int]:
    """Memories and derived records of the tombstones of one person, and how many they are."""
    memories = sum(stone["memories"] for stone in stones)
    derived = sum(stone["derived"] for stone in stones)
    return memories, derived, len(stones)


async def test_a_killed_sweep_is_continued_by_the_next(
    memory: Memory, shared: Database, inspector: Connection, tenant: str, neighbour: str
) -> None:
    """SIGKILL at five moments: each batch is there as a whole, and the end state is the same."""
    await fill(memory, tenant)
    await fill(memory, neighbour)
    before = await image(inspector, neighbour)
    hash_ = memory.subject_fingerprint(tenant, subject_key="ann")
    chance = random.Random("sweep")  # noqa: S311 - reproducible, not secret
    for _ in range(5):
        told = len(await tombstones(inspector, tenant))
        child = subprocess.Popen([sys.executable, SWEEPING, shared.app_url, tenant])
        while len(await tombstones(inspector, tenant)) < told + 5:
            assert child.poll() is None, "it ended before it was killed"
            await asyncio.sleep(0.002)
        await asyncio.sleep(chance.random() * 0.01)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert await broken_rules(inspector, tenant) == {}
        assert await damage(inspector, tenant) == []
    receipt = await memory.expire(tenant, batch=7)
    assert receipt.complete
    stones = [s for s in await tombstones(inspector, tenant) if s["subject_hash"] == hash_]
    memories, derived, count = swept(stones)
    assert (memories, derived) == (DUE, DUE // 10)
    assert count > 5
    assert len({stone["erasure_id"] for stone in stones}) == 6
    assert len(await living(inspector, tenant)) == DUE + DUE // 10
    assert await damage(inspector, tenant) == []
    assert await image(inspector, neighbour) == before


async def test_a_sweep_sends_one_statement_for_each_batch(shared: Database, tenant: str) -> None:
    engine = create_async_engine(normalize_url(shared.app_url))
    sent = record_statements(engine)
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    await fill(memory, tenant)
    counts = []
    for batch in (1_000, 20):
        await fill(memory, tenant)
        # What the driver logs comes with the loop's next turn.
        await asyncio.sleep(0)
        before = len(sent)
        await memory.expire(tenant, batch=batch)
        await asyncio.sleep(0)
        counts.append(len(sent) - before)
    await engine.dispose()
    # What is due is twice as much in the first round; a full batch is followed by another one.
    assert counts == [1, DUE // 20 + 1]


async def test_two_sweeps_at_once_count_every_record_once(
    memory: Memory, inspector: Connection, tenant: str
) -> None:
    await fill(memory, tenant)
    receipts = await asyncio.gather(*(memory.expire(tenant, batch=5) for _ in range(3)))
    assert sum(receipt.counts.memories for receipt in receipts) == DUE
    assert sum(receipt.counts.derived for receipt in receipts) == DUE // 10
    assert await damage(inspector, tenant) == []


@pytest.mark.parametrize("seed", range(30))
async def test_a_sweep_beside_a_hold_erases_or_keeps_each_record(
    memory: Memory, inspector: Connection, tenant: str, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    told = [
        (await memory.remember(tenant, text="x", subject_keys=person, expires_at=PAST)).record
        for person in ("ann", "ann", "bob", "ann", "bob")
    ]
    made = (
        await memory.derive(tenant, kind="summary", text="x", sources=[told[0], told[2]])
    ).record

    async def hold() -> None:
        await asyncio.sleep(chance.random() * 0.01)
        await memory.hold(tenant, subject_key="ann")

    batch = chance.randint(1, 4)
    receipt, _ = await asyncio.gather(memory.expire(tenant, batch=batch), hold())
    left = await living(inspector, tenant)
    assert receipt.counts.records == 6 - len(left)
    assert receipt.held == len(left - {made.record_id})
    flagged = await inspector.fetch(
        "select record_id from memory.records where tenant_key = $1 and held", tenant
    )
    about_ann = {told[n].record_id for n in (0, 1, 3)} | {made.record_id}
    assert {row["record_id"] for row in flagged} == about_ann & left
    assert (told[2].record_id in left) == (made.record_id in left)
    assert told[4].record_id not in left
    assert await damage(inspector, tenant) == []


async def test_a_whole_tenant_leaves_evidence_and_no_hash_of_anybody_else(
    memory: Memory, inspector: Connection, tenant: str, neighbour: str
) -> None:
    await fill(memory, tenant)
    await fill(memory, neighbour)
    before = await image(inspector, neighbour)
    await memory.remember(tenant, text="x", subject_keys="cid")
    await memory.forget(tenant, subject_key="dora", block_future=True)
    await memory.forget_tenant(tenant, confirm=tenant, batch=25)
    left = await rows_of(inspector, tenant)
    assert set(left) == {
        "tenants", "tombstones", "chain_heads", "tenant_counts", "decisions", "subjects"
    }  # fmt: skip
    stay = await inspector.fetch(
        "select subject_hash, blocked from memory.subjects where tenant_key = $1", tenant
    )
    assert [tuple(row) for row in stay] == [
        (memory.subject_fingerprint(tenant, subject_key="dora"), True)
    ]
    counted = await inspector.fetchval(
        "select sum(records) from memory.tenant_counts where tenant_key = $1", tenant
    )
    assert counted == 0
    assert await image(inspector, neighbour) == before


async def test_writers_beside_the_end_of_a_tenant_are_erased_or_stay_whole(
    memory: Memory, inspector: Connection, tenant: str
) -> None:
    await fill(memory, tenant)

    async def write(person: str) -> None:
        for n in range(10):
            await memory.remember(tenant, text=f"x {n}", subject_keys=person)

    async def end() -> Receipt:
        return await memory.forget_tenant(tenant, confirm=tenant, batch=10)

    await asyncio.gather(write("ann"), write("bob"), end(), write("eve"), end())
    assert await damage(inspector, tenant) == []
    assert await broken_rules(inspector, tenant) == {}
    await end()
    assert await living(inspector, tenant) == set()


async def test_in_the_callers_transaction_all_batches_are_one(
    memory: Memory, engine: AsyncEngine, inspector: Connection, tenant: str
) -> None:
    await fill(memory, tenant)
    before = await image(inspector, tenant)
    for end in ("rollback", "commit"):
        async with engine.connect() as connection:
            joined = Memory(
                PostgresStore.joined(connection), redactor=None, subject_pepper="pepper"
            )
            receipt = await joined.expire(tenant, batch=7)
            assert receipt.counts.memories == DUE
            assert receipt.anchor is None
            assert await image(inspector, tenant) == before
            await (connection.commit() if end == "commit" else connection.rollback())
        if end == "rollback":
            assert await image(inspector, tenant) == before
    assert len(await living(inspector, tenant)) == DUE + DUE // 10
    people = {stone["subject_hash"] for stone in await tombstones(inspector, tenant)}
    assert len(people) == len(await tombstones(inspector, tenant)) == 2


async def test_times_that_no_calendar_of_python_has_are_swept(
    shared: Database, inspector: Connection, client: Connection, tenant: str
) -> None:
    """Also where the role writes times in another style than ISO's; the latest has the first id."""
    for end in ("20000-01-01", "infinity", "2020-12-11", "0044-03-15 BC", "-infinity"):
        for column in ("expires_at", "occurred_at"):
            async with acting(client, tenant):
                record_id = await remember(client, tenant, "ann")
            await inspector.execute(
                f"update memory.records set {column} = '{end}' where record_id = $1", record_id
            )
    engine = create_async_engine(
        normalize_url(shared.app_url), connect_args={"server_settings": {"datestyle": "sql, dmy"}}
    )
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    receipt = await memory.expire(tenant, older_than=timedelta(days=1), batch=1)
    await engine.dispose()
    assert receipt.counts.memories == 6
    assert len(await living(inspector, tenant)) == 4


async def test_a_sweep_by_sql_goes_on_where_it_stopped_and_is_confirmed(
    client: Connection, inspector: Connection, tenant: str
) -> None:
    async with acting(client, tenant):
        for _ in range(5):
            await remember(client, tenant, "ann")
        for month in (1, 2, 3):
            await remember(client, tenant, "ann", expires_at=datetime(2020, month, 11, tzinfo=UTC))
    for wrong in ("null", "'other'", "''"):
        with refused("ME014"):
            async with acting(client, tenant):
                await client.execute(
                    f"select memory.sweep($1, 'tenant', confirm => {wrong})", tenant
                )
    for wrong in (
        "reach => 'subject'",
        "reach => null",
        "due => null",
        "most => 0",
        "most => null",
        "why => 'she rang'",
        "erasure => null",
    ):
        with refused("ME014"):
            async with acting(client, tenant):
                await client.execute(f"select memory.sweep($1, {wrong})", tenant)
    assert len(await living(inspector, tenant)) == 8
    after, batches = None, 0
    while batches == 0 or after is not None:
        # Sessions need not write times in the same style.
        await client.execute(f"set DateStyle = 'SQL, {'DMY' if batches % 2 else 'MDY'}'")
        async with acting(client, tenant):
            after = await client.fetchval(
                "select next from memory.sweep($1, most => 1, after => $2)", tenant, after
            )
        batches += 1
    assert (batches, len(await living(inspector, tenant))) == (4, 5)
    after, batches = None, 0
    while batches == 0 or after is not None:
        async with acting(client, tenant):
            row = await client.fetchrow(
                "select * from memory.sweep($1, 'tenant', confirm => $1, most => 2, after => $2)",
                tenant,
                after,
            )
        after, batches = row["next"], batches + 1
    assert batches == 3
    assert await living(inspector, tenant) == set()


async def test_the_end_of_a_tenant_waits_for_nobody_who_writes(
    connect, client: Connection, inspector: Connection, tenant: str
) -> None:
    other = await connect("app")
    await other.execute("set lock_timeout = '2s'")
    for person in ("ann", "bob"):
        async with acting(client, tenant):
            await remember(client, tenant, person)
    async with acting(client, tenant):
        kept = await remember(client, tenant, "ann")
        async with acting(other, tenant):
            await other.execute("select memory.sweep($1, 'tenant', confirm => $1)", tenant)
    assert await living(inspector, tenant) == {kept}
    # Whoever is written about keeps the row that others wait for.
    known = "select subject_hash from memory.subjects where tenant_key = $1"
    assert await inspector.fetchval(known, tenant) == hash_of(tenant, "ann")
    assert await inspector.fetchval(known.replace("subject_hash", "count(*)", 1), tenant) == 1


async def test_a_held_erasure_in_the_callers_transaction_is_recorded_with_its_commit(
    memory: Memory, engine: AsyncEngine, inspector: Connection, tenant: str
) -> None:
    told = (await memory.remember(tenant, text="x", subject_keys="ann")).record
    await memory.hold(tenant, subject_key="ann")
    before = await image(inspector, tenant)
    for end in ("rollback", "commit"):
        async with engine.connect() as connection:
            joined = Memory(
                PostgresStore.joined(connection), redactor=None, subject_pepper="pepper"
            )
            with pytest.raises(LegalHoldError) as caught:
                await joined.forget(tenant, subject_key="ann", block_future=True)
            assert caught.value.receipt.deferred
            await (connection.commit() if end == "commit" else connection.rollback())
        if end == "rollback":
            assert await image(inspector, tenant) == before
    actions = [one.action for one in await memory.decisions(tenant)]
    assert actions == ["request", "block", "hold"]
    async with engine.connect() as connection:
        joined = Memory(PostgresStore.joined(connection), redactor=None, subject_pepper="pepper")
        (receipt,) = (await joined.release(tenant, subject_key="ann")).receipts
        assert (receipt.erasure_id, receipt.anchor) == (caught.value.receipt.erasure_id, None)
        assert await living(inspector, tenant) == {told.record_id}
        await connection.commit()
    assert await living(inspector, tenant) == set()
