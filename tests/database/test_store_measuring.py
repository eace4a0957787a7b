"""What the server can do is measured once a minute, not with each search."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import create_async_engine

from memory import Memory
from memory.stores.postgres import PostgresStore, base
from memory.urls import normalize_url
from servers import Database


async def test_what_was_measured_serves_for_a_minute_and_is_measured_again_after_it(
    shared: Database, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = create_async_engine(normalize_url(shared.app_url))
    measured: list[str] = []

    @event.listens_for(engine.sync_engine, "connect")
    def connected(dbapi_connection: Any, *rest: Any) -> None:
        dbapi_connection.driver_connection.add_query_logger(
            lambda sent: measured.append(sent.query) if "pg_extension" in sent.query else None
        )

    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    await memory.remember(tenant, text="tea", subject_keys="ann", embedding=[1.0, 2.0])
    counts = []
    for now in (1_000.0, 1_000.5, 1_060.0, 1_060.5, 1_061.0, 1_120.5, 1_121.0):
        monkeypatch.setattr(base, "time", SimpleNamespace(monotonic=lambda now=now: now))
        found = await memory.recall(tenant, embedding=[1.0, 2.0])
        assert len(found.hits) == 1
        counts.append(len(measured))
    assert counts == [1, 1, 1, 2, 2, 2, 3]
    await memory.recall(tenant, text="tea")
    assert len(measured) == 3
    await engine.dispose()
