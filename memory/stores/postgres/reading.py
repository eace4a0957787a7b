"""Reading: each verb is one statement; a search may need a second one for its note."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from memory.errors import InstallError
from memory.ports import Filters, Found, Query
from memory.repositories import erasures, reads
from memory.stores.postgres.base import Base
from memory.stores.postgres.finding import find
from memory.types import Record, Tombstone

__all__ = ["Reading"]


class Reading(Base):
    """The methods of :class:`memory.ports.Store` that only read."""

    async def get(self, tenant_key: str, record_id: UUID, now: datetime) -> Record | None:
        """See :meth:`memory.ports.Store.get`."""
        return await self._access.single(lambda c: reads.get(c, tenant_key, record_id, now))

    async def history(self, tenant_key: str, record_key: str, now: datetime | None) -> list[Record]:
        """See :meth:`memory.ports.Store.history`."""
        return await self._access.single(lambda c: reads.history(c, tenant_key, record_key, now))

    async def record_keys(
        self, tenant_key: str, prefix: str, after: str, now: datetime, limit: int
    ) -> list[str]:
        """See :meth:`memory.ports.Store.record_keys`."""
        return await self._access.single(
            lambda c: reads.keys(c, tenant_key, prefix, after, now, limit)
        )

    async def records(
        self, tenant_key: str, filters: Filters, after: UUID | None, limit: int
    ) -> list[Record]:
        """See :meth:`memory.ports.Store.records`."""
        return await self._access.single(lambda c: reads.page(c, tenant_key, filters, after, limit))

    async def search(self, tenant_key: str, query: Query) -> Found:
        """See :meth:`memory.ports.Store.search`."""
        if query.embedding is None:
            return await find(self._access, tenant_key, query, None)
        measured = await self._lately_measured()
        try:
            return await find(self._access, tenant_key, query, measured)
        except InstallError as error:
            refused = error
        moved = await self._measure()
        if moved.extension == measured.extension:
            raise refused
        # pgvector went, or to another schema, since it was measured.
        return await find(self._access, tenant_key, query, moved)

    async def tombstones(
        self, tenant_key: str, subject_hash: str | None, before: int, limit: int
    ) -> list[Tombstone]:
        """See :meth:`memory.ports.Store.tombstones`."""
        return await self._access.single(
            lambda c: erasures.tombstones(c, tenant_key, subject_hash, before, limit)
        )
