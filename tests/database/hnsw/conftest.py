"""Two tenants in one HNSW index, and what is asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

import clusters
from memory import Recall
from memory.maintenance.indexes import build_index
from memory.stores.postgres import meaning
from nearest import DIMENSIONS, FEW, ROWS, exact
from rawsql import Connection
from restores import backup
from servers import Database, Postgres


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is asked for more than a hundred candidates, so that a small table will do."""
    monkeypatch.setattr(meaning, "FEW", FEW)


@pytest.fixture(scope="package")
def crowd(server: Postgres) -> Iterator[Database]:
    """Two tenants in one index, one of 98 % and one of 2 %, which is more than a few."""
    with server.migrated() as database:
        asyncio.run(_crowd(database))
        yield database


async def _crowd(database: Database) -> None:
    connection = await asyncpg.connect(database.superuser_url)
    await clusters.prepare(connection, DIMENSIONS, centres=40)
    await clusters.fill(connection, {"acme": 0.98, "other": 0.02}, ROWS, centres=40)
    await connection.close()
    await build_index(database.owner_url, dimensions=DIMENSIONS)


@pytest.fixture
def place(crowd: Database) -> Iterator[Database]:
    """A copy of the crowd and its index, which the test may change."""
    with backup(crowd) as copied:
        yield copied


@pytest.fixture
async def inspector(place: Database) -> AsyncIterator[Connection]:
    connection: Connection = await asyncpg.connect(place.superuser_url)
    yield connection
    await connection.close()


@pytest.fixture
async def asked(inspector: Connection) -> list[float]:
    return list(
        await inspector.fetchval(
            "select embedding from memory.records where tenant_key = 'acme' limit 1"
        )
    )


@pytest.fixture
async def expected(
    place: Database, asked: list[float], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Recall]:
    with monkeypatch.context() as patched:
        patched.setattr(meaning, "FEW", ROWS)
        found = {tenant: await exact(place, tenant, asked) for tenant in ("acme", "other")}
    assert all(answer.exact for answer in found.values())
    return found
