"""Transactions and the error border. No statement of the domain is here.

Every call runs as *work*: a coroutine that takes a connection. Where it runs is the access's
affair: in a transaction of its own (:class:`OwnAccess`) or inside the caller's
(:class:`JoinedAccess`). Errors of the driver are translated here and nowhere else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

import asyncpg
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.pool import NullPool

from memory import telemetry
from memory.connections import AnyRow, Endings, Way, Work, begun, direct, fetch
from memory.engines import require_asyncpg
from memory.errors import InvalidInputError, RetryableError
from memory.failures import translate

__all__ = ["Access", "AnyRow", "JoinedAccess", "OwnAccess", "fetch"]

T = TypeVar("T")

_ATTEMPTS = 6
_DRIVER_ERRORS = (
    SQLAlchemyError,
    AsyncAdapt_asyncpg_dbapi.Error,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    OverflowError,
)


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
        """Run work of one statement, which sets the tenant itself; or of one session's."""
        ...

    async def several(self, work: Work[T]) -> T:
        """Run work of several statements in one READ COMMITTED transaction."""
        ...

    async def ended(self) -> None:
        """Wait for connections that are being closed because their calls were cancelled."""
        ...


async def _bordered(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return await work()
    except _DRIVER_ERRORS as error:
        translated = translate(error)
    # Raised here and not in the handler: the driver's error would be its __context__, and that
    # holds the statement's parameters.
    raise translated


class OwnAccess:
    """Transactions of our own, on an engine of our own or the host's."""

    joined = False

    def __init__(self, engine: AsyncEngine, *, pooler: bool = False, steered: bool = False) -> None:
        require_asyncpg(engine)
        self.lasting = not pooler and not isinstance(engine.pool, NullPool)
        self._engine = engine
        self.steered = steered
        self._loop: asyncio.AbstractEventLoop | None = None
        self._endings: Endings = set()
        # One statement is a transaction without BEGIN and COMMIT, two round trips cheaper.
        self._single: Way = begun if pooler else direct

    async def single(self, work: Work[T]) -> T:
        """See :meth:`Access.single`; retried after a deadlock or a serialization failure."""
        return await self._retried(self._single, work)

    async def several(self, work: Work[T]) -> T:
        """See :meth:`Access.several`; retried after a deadlock or a serialization failure."""
        return await self._retried(begun, work)

    async def ended(self) -> None:
        """See :meth:`Access.ended`: the end of the loop would cut them off, and the pool log it."""
        if self._endings:
            await asyncio.wait(self._endings)

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
            self._endings.clear()
        self._loop = loop

    async def _retried(self, way: Way, work: Work[T]) -> T:
        await self._enter_loop()

        attempt = partial(way, self._engine, self._endings, work)
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

    async def ended(self) -> None:
        """See :meth:`Access.ended`: the connection is the caller's."""

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
