"""Exports that end early: the client leaves, or the database fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

import memory
from memory import Memory, PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from servers import Database
from stores import mentions
from webhost import Host, exchanged, hosted, no_session_is_left

NEEDLE = "Zelda-4711"


@pytest.fixture
async def pool(database: Database) -> AsyncIterator[Host]:
    """The service on an engine of the host's, with one connection."""
    engine = create_async_engine(
        normalize_url(database.app_url), pool_size=1, max_overflow=0, pool_timeout=5
    )
    async with hosted(Memory(PostgresStore(engine), subject_pepper="pepper")) as host:
        yield host
        assert engine.pool.checkedout() == 0
    await engine.dispose()


@pytest.mark.parametrize("spec", ["2.3", "2.4"])
async def test_a_client_that_leaves_in_mid_export_leaves_no_connection_behind(
    pool: Host, superuser: Connection, database: Database, spec: str
) -> None:
    items = [{"text": f"Ann, {number}", "subject_keys": "ann"} for number in range(250)]
    await pool.memory.remember_many("one", items=items)
    sent = await exchanged(pool.app, "/export", subject_key="ann", leave_after=5, spec=spec)
    assert sent[0]["status"] == 200
    assert len(sent) < 200
    await no_session_is_left(superuser, database, but="idle")
    # The one connection of the pool serves the next, and another tenant.
    lines = (await pool.post("one", "/export", subject_key="ann")).text.splitlines()
    assert len(lines) == 250
    assert (await pool.post("two", "/recall")).json()["hits"] == []


async def test_an_export_that_fails_in_the_middle_breaks_off_unfinished(
    host: Host, monkeypatch: pytest.MonkeyPatch, everything: pytest.LogCaptureFixture
) -> None:
    items = [{"text": f"{NEEDLE}, {number}", "subject_keys": "ann"} for number in range(150)]
    await host.memory.remember_many("one", items=items)
    store = host.memory._store
    exported, pages = store.exported, []

    async def once(*arguments: Any, **options: Any) -> Any:
        pages.append(arguments)
        if len(pages) > 1:
            raise memory.StoreUnavailableError("the database cannot be reached")
        return await exported(*arguments, **options)

    monkeypatch.setattr(store, "exported", once)
    sent = await exchanged(host.app, "/export", subject_key="ann")
    assert sent[0]["status"] == 200
    assert len(sent) == 101
    assert all(message["more_body"] for message in sent[1:])
    assert NEEDLE not in everything.text


async def test_an_erasure_whose_client_has_left_is_done_and_found_among_the_erasures(
    host: Host, superuser: Connection
) -> None:
    await host.told("one", NEEDLE, "ann")
    await exchanged(host.app, "/forget", subject_key="ann", leave_after=0)
    assert await mentions(superuser, NEEDLE) == {}
    (stone,) = (await host.post("one", "/erasures", subject_key="ann")).json()
    assert stone["memories"] == 1
