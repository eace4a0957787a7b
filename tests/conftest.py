"""Servers and databases for the tests.

The server is MEMORY_DATABASE_URL or DATABASE_URL if one is set, which then must name a superuser
(the tests make roles of every kind, one that bypasses row level security included, and databases,
and remove them again); else an embedded one, MEMORY_TEST_POSTGRES (18 or 16) being its version.
Every test that asks for ``database`` gets a clone of one that the real migrations built.

Programs that the machine lacks (PgBouncer, PostgreSQL 15) skip their tests, unless
MEMORY_TEST_REQUIRE is set, as continuous integration does.
"""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import make_url

from processes import pooler
from servers import ROLES, USED, Database, Postgres, debian_postgres_15, embedded_postgres


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that started this one, if one did, which servers were met."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["servers"] = sorted(USED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    USED.update(getattr(node, "workeroutput", {}).get("servers", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the run covered: the servers here, and the Pythons that .ci/run tried."""
    servers = ", ".join(sorted(USED)) or "none"
    others = os.environ.get("MEMORY_CI_PYTHONS", "no other was tried")
    terminalreporter.write_line(f"servers: {servers}")
    terminalreporter.write_line(f"Python: {platform.python_version()}; {others}")


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """The server under test."""
    given = os.environ.get("MEMORY_DATABASE_URL") or os.environ.get("DATABASE_URL")
    if given:
        with contextlib.closing(Postgres(given)) as postgres:
            yield postgres
        return
    with embedded_postgres(int(os.environ.get("MEMORY_TEST_POSTGRES", "18"))) as postgres:
        yield postgres


@pytest.fixture(scope="session")
def postgres16() -> Iterator[Postgres]:
    """PostgreSQL 16 with pgvector."""
    with embedded_postgres(16) as postgres:
        yield postgres


@pytest.fixture(scope="session")
def postgres15() -> Iterator[Postgres]:
    """PostgreSQL 15 without pgvector."""
    with (
        tempfile.TemporaryDirectory(prefix="pg15-") as folder,
        debian_postgres_15(Path(folder)) as postgres,
    ):
        yield postgres


@pytest.fixture(scope="session")
def pgbouncer(server: Postgres) -> Iterator[Callable[[str], str]]:
    """PgBouncer in transaction mode; maps a database URL to the one through the pooler."""
    urls = [make_url(server.url(kind, "postgres")) for kind in ("superuser", *ROLES)]
    host, port = server.address
    USED.add("PgBouncer")
    with (
        tempfile.TemporaryDirectory(prefix="pgbouncer-") as folder,
        pooler(
            host=host,
            port=port,
            logins={url.username or "": url.password or "" for url in urls},
            # Only its owner may enter the directory of a socket.
            user=Path(host).owner() if host.startswith("/") else "nobody",
            folder=Path(folder),
        ) as listen_port,
    ):

        def through(url: str) -> str:
            pooled = make_url(url).set(host="127.0.0.1", port=listen_port, query={})
            return pooled.render_as_string(hide_password=False)

        yield through


@pytest.fixture
def database(server: Postgres) -> Iterator[Database]:
    """A migrated database of the test's own."""
    with server.migrated() as database:
        yield database


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def app(database: Database) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection as the application's role; no tenant is set."""
    async with connected(database.app_url) as connection:
        yield connection


@pytest.fixture
async def owner(database: Database) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection as the role that owns the tables."""
    async with connected(database.owner_url) as connection:
        yield connection


@pytest.fixture
async def superuser(database: Database) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection as a superuser."""
    async with connected(database.superuser_url) as connection:
        yield connection
