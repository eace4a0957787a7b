"""Both stores, and what is in the tables for whoever looks past them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memory import InMemoryStore, Memory, PostgresStore, TenantMemory
from memory.ports import Store
from servers import Database


@pytest.fixture(params=["in_memory", "postgres"])
def store(request: pytest.FixtureRequest) -> Store:
    """Either store."""
    if request.param == "in_memory":
        return InMemoryStore()
    database: Database = request.getfixturevalue("database")
    return PostgresStore(database.app_url)


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with Memory(store, subject_pepper="pepper") as memory:
        yield memory


@pytest.fixture
async def stored(database: Database) -> AsyncIterator[Memory]:
    """A memory in PostgreSQL, for tests that read the tables."""
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        yield memory


@pytest.fixture
def shop(memory: Memory) -> TenantMemory:
    return memory.for_tenant("shop")
