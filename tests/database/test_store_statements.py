"""How many statements a call sends: round trips are the price, and must not grow with the rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import Memory
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from servers import Database
from stores import record_statements


class Counted:
    """A warm memory (what is asked once per process has been asked) and what it sends."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
        self._sent = record_statements(engine)

    async def statements(self, call: Awaitable[Any]) -> int:
        """How many one call sends."""
        # The driver tells of a statement in the loop's next turn.
        await asyncio.sleep(0)
        before = len(self._sent)
        await call
        await asyncio.sleep(0)
        return len(self._sent) - before


@pytest.fixture
async def counted(shared: Database) -> AsyncIterator[Counted]:
    engine = create_async_engine(normalize_url(shared.app_url))
    counted = Counted(engine)
    await counted.memory.remember("warm", text="tea", subject_keys="ann")
    await counted.memory.capabilities()
    yield counted
    await engine.dispose()


async def test_a_small_write_and_every_read_are_one_statement(
    counted: Counted, tenant: str
) -> None:
    memory = counted.memory
    told = (
        await memory.remember(tenant, text="tea", subject_keys="ann", embedding=[1.0, 2.0])
    ).record
    calls = {
        "remember": memory.remember(
            tenant, text="tea and milk", subject_keys=["ann", "bob"], embedding=[1.0, 2.0]
        ),
        "remember_many": memory.remember_many(
            tenant, items=[{"text": "tea", "subject_keys": "ann"}] * 100
        ),
        "derive": memory.derive(tenant, kind="summary", text="tea", sources=told),
        "recall by person": memory.recall(tenant, subject_keys="ann"),
        "recall by words": memory.recall(tenant, text="tea", subject_keys="ann"),
        "recall by vector": memory.recall(tenant, embedding=[1.0, 2.0], subject_keys="ann"),
        "get": memory.get(tenant, record_id=told),
        "history": memory.history(tenant, record_key=told.record_key),
        "records": memory.records(tenant, subject_keys="ann"),
        "erasure_history": memory.erasure_history(tenant),
    }
    counts = {name: (await counted.statements(call)) for name, call in calls.items()}
    assert counts == dict.fromkeys(calls, 1)


async def test_forget_sends_the_same_statements_for_ten_records_and_for_two_thousand(
    counted: Counted, tenant: str
) -> None:
    memory = counted.memory
    counts = []
    for records in (0, 10, 2_000):
        items = [{"text": f"tea {n}", "subject_keys": "ann"} for n in range(records)]
        told = await memory.remember_many(tenant, items=items)
        for batch in range(0, records, 100):
            await memory.derive(
                tenant,
                kind="summary",
                text="tea",
                sources=[one.record for one in told[batch : batch + 100]],
            )
        counts.append(await counted.statements(memory.forget(tenant, subject_key="ann")))
    assert counts == [1, 1, 1]


async def test_a_batch_sends_one_statement_per_chunk_and_none_per_record(
    counted: Counted, tenant: str
) -> None:
    memory = counted.memory
    items = [{"text": f"tea {n}", "subject_keys": f"p{n}"} for n in range(2_000)]
    plain = await counted.statements(memory.remember_many(tenant, items=items))
    assert plain <= 4
    keyed = [{**item, "record_key": f"k{n}"} for n, item in enumerate(items)]
    first = await counted.statements(memory.remember_many(tenant, items=keyed))
    again = await counted.statements(memory.remember_many(tenant, items=keyed))
    # The tenant, the newest versions; and then the versions that are superseded.
    assert (first, again) == (plain + 2, plain + 3)


async def test_a_chunk_is_a_thousand_records(counted: Counted, tenant: str) -> None:
    items = [{"text": f"tea {n}", "subject_keys": "ann"} for n in range(2_001)]
    counts = {}
    for records in (1_000, 1_001, 2_000, 2_001):
        many = counted.memory.remember_many(tenant, items=items[:records])
        counts[records] = await counted.statements(many)
    assert counts == {1_000: 1, 1_001: 2, 2_000: 2, 2_001: 3}
