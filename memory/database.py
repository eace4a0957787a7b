"""Transactions and the error border. No statement of the domain is here.

Every call runs as *work*: a coroutine that takes a connection. Where it runs is the access's
affair: in a transaction of its own (:class:`OwnAccess`) or inside the caller's
(:class:`JoinedAccess`). Errors of the driver are translated here and nowhere else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import asyncpg
from sqlalchemy import Connection, Row
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.pool import NullPool

from memory import telemetry
from memory.engines import require_asyncpg
from memory.errors import InvalidInputError, RetryableError
from memory.failures import translate

__all__ = ["Access", "AnyRow", "JoinedAccess", "OwnAccess", "fetch"]

T = TypeVar("T")
AnyRow = Row[*tuple[Any, ...]]
Work = Callable[[AsyncConnection], Awaitable[T]]
Open = Callable[[], AbstractAsyncContextManager[AsyncConnection]]

_ATTEMPTS = 6
_DIRECT = "memory_direct"
_DRIVER_ERRORS = (
    SQLAlchemyError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    OverflowError,
)


class _Row(asyncpg.Record):
    """A row as SQLAlchemy's looks to the repositories: columns by name and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def _mapping(self) -> _Row:
        return self


class _Wrapped:
    """A row of the driver's own class, with the same two ways to a column."""

    def __init__(self, row: asyncpg.Record) -> None:
        self._mapping = row

    def __getattr__(self, name: str) -> Any:
        try:
            return self._mapping[name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, position: int) -> Any:
        return self._mapping[position]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mapping.values())


async def fetch(connection: AsyncConnection, statement: str, *values: Any) -> list[AnyRow]:
    """Run one statement with ``$1`` parameters and return its rows.

    Statements are strings that name the type of each parameter, not Core expressions: compiling
    costs a fifth of a small call, and building an expression per call costs twice the call.
    """
    sync = connection.sync_connection
    if sync is not None and _DIRECT in sync.get_execution_options():
        return cast("list[AnyRow]", await _direct(connection, sync, statement, values))
    result = await connection.exec_driver_sql(statement, values)
    return list(result.all()) if result.returns_rows else []


async def _direct(
    connection: AsyncConnection, sync: Connection, statement: str, values: tuple[Any, ...]
) -> Sequence[_Row | _Wrapped]:
    """Run a statement that is a transaction of its own without SQLAlchemy's cursor between.

    The cursor costs as much as everything the driver does. What else it does is done here: a
    connection that was cancelled or whose driver gave up does not go back.
    """
    driver = cast("asyncpg.Connection[_Row]", sync.connection.driver_connection)
    try:
        rows = await driver.fetch(statement, *values, record_class=_Row)
    except BaseException as error:
        if driver.is_closed() or not isinstance(error, asyncpg.PostgresError):
            await asyncio.shield(connection.invalidate())
        raise
    # Where DDL has outdated the statement, asyncpg prepares it anew and forgets the class.
    if rows and not isinstance(rows[0], _Row):
        return [_Wrapped(row) for row in rows]
    return rows


class Access(Protocol):
    """Where work runs. ``joined`` is true inside the caller's transaction."""

    @property
    def joined(self) -> bool:
        """Whether the transaction is the caller's."""
        ...

    @property
    def steered(self) -> bool:
        """Whether connections are opened with our settings for the planner."""
        ...

    @property
    def lasting(self) -> bool:
        """Whether a connection, once opened, is usually kept as long as this process lives."""
        ...

    async def single(self, work: Work[T]) -> T:
        """Run work of exactly one statement, which sets the tenant itself."""
        ...

    async def several(self, work: Work[T]) -> T:
        """Run work of several statements in one READ COMMITTED transaction."""
        ...


async def _bordered(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return await work()
    except _DRIVER_ERRORS as error:
        translated = translate(error)
    # Raised here and not in the handler: the driver's error would be its __context__, and that
    # holds the statement's parameters.
    raise translated


@asynccontextmanager
async def _living(connect: Open) -> AsyncIterator[AsyncConnection]:
    """Check out a connection; one that died in the pool is replaced.

    So is one that a cancelled call is closing still: a host that cancels again and again until the
    call has ended, as anyio does, may see it go back before that.
    """
    while True:
        async with connect() as connection:
            sync = connection.sync_connection
            driver = None if sync is None else sync.connection.driver_connection
            if driver is not None and driver.is_closed():
                # Given back and checked out anew: one that replaces it in place would have the
                # server's isolation level.
                await connection.invalidate()
                continue
            yield connection
            return


@asynccontextmanager
async def _begun(connect: Open) -> AsyncIterator[AsyncConnection]:
    async with _living(connect) as connection, connection.begin():
        yield connection


class OwnAccess:
    """Transactions of our own, on an engine of our own or the host's."""

    joined = False

    def __init__(self, engine: AsyncEngine, *, pooler: bool = False, steered: bool = False) -> None:
        require_asyncpg(engine)
        self.lasting = not pooler and not isinstance(engine.pool, NullPool)
        self._engine = engine
        self.steered = steered
        self._loop: asyncio.AbstractEventLoop | None = None
        # Exact counts need fresh snapshots, whatever the database's default isolation is.
        several = engine.execution_options(isolation_level="READ COMMITTED").connect
        self._several: Open = partial(_begun, several)
        self._single: Open = self._several
        if not pooler:
            # One statement is a transaction without BEGIN and COMMIT, two round trips cheaper.
            single = engine.execution_options(isolation_level="AUTOCOMMIT", **{_DIRECT: True})
            self._single = partial(_living, single.connect)

    async def single(self, work: Work[T]) -> T:
        """See :meth:`Access.single`; retried after a deadlock or a serialization failure."""
        return await self._retried(self._single, work)

    async def several(self, work: Work[T]) -> T:
        """See :meth:`Access.several`; retried after a deadlock or a serialization failure."""
        return await self._retried(self._several, work)

    async def _enter_loop(self) -> None:
        """Leave the connections of an event loop that has ended; refuse a second one beside it.

        A pooled connection belongs to its loop: on another one, calls fail or never return.
        """
        loop = asyncio.get_running_loop()
        if loop is self._loop or isinstance(self._engine.pool, NullPool):
            return
        if self._loop is not None:
            if not self._loop.is_closed():
                raise InvalidInputError("store", "serves another event loop: make one for each")
            await self._engine.dispose(close=False)
        self._loop = loop

    async def _retried(self, opened: Open, work: Work[T]) -> T:
        await self._enter_loop()

        async def attempt() -> T:
            async with opened() as connection:
                return await work(connection)

        for tried in range(1, _ATTEMPTS):
            try:
                return await _bordered(attempt)
            except RetryableError:
                telemetry.retried()
                await asyncio.sleep(random.uniform(0, 0.02 * 2**tried))  # noqa: S311 - jitter, no secret
        return await _bordered(attempt)


class JoinedAccess:
    """The caller's transaction: nothing is committed here, and the caller retries.

    Each call runs in a savepoint, so that a refusal leaves the caller's work whole, and puts
    ``app.current_tenant`` back, which the host's own policies may read.
    """

    joined = True
    steered = False
    lasting = False

    def __init__(self, connection: AsyncConnection) -> None:
        require_asyncpg(connection)
        self._connection = connection
        self._turn = asyncio.Lock()

    async def single(self, work: Work[T]) -> T:
        """See :meth:`Access.single`."""
        return await self.several(work)

    async def several(self, work: Work[T]) -> T:
        """See :meth:`Access.several`; the isolation level is the caller's."""

        async def attempt() -> T:
            async with self._connection.begin_nested():
                caller = await fetch(
                    self._connection, "select current_setting('app.current_tenant', true)"
                )
                result = await work(self._connection)
                await fetch(
                    self._connection,
                    "select set_config('app.current_tenant', $1, true)",
                    caller[0][0] or "",
                )
                return result

        # One connection cannot serve two tasks at once.
        async with self._turn:
            return await _bordered(attempt)
