"""Tombstones out of the database, into a stream kept beside its backups."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import tombstones, validation
from memory.database import Access, fetch
from memory.maintenance.walking import Source, opened, tenants
from memory.repositories import tenancy
from memory.types import Anchor, Tombstone

__all__ = ["chain", "export_tombstones"]

_PAGE: Final = 1_000
_COLUMNS: Final = ", ".join(f"t.{item.name}" for item in fields(Tombstone))
_CHAIN: Final = f"""
select {_COLUMNS} from memory.tombstones as t
where t.tenant_key = $1 and t.seq > $2 order by t.seq limit $3
"""


async def export_tombstones(
    engine_or_url: Source, *, tenant_key: str | None = None
) -> AsyncGenerator[str, None]:
    """Yield the tombstones of every tenant, or of one, as lines of JSON.

    Write each with a line feed, and keep the file where the backups are: after a restore,
    :func:`replay` erases again what the backup brought back. The lines hold tenant keys and hashes
    of people, no content; :mod:`memory.tombstones` describes and verifies them. All tenants need
    the owner of the schema; for one, its application's role will do.

    >>> import memory
    >>> async for line in memory.export_tombstones(owner_url):
    ...     print(line)
    {"type":"stream","format":"erasable-memory tombstones 1"}
    {"type":"end","tombstones":0}
    """
    one = None if tenant_key is None else validation.tenant(tenant_key)
    yield tombstones.header()
    count = 0
    async with opened(engine_or_url) as access:
        async for key in _chosen(access, one):
            newest: Tombstone | None = None
            async for stone in chain(access, key):
                newest = stone
                count += 1
                yield tombstones.line(stone)
            if newest is not None:
                yield tombstones.head(key, Anchor(seq=newest.seq, digest=newest.digest))
    yield tombstones.footer(count)


async def _chosen(access: Access, tenant_key: str | None) -> AsyncIterator[str]:
    if tenant_key is not None:
        yield tenant_key
        return
    async for key in tenants(access):
        yield key


async def chain(access: Access, tenant_key: str) -> AsyncIterator[Tombstone]:
    """Yield a tenant's tombstones as they are stored, oldest first."""
    after = 0
    while True:
        page = await access.several(partial(_page, tenant_key=tenant_key, after=after))
        for stone in page:
            yield stone
        if len(page) < _PAGE:
            return
        after = page[-1].seq


async def _page(connection: AsyncConnection, tenant_key: str, after: int) -> Sequence[Tombstone]:
    await tenancy.enter(connection, tenant_key)
    rows = await fetch(connection, _CHAIN, tenant_key, after, _PAGE)
    return [Tombstone(**row._mapping) for row in rows]
