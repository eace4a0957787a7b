"""Connections of a pool, whole or the driver's alone, and the statements that run on them."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import asyncpg
from sqlalchemy import PoolProxiedConnection, Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.util import greenlet_spawn

__all__ = ["AnyRow", "Endings", "Open", "begun", "direct", "fetch"]

AnyRow = Row[*tuple[Any, ...]]
Open = Callable[[], AbstractAsyncContextManager[AsyncConnection]]
Endings = set[asyncio.Task[None]]


class _Numbers:
    """Binds an array of numbers.

    asyncpg goes through a parameter twice, and the first time only to see whether its elements are
    arrays, which for 384 numbers takes twice as long as all else that it does. So the first time
    nothing is shown; what it counts on is the length.
    """

    __slots__ = ("_looked_at", "_values")

    def __init__(self, values: array[float]) -> None:
        self._values = values
        self._looked_at = False

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[float]:
        shown = self._values if self._looked_at else ()
        self._looked_at = True
        return iter(shown)


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


class _Direct:
    """The driver's connection, for work whose statements are transactions of their own.

    It stands in for an ``AsyncConnection``, of which such work needs no more. SQLAlchemy's own, its
    isolation and its cursor cost together more than all that the driver does; its pool is kept.
    What else they do is done here: a connection that was cancelled or whose driver gave up does not
    go back.
    """

    def __init__(
        self, engine: AsyncEngine, pooled: PoolProxiedConnection, endings: Endings
    ) -> None:
        self._engine = engine
        self._endings = endings
        self._take(pooled)

    def _take(self, pooled: PoolProxiedConnection) -> None:
        self._pooled = pooled
        self._driver = cast("asyncpg.Connection[_Row]", pooled.driver_connection)
        self._ending: asyncio.Task[None] | None = None

    @property
    def closed(self) -> bool:
        return self._driver.is_closed()

    async def fetch(self, statement: str, values: tuple[Any, ...]) -> Sequence[_Row | _Wrapped]:
        try:
            rows = await self._driver.fetch(statement, *values, record_class=_Row)
        except BaseException as error:
            if self.closed or not isinstance(error, asyncpg.PostgresError):
                await self.invalidate()
            raise
        # Where DDL has outdated the statement, asyncpg prepares it anew and forgets the class.
        if rows and not isinstance(rows[0], _Row):
            return [_Wrapped(row) for row in rows]
        return rows

    async def get_raw_connection(self) -> PoolProxiedConnection:
        """Return what the pool has given; anew where that was invalidated."""
        if self._ending is not None:
            self._take(await self._engine.raw_connection())
        return self._pooled

    async def invalidate(self) -> None:
        """Close what the pool has given; it is gone from the pool, however often this is cancelled.

        A host that cancels until the call has ended, as anyio does, does not wait for the end.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(greenlet_spawn(self._pooled.invalidate))
            self._endings.add(self._ending)
            self._ending.add_done_callback(self._endings.discard)
        await asyncio.shield(self._ending)

    async def close(self) -> None:
        if self._ending is None:
            await greenlet_spawn(self._pooled.close)


async def fetch(connection: AsyncConnection, statement: str, *values: Any) -> list[AnyRow]:
    """Run one statement with ``$1`` parameters and return its rows.

    Statements are strings that name the type of each parameter, not Core expressions: compiling
    costs a fifth of a small call, and building an expression per call costs twice the call.
    """
    bound = tuple(_Numbers(value) if isinstance(value, array) else value for value in values)
    if isinstance(connection, _Direct):
        return cast("list[AnyRow]", await connection.fetch(statement, bound))
    result = await connection.exec_driver_sql(statement, bound)
    return list(result.all()) if result.returns_rows else []


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
async def direct(engine: AsyncEngine, endings: Endings) -> AsyncIterator[AsyncConnection]:
    """Check out the driver's connection alone; see :func:`_living`.

    ``endings`` are the connections that are being closed, whoever has stopped waiting for that.
    """
    while True:
        driver = _Direct(engine, await engine.raw_connection(), endings)
        try:
            if driver.closed:
                await driver.invalidate()
                continue
            yield cast("AsyncConnection", driver)
            return
        finally:
            await driver.close()


@asynccontextmanager
async def begun(connect: Open) -> AsyncIterator[AsyncConnection]:
    """Check out a connection in a transaction that is committed at the end."""
    async with _living(connect) as connection, connection.begin():
        yield connection
