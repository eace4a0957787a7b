"""Many debts, few calls; and an index that hangs or fails costs nobody else anything."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from effort import tries
from memory import Memory, PartialErasureError, StoreUnavailableError
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from servers import Database
from stores import leaks, record_statements

INTERLEAVINGS = tries(200)


class Index:
    """Counts what it is asked for; fails or hangs when told to."""

    def __init__(self, name: str = "index", *, fault: str | None = None) -> None:
        self.name, self.fault = name, fault
        self.asked: Counter[str] = Counter()
        self.calls: list[int] = []
        self.called = asyncio.Event()

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        self.calls.append(len(artefact_ids))
        self.called.set()
        if self.fault == "fails":
            raise OSError
        if self.fault == "hangs":
            await asyncio.sleep(60)
        self.asked.update(artefact_ids)
        return len(artefact_ids)


async def owe(memory: Memory, inspector: Connection, tenant: str, adapter: str, many: int) -> None:
    """Register many artefacts of Ann's."""
    told = await memory.remember(tenant, text="Ann called", subject_keys="ann")
    await inspector.execute(
        "insert into memory.artefacts (tenant_key, adapter, artefact_id, record_id)"
        " select $1, $2, $1 || n, $3 from generate_series(1, $4::integer) as n",
        tenant,
        adapter,
        told.record.record_id,
        many,
    )


@pytest.fixture
async def idle(shared: Database) -> AsyncIterator[Memory]:
    """A memory without an index."""
    async with Memory(PostgresStore(shared.app_url), subject_pepper="pepper") as memory:
        yield memory


async def test_ten_thousand_artefacts_go_in_ten_calls_and_few_statements(
    shared: Database, idle: Memory, inspector: Connection, tenant: str
) -> None:
    index = Index()
    engine = create_async_engine(normalize_url(shared.app_url))
    sent = record_statements(engine)
    memory = Memory(PostgresStore(engine), indexes=[index], subject_pepper="pepper")
    await memory.remember("warm", text="tea", subject_keys="ann")
    counts = {}
    for many in (0, 10, 1_000, 10_000):
        await owe(idle, inspector, tenant, "index", many)
        del sent[:], index.calls[:]
        receipt = await memory.forget(tenant, subject_key="ann")
        assert (receipt.complete, receipt.counts.artefacts) == (True, many)
        counts[many] = (len(index.calls), len(sent))
    # The erasure is one statement. Then who owes, before and after; per thousand a lease, a call
    # and a settlement; and a last lease, which finds nothing.
    assert counts == {0: (0, 1), 10: (1, 6), 1_000: (1, 6), 10_000: (10, 24)}
    assert set(index.asked.values()) <= {1, 2, 3}
    rows = await inspector.fetchrow(
        "select (select sum(artefacts) from memory.purge_receipts where tenant_key = $1),"
        " (select count(*) from memory.purges where tenant_key = $1)",
        tenant,
    )
    assert tuple(rows) == (11_010, 0)
    await engine.dispose()


async def test_an_index_that_fails_is_asked_once_and_keeps_no_other_waiting(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    broken, sound = Index("a", fault="fails"), Index("b")
    store = PostgresStore(shared.app_url)
    async with Memory(store, indexes=[broken, sound], subject_pepper="pepper") as memory:
        await owe(memory, inspector, tenant, "a", 3_000)
        await owe(memory, inspector, tenant, "b", 1)
        with pytest.raises(PartialErasureError) as partial:
            await memory.forget(tenant, subject_key="ann")
        assert partial.value.receipt.outstanding == ("a",)
        assert (broken.calls, sound.calls) == ([1_000], [1])
        # The next try begins with what has not been asked for.
        await memory.purge_outstanding(tenant)
    rows = await inspector.fetch(
        "select attempts, last_error, count(*) from memory.purges where tenant_key = $1"
        " group by 1, 2 order by 1",
        tenant,
    )
    assert [tuple(row) for row in rows] == [(0, None, 1_000), (1, "OSError", 2_000)]


async def test_what_an_index_raised_is_not_in_the_error_of_a_store_that_fails_then(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    limit = f'alter database "{shared.name}" connection limit {{}}'

    class Cutting(Index):
        async def purge(self, artefact_ids: Sequence[str]) -> int:
            if self.fault == "cuts":
                await inspector.execute(limit.format(0))
                await inspector.execute(
                    "select pg_terminate_backend(a.pid, 5000) from pg_stat_activity as a"
                    " where a.datname = current_database() and a.usename = $1",
                    shared.role("app"),
                )
                raise OSError(*artefact_ids)
            return await super().purge(artefact_ids)

    cutting = Cutting("private", fault="fails")
    store = PostgresStore(shared.app_url)
    async with Memory(store, indexes=[cutting], subject_pepper="pepper") as memory:
        await owe(memory, inspector, tenant, "private", 1)
        with pytest.raises(PartialErasureError):
            await memory.forget(tenant, subject_key="ann")
        cutting.fault = "cuts"
        try:
            with pytest.raises(StoreUnavailableError) as refused:
                await memory.purge_outstanding(tenant)
        finally:
            await inspector.execute(limit.format(-1))
        assert not leaks(refused.value, [f"{tenant}1", "OSError"])
        cutting.fault = None
        assert (await memory.purge_outstanding(tenant)).settled == 1


async def test_a_hanging_index_holds_no_connection(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    hanging = Index("hanging", fault="hangs")
    engine = create_async_engine(
        normalize_url(shared.app_url), pool_size=1, max_overflow=0, pool_timeout=5
    )
    store = PostgresStore(engine)
    memory = Memory(
        store, indexes=[hanging], subject_pepper="pepper", purge_timeout=timedelta(minutes=1)
    )
    await owe(memory, inspector, tenant, "hanging", 1)
    erasing = asyncio.create_task(memory.forget(tenant, subject_key="ann"))
    await asyncio.wait_for(hanging.called.wait(), 20)
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    told = await memory.remember(tenant, text="tea", subject_keys="bob")
    assert (await memory.forget(tenant, subject_key="bob")).counts.memories == 1
    assert await memory.get(tenant, record_id=told.record) is None
    assert not erasing.done()
    erasing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await erasing
    hanging.fault = None
    assert (await memory.purge_outstanding(tenant)).settled == 1
    await engine.dispose()


async def test_a_pool_that_keeps_no_connection_keeps_its_leases(
    shared: Database, idle: Memory, inspector: Connection, tenant: str
) -> None:
    """Its backends go at once; the lease must not."""
    hanging = Index("index", fault="hangs")
    engine = create_async_engine(normalize_url(shared.app_url), poolclass=NullPool)
    memory = Memory(PostgresStore(engine), indexes=[hanging], subject_pepper="pepper")
    await owe(memory, inspector, tenant, "index", 1)
    erasing = asyncio.create_task(memory.forget(tenant, subject_key="ann"))
    await asyncio.wait_for(hanging.called.wait(), 20)
    other = Index("index")
    async with Memory(
        PostgresStore(shared.app_url), indexes=[other], subject_pepper="pepper"
    ) as second:
        assert (await second.purge_outstanding(tenant)).settled == 0
        erasing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await erasing
        assert (await second.purge_outstanding(tenant)).settled == 1
    await engine.dispose()


async def test_two_drainers_in_any_interleaving_purge_and_count_each_debt_once(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    chance = random.Random(6)  # noqa: S311 - reproducible, not secret

    class Dawdling(Index):
        async def purge(self, artefact_ids: Sequence[str]) -> int:
            await asyncio.sleep(chance.choice([0, 0, 0.001, 0.003]))
            answered = await super().purge(artefact_ids)
            await asyncio.sleep(chance.choice([0, 0, 0.001, 0.003]))
            return answered

    index = Dawdling()
    memories = [
        Memory(PostgresStore(shared.app_url), indexes=[index], subject_pepper="pepper")
        for _ in range(2)
    ]
    shares: Counter[int] = Counter()
    for turn in range(INTERLEAVINGS):
        place = f"{tenant}-{turn}"
        # Debts of different ages, so that they come in several leases.
        await inspector.execute(
            "insert into memory.purges (tenant_key, adapter, artefact_id, erasure_id, attempts)"
            " select $1, 'index', $1 || n, gen_random_uuid(), n from generate_series(1, 4) as n",
            place,
        )

        async def drain(memory: Memory, place: str = place) -> int:
            await asyncio.sleep(chance.uniform(0, 0.004))
            return (await memory.purge_outstanding(place)).settled

        settled = await asyncio.gather(*map(drain, memories))
        # One that finds the other's lease leaves it; both are done before the turn ends.
        assert sum(settled) == 4
        shares[settled[0]] += 1
    assert set(index.asked.values()) == {1}
    assert len(index.asked) == 4 * INTERLEAVINGS
    assert len(shares) >= 3, shares
    receipts = await inspector.fetchval(
        "select sum(artefacts) from memory.purge_receipts where starts_with(tenant_key, $1)",
        f"{tenant}-",
    )
    assert receipts == 4 * INTERLEAVINGS
    for memory in memories:
        await memory.close()


async def test_an_erasure_that_lost_its_lease_is_complete_by_its_own_answer(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    """A pool closed its connection, say, and a worker took the debt over."""

    class Overtaken(Index):
        async def purge(self, artefact_ids: Sequence[str]) -> int:
            await inspector.execute(
                "update memory.purges set lease = gen_random_uuid() where tenant_key = $1", tenant
            )
            return await super().purge(artefact_ids)

    index = Overtaken()
    store = PostgresStore(shared.app_url)
    async with Memory(store, indexes=[index], subject_pepper="pepper") as memory:
        await owe(memory, inspector, tenant, "index", 3)
        receipt = await memory.forget(tenant, subject_key="ann")
        assert (receipt.complete, sum(index.asked.values())) == (True, 3)
    paid = "select sum(artefacts) from memory.purge_receipts where tenant_key = $1"
    assert await inspector.fetchval(paid, tenant) == 3


class Locked(Index):
    """Has the debt's row locked by somebody else once it is called."""

    def __init__(self, inspector: Connection, tenant: str) -> None:
        super().__init__()
        self._inspector, self._tenant = inspector, tenant
        self.transaction = inspector.transaction()

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        if not self.calls:
            await self.transaction.start()
            await self._inspector.execute(
                "select from memory.purges where tenant_key = $1 for update", self._tenant
            )
        return await super().purge(artefact_ids)


async def test_a_settlement_that_an_operator_ends_gives_its_lease_back(
    shared: Database, idle: Memory, inspector: Connection, connect: Any, tenant: str
) -> None:
    """Else the debt would be taken, by nobody, until the lease runs out."""
    admin = await connect("superuser")
    await owe(idle, inspector, tenant, "index", 1)
    with pytest.raises(PartialErasureError):
        await idle.forget(tenant, subject_key="ann")
    index = Locked(inspector, tenant)
    async with Memory(
        PostgresStore(shared.app_url), indexes=[index], subject_pepper="pepper"
    ) as memory:
        call = asyncio.ensure_future(memory.purge_outstanding(tenant))
        while True:
            if await admin.fetchval(
                "select count(pg_cancel_backend(pid)) from pg_stat_activity"
                " where datname = current_database() and wait_event_type = 'Lock'"
            ):
                break
            await asyncio.sleep(0.01)
        await index.transaction.rollback()
        with pytest.raises(StoreUnavailableError):
            await call
        purged = await memory.purge_outstanding(tenant)
    assert (purged.settled, purged.outstanding) == (1, ())
    assert len(index.calls) == 2
