"""Run LangGraph's own tests of its stores, unchanged, against ours.

    pip download --no-binary :all: --no-deps langgraph-checkpoint langgraph-checkpoint-postgres
    PYTHONPATH=.:tests/support python tests/peers/langgraph_suite.py FOLDER [PYTEST ARGUMENT ...]

FOLDER is where one of the two source distributions was unpacked; pytest-mock must be installed. The
tests are copied to a folder of their own and run there with this file as a plugin, which puts
our store where they import theirs: ``InMemoryStore`` over our in-memory one, ``AsyncPostgresStore``
over PostgreSQL, as the application's role, a tenant for each database that they make. What they
import besides stays LangGraph's own, the queue of ``AsyncBatchedBaseStore`` included.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import langgraph.store.memory
import langgraph.store.postgres
import psycopg
import pytest
from langgraph.store.base import Op, Result
from langgraph.store.base.embed import ensure_embeddings
from psycopg.rows import dict_row

from memory import Memory, PostgresStore
from memory.integrations.langgraph import ErasableStore, LangChainEmbedder
from servers import ROOT, Database, embedded_postgres

_started = ExitStack()
_database: Database | None = None


def _options(index: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a store's index asks of the memory and of the store."""
    if index is None:
        return {}, {}
    embedder = LangChainEmbedder(ensure_embeddings(index["embed"]))
    return {"embedder": embedder}, {"fields": index.get("fields") or ["$"]}


class InMemory(ErasableStore):
    """Where they import ``InMemoryStore``; synchronous in the event loop's thread too."""

    def __init__(self, *, index: Any = None) -> None:
        plugs, options = _options(index)
        self.index_config = index
        super().__init__(Memory(**plugs).for_tenant("peer"), subjects=0, **options)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(asyncio.run, self.abatch(ops)).result()


class InPostgres(ErasableStore):
    """Where they import ``AsyncPostgresStore``."""

    MIGRATIONS = ()

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, conn_string: str, *, index: Any = None, ttl: Any = None, **_: Any
    ) -> AsyncIterator[InPostgres]:
        assert _database is not None
        plugs, options = _options(index)
        async with Memory(PostgresStore(_database.app_url), **plugs) as memory:
            tenant = psycopg.conninfo.conninfo_to_dict(conn_string)["dbname"]
            store = cls(memory.for_tenant(str(tenant)), subjects=0, ttl=ttl, **options)
            store.index_config, store.conn_string = index, conn_string
            await store.asearch(())
            yield store

    async def setup(self) -> None:
        """The migrations of the database have run."""

    async def start_ttl_sweeper(self) -> None:
        """What has expired is hidden without it."""

    async def stop_ttl_sweeper(self) -> None:
        """None was started."""

    @asynccontextmanager
    async def _cursor(self) -> AsyncIterator[Any]:
        async with (
            await psycopg.AsyncConnection.connect(self.conn_string, autocommit=True) as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            yield cursor


def pytest_configure(config: pytest.Config) -> None:
    global _database  # noqa: PLW0603 - a plugin has no other place
    server = _started.enter_context(embedded_postgres(18))
    _database = _started.enter_context(server.migrated())
    langgraph.store.memory.InMemoryStore = InMemory  # type: ignore[misc]
    langgraph.store.postgres.AsyncPostgresStore = InPostgres  # type: ignore[misc]


def pytest_unconfigure(config: pytest.Config) -> None:
    _started.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_pycollect_makemodule(module_path: Path) -> Iterator[None]:
    theirs = sys.modules.get("tests.conftest")
    if theirs is not None and _database is not None:
        url = _database.server.url("superuser", "postgres")
        base, _, query = url.partition("?")
        # They take the URL apart at its slashes.
        theirs.DEFAULT_URI = f"{base}?{'&'.join(_quoted(part) for part in query.split('&'))}"  # type: ignore[attr-defined]
    yield


def _quoted(parameter: str) -> str:
    name, _, value = parameter.partition("=")
    return f"{name}={quote(value, safe='%')}"


def main(folder: str, *arguments: str) -> int:
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(Path(folder) / "tests", Path(place) / "tests")
        paths = [ROOT, ROOT / "tests" / "support", ROOT / "tests" / "peers"]
        options = ["asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function"]
        options.append("pytest_alembic_tests_path=none")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "langgraph_suite"]
        command += [word for option in options for word in ("-o", option)]
        files = ("tests/test_store.py", "tests/test_async_store.py")
        given = arguments or [file for file in files if (Path(place) / file).exists()]
        return subprocess.run(
            [*command, *given],
            cwd=place,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
