"""Showing what is held: each step is one statement, and holds no connection after it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memory.graphs import Graph
from memory.portability import ExportedDecision, ExportedRecord
from memory.repositories import exports, graphs
from memory.stores.postgres.base import Base
from memory.timelines import Purging
from memory.types import Tombstone

__all__ = ["Exporting"]


class Exporting(Base):
    """The methods of :class:`memory.ports.Store` that show what is held."""

    async def concerning(self, tenant_key: str, subject_key: str) -> bytes:
        """See :meth:`memory.ports.Store.concerning`."""
        return await self._access.single(lambda c: exports.concerning(c, tenant_key, subject_key))

    async def exported(
        self, tenant_key: str, subject_key: str, record_ids: Sequence[UUID], *, vectors: bool
    ) -> list[ExportedRecord]:
        """See :meth:`memory.ports.Store.exported`."""
        return await self._access.single(
            lambda c: exports.records(c, tenant_key, subject_key, record_ids, vectors=vectors)
        )

    async def tombstones_of(
        self, tenant_key: str, subject_hash: str, after: Tombstone | None, limit: int
    ) -> list[Tombstone]:
        """See :meth:`memory.ports.Store.tombstones_of`."""
        return await self._access.single(
            lambda c: exports.tombstones(c, tenant_key, subject_hash, after, limit)
        )

    async def decisions_of(
        self, tenant_key: str, subject_hash: str, after: int, limit: int
    ) -> list[ExportedDecision]:
        """See :meth:`memory.ports.Store.decisions_of`."""
        return await self._access.single(
            lambda c: exports.decisions(c, tenant_key, subject_hash, after, limit)
        )

    async def graph(
        self, tenant_key: str, subject_key: str | None, record_id: UUID | None, limit: int
    ) -> Graph:
        """See :meth:`memory.ports.Store.graph`."""
        found = await self._access.single(
            lambda c: graphs.around(c, tenant_key, subject_key, record_id, limit)
        )
        nodes, edges = await self._access.single(lambda c: graphs.nodes(c, tenant_key, found))
        return Graph(nodes=nodes, edges=edges, records=found.records, erased=found.erased)

    async def purges_of(
        self, tenant_key: str, subject_hash: str, erasure_ids: Sequence[UUID]
    ) -> list[Purging]:
        """See :meth:`memory.ports.Store.purges_of`."""
        of_them = await self._access.single(lambda c: exports.purges(c, tenant_key, erasure_ids))
        others = await self._access.single(
            lambda c: exports.debts(c, tenant_key, subject_hash, erasure_ids)
        )
        return sorted([*of_them, *others], key=lambda one: (one.erasure_id, one.adapter))
