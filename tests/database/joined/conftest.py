"""A host's engine and a table of its own, and memories that join its transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import asyncpg
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from joining import Index, Joined
from memory import Memory
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from servers import Database, Postgres


@pytest.fixture(scope="session")
def place(server: Postgres) -> Iterator[Database]:
    """A database with a table of the host's beside ours."""
    with server.migrated() as database:
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute("create table public.orders (tenant text, note text)")
            owner.execute(f"grant all on public.orders to {database.role('app')}")
        yield database


@pytest.fixture
async def engine(place: Database) -> AsyncIterator[AsyncEngine]:
    """The host's engine."""
    engine = create_async_engine(normalize_url(place.app_url))
    yield engine
    await engine.dispose()


@pytest.fixture
async def superuser(place: Database) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(place.superuser_url)
    yield connection
    await connection.close()


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
def own(engine: AsyncEngine, index: Index) -> Memory:
    """A memory with transactions of its own."""
    return Memory(PostgresStore(engine), indexes=[index], subject_pepper="pepper")


@pytest.fixture
def joined(index: Index) -> Joined:
    def make(connection: AsyncConnection) -> Memory:
        store = PostgresStore.joined(connection)
        return Memory(store, indexes=[index], subject_pepper="pepper")

    return make
