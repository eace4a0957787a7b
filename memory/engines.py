"""Engines: those of our own, and what one of a host's must be."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import asyncpg
from sqlalchemy import URL, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from memory.errors import InvalidInputError
from memory.urls import normalize_url
from memory.validation import limit

__all__ = ["close_engine", "open_engine", "require_asyncpg"]

# Our statements reach every row through an index, and in its order. A foreign key's own check is
# planned once a session: what looked cheap beside an empty table would read all of it later.
_PLANNING = {
    "enable_seqscan": "off",
    "enable_sort": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}
_FAREWELL = 2.0  # seconds, as long as SQLAlchemy gives a connection that it terminates


class _Connection(asyncpg.Connection):
    """A connection that closes in time, though the server does not answer any more."""

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncpg's
        # It is aborted where it is not closed in time, and then there is nothing left to do.
        with suppress(TimeoutError):
            await super().close(timeout=_FAREWELL if timeout is None else timeout)


class _PooledConnection(_Connection):
    """A connection through PgBouncer in transaction mode: nothing happens outside BEGIN.

    SQLAlchemy sets type codecs on connect, which looks types up; outside a transaction the parse
    and the execution of that query may reach two different servers.
    """

    async def set_type_codec(self, *args: Any, **options: Any) -> None:
        async with self.transaction():
            await super().set_type_codec(*args, **options)


_STEERED = {"connection_class": _Connection, "server_settings": _PLANNING}
_UNPREPARED = {
    "connection_class": _PooledConnection,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": lambda: "",
    "statement_cache_size": 0,
}


def open_engine(
    url: str | URL,
    *,
    pooler: bool = False,
    pool_size: int | None = None,
    max_overflow: int | None = None,
) -> AsyncEngine:
    """Return an engine of our own; its errors never show parameters.

    With ``pooler`` it is fit for PgBouncer in transaction mode: no cache of prepared statements, no
    named ones, no start-up parameters. Connections to the pooler are kept, since making one costs
    more than a call.
    """
    url = normalize_url(url)
    if url.get_driver_name() != "asyncpg":
        raise InvalidInputError("url", "must name asyncpg here: postgresql://")
    return create_async_engine(
        url,
        hide_parameters=True,
        # SQLAlchemy takes 0, and -1 as an overflow, for as many as it likes; here a bound is one.
        pool_size=5 if pool_size is None else limit(pool_size, "pool_size"),
        max_overflow=10 if max_overflow is None else limit(max_overflow, "max_overflow", least=0),
        connect_args=_UNPREPARED if pooler else _STEERED,
    )


async def close_engine(engine: AsyncEngine) -> None:
    """Close its connections, and those that are at work as soon as they are given back."""
    pool = engine.pool
    await engine.dispose()
    # They go back to the pool they came from, which would keep them.
    event.listen(pool, "checkin", lambda _, entry: entry.close())


def require_asyncpg(source: AsyncEngine | AsyncConnection) -> None:
    """Raise ``InvalidInputError`` unless the engine or started connection speaks asyncpg."""
    try:
        driver = source.dialect.driver
    except SQLAlchemyError:
        driver = None
    if driver is None:
        raise InvalidInputError("connection", "must have been started: async with, or await")
    if driver != "asyncpg":
        raise InvalidInputError("engine", "must use asyncpg (postgresql+asyncpg://)")
