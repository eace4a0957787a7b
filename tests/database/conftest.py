"""One migrated database for all tests by raw SQL, and a tenant of its own for each.

Tests that change the schema, or count what a statement reads, take ``database`` instead.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import asyncpg
import pytest

from rawsql import Connection
from servers import Database, Postgres

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shared(server: Postgres) -> Iterator[Database]:
    """A migrated database that tests share, each in tenants of its own."""
    with server.migrated() as database:
        yield database


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test uses."""
    return f"tenant-{next(_numbers)}"


@pytest.fixture
def neighbour() -> str:
    """A second tenant, for what must stay untouched."""
    return f"neighbour-{next(_numbers)}"


Connect = Callable[[str], Awaitable[Connection]]


@pytest.fixture
async def connect(shared: Database) -> AsyncIterator[Connect]:
    """Opens connections to the shared database by role: app, owner, superuser, bypass, host."""
    opened: list[Connection] = []

    async def opening(role: str) -> Connection:
        connection = await asyncpg.connect(shared.url(role))
        opened.append(connection)
        return connection

    yield opening
    for connection in opened:
        await connection.close()


@pytest.fixture
async def inspector(connect: Connect) -> Connection:
    """A superuser in the shared database: sees every tenant, for looking at what is left."""
    return await connect("superuser")


@pytest.fixture
async def client(connect: Connect) -> Connection:
    """The application's role in the shared database."""
    return await connect("app")
