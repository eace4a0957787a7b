"""Recall while what it looks at is erased, dropped or vacuumed between two of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from memory import Memory, StoreUnavailableError
from memory.maintenance.indexes import build_index
from memory.repositories import across, reads
from memory.repositories import meaning as repositories
from memory.repositories.measuring import measure
from memory.stores.postgres import PostgresStore, meaning
from memory.types import Record
from memory.urls import normalize_url
from rawsql import Connection
from servers import Database, Postgres


def opened(source: Any) -> Memory:
    store = source if isinstance(source, PostgresStore) else PostgresStore(source)
    return Memory(store, redactor=None, subject_pepper="pepper")


async def furnish(memory: Memory, count: int) -> list[UUID]:
    """Return the ids, best first for the question [1, 0] and for "tea"."""
    told = [
        await memory.remember(
            "acme", text=f"tea {'milk ' * n}", subject_keys="ann", embedding=[1.0, n / 10]
        )
        for n in range(count)
    ]
    return [one.record.record_id for one in told]


@pytest.fixture(params=["pgvector", "without"])
def place(request: pytest.FixtureRequest) -> Iterator[Database]:
    server: Postgres = request.getfixturevalue(
        "server" if request.param == "pgvector" else "postgres15"
    )
    with server.migrated() as database:
        yield database


@pytest.mark.parametrize("strategy", ["vector", "hybrid"])
async def test_what_is_erased_after_it_was_scored_gives_way_to_the_next(
    place: Database, monkeypatch: pytest.MonkeyPatch, strategy: Any
) -> None:
    memory = opened(place.app_url)
    ids = await furnish(memory, 9)
    erased = []
    by_ids = reads.by_ids

    async def later(
        connection: AsyncConnection, tenant_key: str, record_ids: list[UUID]
    ) -> dict[UUID, Record]:
        if len(erased) < 3:
            erased.append(record_ids[1])
            await memory.forget_record(tenant_key, record_id=record_ids[1])
        return await by_ids(connection, tenant_key, record_ids)

    monkeypatch.setattr(reads, "by_ids", later)
    for _ in range(5):
        found = await memory.recall(
            "acme", text="tea", embedding=[1.0, 0.0], strategy=strategy, limit=4
        )
        assert [hit.record.record_id for hit in found.hits] == [
            item for item in ids if item not in erased
        ][:4]
    # With pgvector the nearest come with their records, in one statement.
    assert len(erased) == (0 if strategy == "vector" and place.server.version > 15 else 3)
    await memory.close()


@pytest.fixture
def erring(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every search through an index fails as one does that meets what vacuum removes."""
    monkeypatch.setattr(meaning, "FEW", 3)
    monkeypatch.setattr(across, "_USABLE", "public.fail($8::text)")
    across._across.cache_clear()
    yield
    across._across.cache_clear()


async def fail_with(database: Database, code: str) -> None:
    connection = await asyncpg.connect(database.superuser_url)
    await connection.execute(
        "create function public.fail(text) returns boolean language plpgsql as"
        f" $$ begin raise exception 'cannot load deleted element' using errcode = '{code}'; end $$"
    )
    await connection.close()


@pytest.mark.usefixtures("erring")
async def test_an_index_scan_that_fails_costs_the_index_and_not_the_answer(
    database: Database,
) -> None:
    memory = opened(database.app_url)
    ids = await furnish(memory, 9)
    await build_index(database.owner_url, dimensions=2)
    await fail_with(database, "XX000")
    engine = create_async_engine(normalize_url(database.app_url))
    async with engine.connect() as connection:
        await connection.execute(text("set local app.current_tenant = 'mine'"))
        for one in (memory, opened(engine), opened(PostgresStore.joined(connection))):
            found = await one.recall("acme", embedding=[1.0, 0.0], limit=4)
            assert [hit.record.record_id for hit in found.hits] == ids[:4]
            assert found.exact
            assert "did not suffice" in found.note
        assert await connection.scalar(text("select current_setting('app.current_tenant')"))
    await engine.dispose()
    await memory.close()


@pytest.mark.usefixtures("erring")
async def test_a_statement_that_was_cancelled_is_not_tried_in_another_way(
    database: Database,
) -> None:
    memory = opened(database.app_url)
    await furnish(memory, 9)
    await build_index(database.owner_url, dimensions=2)
    await fail_with(database, "57014")
    with pytest.raises(StoreUnavailableError, match="57014") as caught:
        await memory.recall("acme", embedding=[1.0, 0.0], limit=4)
    assert caught.value.sqlstate == "57014"
    await memory.close()


async def test_an_index_that_goes_while_it_is_looked_at_is_no_error(
    database: Database, superuser: Connection
) -> None:
    for dimensions in (2, 3):
        await build_index(database.owner_url, dimensions=dimensions)
    engine = create_async_engine(normalize_url(database.app_url), isolation_level="REPEATABLE READ")
    async with engine.connect() as connection:
        assert set((await measure(connection)).indexes) == {2, 3}
        await superuser.execute("drop index memory.records_hnsw_3")
        # The snapshot still has it.
        assert set((await measure(connection)).indexes) == {2, 3}
        await connection.rollback()
        assert set((await measure(connection)).indexes) == {2}
    await engine.dispose()


@pytest.mark.parametrize("by", [{}, {"subject_keys": "ann"}], ids=["tenant", "person"])
async def test_a_pool_that_is_fetched_in_portions_is_whole_and_bounded(
    postgres15: Postgres, monkeypatch: pytest.MonkeyPatch, by: dict[str, Any]
) -> None:
    monkeypatch.setattr(meaning, "_VALUES", 6)
    fetched = []
    pool = repositories.pool

    async def counted(*arguments: Any, **named: Any) -> list[Any]:
        fetched.append(await pool(*arguments, **named))
        return fetched[-1]

    monkeypatch.setattr(repositories, "pool", counted)
    with postgres15.migrated() as database:
        memory = opened(database.app_url)
        ids = await furnish(memory, 9)
        await memory.remember("acme", text="tea", subject_keys="ann", embedding=[1.0])
        for bound, first, exact in ((8, 2, False), (9, 1, False), (10, 0, True), (11, 0, True)):
            monkeypatch.setattr(repositories, "POOL", bound)
            fetched.clear()
            found = await memory.recall("acme", embedding=[1.0, 0.0], limit=20, **by)
            assert [hit.record.record_id for hit in found.hits] == ids[first:]
            assert found.exact == exact
            assert "1 skipped because embedded by another model" in found.note
            assert (f"newest {bound} candidates" in found.note) == (not exact)
            assert max(map(len, fetched)) == 3
            assert sum(map(len, fetched)) == min(10, bound + 1)
        await memory.close()
