"""A PostgreSQL server of one's own, for trying the library and for tests.

The binaries, PostgreSQL 16 and 18 with pgvector, come from the ``embedded`` extra. The server
listens on a unix socket only, in a directory that only its operating-system user can enter.
That directory is the guard: its roles have no passwords (``trust``), since a password would have
to lie in a file beside the data, behind the same guard.

As root, PostgreSQL refuses to run: a system user ``pgserver`` is made for it, and the directories
above the data and the binaries are made passable (mode ``o+x``) for that user.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg

from memory import migrate
from memory.cluster import DATABASE, PORT, SUPERUSER, Cluster
from memory.datadir import CLUSTER_NAME
from memory.errors import InstallError, InvalidInputError

__all__ = ["Server", "serve"]

_T = TypeVar("_T")

_OWNER, _APPLICATION, _OPERATOR = "memory_owner", "memory_app", "memory_operator"

_SETTINGS = {
    "listen_addresses": "",
    # A server log that quotes rows would keep what was erased.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_FIXED_SETTINGS = {"cluster_name": CLUSTER_NAME, "port": PORT}


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server with a migrated database; the URLs hold no password.

    >>> from memory import embedded
    >>> async with embedded.serve() as server:
    ...     server.url
    'postgresql://memory_app@/memory?host=...'
    """

    url: str
    """The application's role: no superuser, bound by row level security, not the owner."""
    operator_url: str
    """The application's rights, and those to release and readmit."""
    owner_url: str
    """The role that owns the database and the schema; no superuser either."""
    superuser_url: str
    data_directory: str


@asynccontextmanager
async def serve(
    path: str | os.PathLike[str] | None = None,
    *,
    postgres_version: int = 18,
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Server]:
    """Run a server on the data directory ``path``, made if it is absent; POSIX systems only.

    Without a path the data lie in a temporary directory that goes with the server, also when this
    process is killed. Several callers and processes may open one directory: they share the server,
    and the last to leave stops it. A process that dies by a signal, SIGTERM included, does not
    leave: its server on a ``path`` lives on until the next ``serve(path)`` joins it and leaves.
    ``settings`` are server settings as in ``postgresql.conf``, used when this call is the one that
    starts it.

    Raises ``InvalidInputError`` for a version other than 16 and 18 and for a directory that holds
    something else, ``InstallError`` if the extra is missing or the directory belongs to another
    version or user, ``StoreUnavailableError`` if the server does not start.

    >>> from memory import Memory, PostgresStore, embedded
    >>> async with embedded.serve() as server, Memory(PostgresStore(server.url)) as service:
    ...     await service.ready()
    Readiness(ready=True, problems=())
    """
    given = {} if settings is None else dict(settings)
    if not all(isinstance(word, str) for pair in given.items() for word in pair):
        raise InvalidInputError("settings", "must be strings, as in postgresql.conf")
    wanted = {**_SETTINGS, **given, **_FIXED_SETTINGS}
    cluster = await _to_the_end(lambda: Cluster(path, postgres_version, wanted))
    try:
        await _to_the_end(cluster.start)
        await _prepare(cluster)
        cluster.data.unlock()
        yield Server(
            url=cluster.url(_APPLICATION),
            operator_url=cluster.url(_OPERATOR),
            owner_url=cluster.url(_OWNER),
            superuser_url=cluster.url(SUPERUSER),
            data_directory=str(cluster.data.path),
        )
    finally:
        await _to_the_end(cluster.stop)


async def _to_the_end(work: Callable[[], _T]) -> _T:
    """Run blocking work in a thread; a cancellation waits until the work is done."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _prepare(cluster: Cluster) -> None:
    """Make what is missing of roles, database, extension and schema; bring it to head."""
    try:
        await _run_sql(cluster, "postgres", SUPERUSER, _make_database)
        await _run_sql(cluster, DATABASE, SUPERUSER, _make_extension)
        await migrate.upgrade(cluster.url(_OWNER))
        await _run_sql(cluster, DATABASE, _OWNER, _grant)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        failure = type(error).__name__
    else:
        return
    # Raised here, so that the driver's error and its parameters are no context.
    raise InstallError(f"the data directory could not be set up ({failure}); see its log")


async def _run_sql(
    cluster: Cluster,
    database: str,
    role: str,
    work: Callable[[asyncpg.Connection[Any]], Any],
) -> None:
    connection = await asyncpg.connect(
        host=str(cluster.socket_directory), port=int(PORT), user=role, database=database
    )
    try:
        await work(connection)
    finally:
        await connection.close()


async def _make_database(connection: asyncpg.Connection[Any]) -> None:
    for role in (_OWNER, _APPLICATION, _OPERATOR):
        if not await connection.fetchval("select to_regrole($1) is not null", role):
            await connection.execute(f"create role {role} login")
    if not await connection.fetchval("select 1 from pg_database where datname = $1", DATABASE):
        await connection.execute(f"create database {DATABASE} owner {_OWNER}")


async def _make_extension(connection: asyncpg.Connection[Any]) -> None:
    # pgvector is not a trusted extension, so the owner could not do it in the migration.
    await connection.execute("create extension if not exists vector")


async def _grant(connection: asyncpg.Connection[Any]) -> None:
    await connection.execute("select memory.grant_app($1)", _APPLICATION)
    await connection.execute("select memory.grant_operator($1)", _OPERATOR)
