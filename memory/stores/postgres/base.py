"""What every part of the PostgreSQL store needs: the way to the database, opened and closed."""

from __future__ import annotations

import time
from typing import Final, Self

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from memory import fingerprint
from memory.database import Access, JoinedAccess, OwnAccess
from memory.engines import close_engine, open_engine
from memory.errors import InstallError, InvalidInputError, StoreUnavailableError
from memory.repositories import tenancy
from memory.repositories.measuring import Measured, measure
from memory.types import Capabilities, Readiness

__all__ = ["Base"]

_LATELY: Final = 60.0  # seconds


class Base:
    """Holds the access; see :class:`memory.PostgresStore`."""

    system = "postgresql"

    def __init__(
        self,
        source: AsyncEngine | AsyncConnection | URL | str,
        *,
        pooler: bool = False,
        pool_size: int | None = None,
        max_overflow: int | None = None,
    ) -> None:
        self._own: AsyncEngine | None = None
        self._measured: Measured | None = None
        self._measured_at = 0.0
        self._access: Access
        pool = {"pool_size": pool_size, "max_overflow": max_overflow}
        if isinstance(source, AsyncEngine | AsyncConnection):
            for name, given in pool.items():
                if given is not None:
                    raise InvalidInputError(name, "is for a URL: an engine has a pool already")
        elif not isinstance(source, URL | str):
            raise InvalidInputError("source", "must be a URL or an engine of create_async_engine")
        if isinstance(source, AsyncConnection):
            self._access = JoinedAccess(source)
            return
        if not isinstance(source, AsyncEngine):
            source = self._own = open_engine(source, pooler=pooler, **pool)
        steered = self._own is not None and not pooler
        self._access = OwnAccess(source, pooler=pooler, steered=steered)

    @classmethod
    def joined(cls, connection: AsyncConnection) -> Self:
        """Return a store that works inside the caller's transaction and commits nothing.

        No external index is called: purges wait until ``purge_outstanding`` on a store with
        transactions of its own. What asks for a retry is a ``RetryableError``: the caller repeats
        the whole transaction.

        >>> from memory import Memory, PostgresStore
        >>> from sqlalchemy.ext.asyncio import create_async_engine
        >>> engine = create_async_engine(url)  # postgresql+asyncpg://...
        >>> async with engine.begin() as connection:
        ...     service = Memory(PostgresStore.joined(connection), subject_pepper=pepper)
        ...     told = await service.remember("shop", text="Dana moved", subject_keys="dana")
        >>> await engine.dispose()
        """
        if not isinstance(connection, AsyncConnection):
            raise InvalidInputError(
                "connection", "must be an AsyncConnection; a session has one: .connection()"
            )
        return cls(connection)

    @property
    def calls_indexes(self) -> bool:
        """Whether external indexes may be called: not inside the caller's transaction."""
        return not self._access.joined

    async def claim(self, pepper_check: str) -> None:
        """See :meth:`memory.ports.Store.claim`."""
        if await self._access.single(lambda c: tenancy.claim(c, pepper_check)):
            return
        none = fingerprint.pepper_check(b"")
        without = await self._access.single(lambda c: tenancy.recorded(c, none))
        raise InstallError(fingerprint.pepper_problem(pepper_check, first_without=without))

    async def capabilities(self) -> Capabilities:
        """See :meth:`memory.ports.Store.capabilities`."""
        return (await self._measure()).capabilities

    async def _measure(self) -> Measured:
        self._measured = await self._access.single(measure)
        self._measured_at = time.monotonic()
        return self._measured

    async def _lately_measured(self) -> Measured:
        """Measure again after a minute: what an operator has made since is used without a restart.

        What is gone is noticed where it is missed.
        """
        if self._measured is None or time.monotonic() - self._measured_at > _LATELY:
            return await self._measure()
        return self._measured

    async def ready(self, pepper_check: str) -> Readiness:
        """See :meth:`memory.ports.Store.ready`; a server that cannot answer is a problem too."""
        try:
            problems = await self._access.single(lambda c: tenancy.problems(c, pepper_check))
        except (InstallError, StoreUnavailableError) as error:
            problems = (str(error),)
        return Readiness(ready=not problems, problems=problems)

    async def close(self) -> None:
        """Close the engine that was made from a URL; a host's engine stays open.

        Calls under way end, and their connections with them. A call after it opens connections
        again.
        """
        await self._access.ended()
        if self._own is not None:
            await close_engine(self._own)
