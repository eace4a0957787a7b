"""Connections of a pool, whole or the driver's alone, and the statements that run on them."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar, cast

import asyncpg
from sqlalchemy import PoolProxiedConnection, Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.util import greenlet_spawn

__all__ = ["AnyRow", "Endings", "Way", "Work", "begun", "direct", "fetch"]

T = TypeVar("T")

AnyRow = Row[*tuple[Any, ...]]
Work = Callable[[AsyncConnection], Awaitable[T]]
Endings = set[asyncio.Task[None]]


class Way(Protocol):
    """How work runs on an engine: :func:`direct` or :func:`begun`."""

    async def __call__(self, engine: AsyncEngine, endings: Endings, work: Work[T]) -> T:
        """Return what the work does."""
        ...


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
    """The driver's connection, which stands in for an ``AsyncConnection``.

    SQLAlchemy's own, its isolation and its cursor cost together more than all that the driver does,
    and its log shows at DEBUG every row that is read; its pool is kept. What else they do is done
    here: a connection that was cancelled or whose driver gave up does not go back.
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
        rows = await self._run(self._driver.fetch(statement, *values, record_class=_Row))
        # Where DDL has outdated the statement, asyncpg prepares it anew and forgets the class.
        if rows and not isinstance(rows[0], _Row):
            return [_Wrapped(row) for row in rows]
        return rows

    async def begin(self) -> None:
        # Exact counts need fresh snapshots, whatever the default of the database or engine is.
        await self._run(self._driver.execute("begin isolation level read committed"))

    async def commit(self) -> None:
        await self._run(self._driver.execute("commit"))

    async def roll_back(self) -> None:
        """End the transaction, or else the connection, which does too."""
        if self._ending is not None:
            return
        try:
            await self._run(self._driver.execute("rollback"))
        except Exception:
            await self.invalidate()

    async def _run(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except BaseException as error:
            failed = error
        # Not in the handler: what the driver says would be the __context__ of a cancellation.
        if self.closed or not isinstance(failed, asyncpg.PostgresError):
            await self.invalidate()
        raise failed

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
async def _borrowed(engine: AsyncEngine, endings: Endings) -> AsyncIterator[_Direct]:
    """Check out the driver's connection; one that died in the pool is replaced.

    So is one that a cancelled call is closing still: a host that cancels again and again until the
    call has ended, as anyio does, may see it go back before that.
    """
    while True:
        driver = _Direct(engine, await engine.raw_connection(), endings)
        try:
            if driver.closed:
                await driver.invalidate()
                continue
            yield driver
            return
        finally:
            await driver.close()


async def direct(engine: AsyncEngine, endings: Endings, work: Work[T]) -> T:
    """Run work on a connection where each statement is a transaction of its own.

    ``endings`` are the connections that are being closed, whoever has stopped waiting for that.
    """
    async with _borrowed(engine, endings) as driver:
        return await work(cast("AsyncConnection", driver))


async def begun(engine: AsyncEngine, endings: Endings, work: Work[T]) -> T:
    """Run work in a READ COMMITTED transaction; ``endings`` as in :func:`direct`."""
    async with _borrowed(engine, endings) as driver:
        await driver.begin()
        try:
            result = await work(cast("AsyncConnection", driver))
        except BaseException as error:
            failed = error
        else:
            await driver.commit()
            return result
        # Not in the handler, nor on the way out of a context; see _Direct._run.
        await driver.roll_back()
        raise failed
