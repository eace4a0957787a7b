"""What is never sent or stored: words where none are wanted, and an identifier in a filter."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory import Memory
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from servers import Database
from stores import image, record_statements

HELD = """
    select r.text, r.term_count, count(p.term) as postings from memory.records as r
    left join memory.postings as p using (tenant_key, record_id)
    where r.tenant_key = $1 group by r.text, r.term_count
"""


@pytest.fixture
async def engine(shared: Database) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(normalize_url(shared.app_url))
    yield engine
    await engine.dispose()


async def test_no_term_is_stored_without_postings(
    engine: AsyncEngine, inspector: Connection, tenant: str, neighbour: str
) -> None:
    store = PostgresStore(engine)
    wordless = Memory(store, subject_pepper="pepper", postings=False)
    wordy = Memory(store, subject_pepper="pepper")
    await wordy.remember(neighbour, text="tea for two", subject_keys="ann")
    before = await image(inspector, neighbour)
    told = await wordless.remember(tenant, text="tea for one", subject_keys="ann")
    await wordless.derive(tenant, kind="summary", text="a drink", sources=told)
    await wordless.supersede(tenant, record_id=told.record, text="coffee for one")
    await wordy.remember(tenant, text="tea for two", subject_keys="ann")
    held = {
        row["text"]: (row["term_count"], row["postings"]) for row in await _held(inspector, tenant)
    }
    assert held == {
        "tea for one": (0, 0),
        "a drink": (0, 0),
        "coffee for one": (0, 0),
        "tea for two": (3, 3),
    }
    assert await image(inspector, neighbour) == before


async def _held(inspector: Connection, tenant: str) -> list[dict[str, object]]:
    return [dict(row) for row in await inspector.fetch(HELD, tenant)]


async def test_an_identifier_in_a_metadata_filter_never_reaches_a_statement(
    engine: AsyncEngine, tenant: str
) -> None:
    sent = record_statements(engine)
    memory = Memory(PostgresStore(engine), subject_pepper="pepper")
    told = await memory.remember(
        tenant, text="tea", subject_keys="ann", metadata={"mail": "ann@example.com", "n": 417}
    )
    for asked in ({"mail": "ann@example.com"}, {"n": 417}):
        found = await memory.recall(tenant, metadata=asked)
        assert [hit.record for hit in found.hits] == [told.record]
        assert await memory.records(tenant, metadata=asked) == [told.record]
    values = str([values for _, values in sent])
    assert "417" in values
    assert "ann@example.com" not in values
