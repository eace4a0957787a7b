"""The owner's way through the tenants: each set in turn, never all at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from memory.database import Access, OwnAccess, fetch
from memory.engines import open_engine
from memory.errors import InvalidInputError

__all__ = ["Portion", "Progress", "Source", "opened", "silent", "tenants", "unwatched"]

Source: TypeAlias = AsyncEngine | URL | str
Progress: TypeAlias = Callable[[str, int], None]
"""Called with the name of a step and how far it has come; never with a key."""
Portion: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a step, how far it has come and its end, 0 where that is not known."""

_TENANTS = 1_000


def silent(step: str, done: int) -> None:
    """Report nothing."""


def unwatched(step: str, done: int, total: int) -> None:
    """Report nothing."""


@asynccontextmanager
async def opened(source: Source) -> AsyncIterator[Access]:
    """Give access through a URL or an engine; an engine made here is closed again."""
    if isinstance(source, AsyncEngine):
        yield OwnAccess(source)
        return
    if not isinstance(source, URL | str):
        raise InvalidInputError("engine_or_url", "must be a URL or an engine")
    engine = open_engine(source)
    try:
        yield OwnAccess(engine)
    finally:
        await engine.dispose()


async def tenants(access: Access) -> AsyncIterator[str]:
    """Yield the key of every tenant, ascending; the policy lets only the owner read them."""
    last = ""
    while True:
        page = await access.single(partial(_page, last=last))
        for tenant_key in page:
            yield tenant_key
        if len(page) < _TENANTS:
            return
        last = page[-1]


async def _page(connection: AsyncConnection, last: str) -> list[str]:
    rows = await fetch(
        connection,
        "select x.tenant_key from memory.tenants as x where x.tenant_key > $1::text"
        " order by x.tenant_key limit $2",
        last,
        _TENANTS,
    )
    return [row.tenant_key for row in rows]
