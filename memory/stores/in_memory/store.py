"""The store's methods: each runs without awaiting in between, so tasks cannot interleave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

from memory import fingerprint
from memory.errors import InstallError
from memory.graphs import Graph
from memory.portability import ExportedDecision, ExportedRecord
from memory.ports import Demand, Draft, Filters, Found, Order, Query, Subject, Sweep
from memory.purging import drain
from memory.stores.in_memory import exporting, holding
from memory.stores.in_memory.draining import ShelfLedger
from memory.stores.in_memory.erasing import erase, outstanding, swept
from memory.stores.in_memory.finding import find
from memory.stores.in_memory.shelf import Shelf, copied
from memory.timelines import Purging
from memory.types import (
    Capabilities,
    Decision,
    Purged,
    Readiness,
    Receipt,
    Record,
    Release,
    Tombstone,
)

__all__ = ["InMemoryStore"]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class InMemoryStore:
    """Keeps everything in this process and loses it with the process.

    Safe for many tasks of one event loop. Several :class:`~memory.Memory` objects may share one.
    ``clock`` gives ``created_at`` and ``superseded_at``.

    >>> from memory import InMemoryStore, Memory
    >>> store = InMemoryStore()
    >>> told = await Memory(store).remember("shop", text="Dana moved", subject_keys="dana")
    >>> len(await Memory(store).records("shop"))
    1
    """

    system = "in_memory"
    calls_indexes = True

    def __init__(self, *, clock: Callable[[], datetime] = _utc_now) -> None:
        self._clock = clock
        self._shelves: dict[str, Shelf] = {}
        self._pepper_check: str | None = None

    def _shelf(self, tenant_key: str) -> Shelf:
        # Asking about a tenant must not create it: only a write keeps the shelf.
        return self._shelves.get(tenant_key) or Shelf(tenant_key)

    def _kept(self, tenant_key: str) -> Shelf:
        return self._shelves.setdefault(tenant_key, Shelf(tenant_key))

    async def claim(self, pepper_check: str) -> None:
        """See :meth:`memory.ports.Store.claim`."""
        if self._pepper_check not in (None, pepper_check):
            raise InstallError(self._problem(pepper_check))
        self._pepper_check = pepper_check

    async def remember(self, tenant_key: str, drafts: Sequence[Draft]) -> list[Record]:
        """See :meth:`memory.ports.Store.remember`."""
        return self._kept(tenant_key).remember(drafts, self._clock())

    async def derive(
        self,
        tenant_key: str,
        draft: Draft,
        sources: Sequence[UUID],
        artefacts: Sequence[tuple[str, str]] = (),
    ) -> Record:
        """See :meth:`memory.ports.Store.derive`."""
        shelf = self._kept(tenant_key)
        shelf.require_unowed(artefacts)
        record = shelf.derive(draft, sources, self._clock())
        shelf.register(artefacts, [record.record_id])
        return record

    async def supersede(self, tenant_key: str, record_id: UUID, draft: Draft) -> Record:
        """See :meth:`memory.ports.Store.supersede`."""
        return self._kept(tenant_key).supersede(record_id, draft, self._clock())

    async def relate(self, tenant_key: str, record_id: UUID, subjects: Sequence[Subject]) -> Record:
        """See :meth:`memory.ports.Store.relate`."""
        return self._kept(tenant_key).relate(record_id, subjects)

    async def get(self, tenant_key: str, record_id: UUID, now: datetime) -> Record | None:
        """See :meth:`memory.ports.Store.get`."""
        row = self._shelf(tenant_key).rows.get(record_id)
        return None if row is None or row.expired(now) else copied(row.record)

    async def history(self, tenant_key: str, record_key: str, now: datetime | None) -> list[Record]:
        """See :meth:`memory.ports.Store.history`."""
        shelf = self._shelf(tenant_key)
        rows = [shelf.rows[item] for item in reversed(shelf.lines.get(record_key, []))]
        return [copied(row.record) for row in rows if now is None or not row.expired(now)]

    async def record_keys(
        self, tenant_key: str, prefix: str, after: str, now: datetime, limit: int
    ) -> list[str]:
        """See :meth:`memory.ports.Store.record_keys`."""
        rows = self._shelf(tenant_key).rows.values()
        current = (row for row in rows if row.matches(Filters(key_prefix=prefix, now=now)))
        return sorted(row.key for row in current if row.key > after)[:limit]

    async def postpone(
        self, tenant_key: str, record_ids: Sequence[UUID], expires_at: datetime, now: datetime
    ) -> int:
        """See :meth:`memory.ports.Store.postpone`."""
        rows = self._shelf(tenant_key).rows
        found = [rows[item] for item in set(record_ids) if item in rows]
        return sum(row.postpone(expires_at, now) for row in found)

    async def records(
        self, tenant_key: str, filters: Filters, after: UUID | None, limit: int
    ) -> list[Record]:
        """See :meth:`memory.ports.Store.records`."""
        rows = self._shelf(tenant_key).rows
        ids = (item for item, row in rows.items() if row.matches(filters))
        below = (item for item in ids if after is None or item < after)
        return [copied(rows[item].record) for item in sorted(below, reverse=True)[:limit]]

    async def search(self, tenant_key: str, query: Query) -> Found:
        """See :meth:`memory.ports.Store.search`."""
        return find(self._shelf(tenant_key), query)

    async def erase(self, tenant_key: str, order: Order) -> Receipt:
        """See :meth:`memory.ports.Store.erase`."""
        shelf = self._shelf(tenant_key) if order.dry_run else self._kept(tenant_key)
        return erase(shelf, order)

    async def sweep(self, tenant_key: str, sweep: Sweep) -> Receipt:
        """See :meth:`memory.ports.Store.sweep`; all at once."""
        return swept(self._kept(tenant_key), sweep)

    async def hold(self, tenant_key: str, subject: Subject, now: datetime) -> Decision:
        """See :meth:`memory.ports.Store.hold`."""
        return holding.hold(self._kept(tenant_key), subject, now)

    async def release(self, tenant_key: str, subject: Subject, now: datetime) -> Release:
        """See :meth:`memory.ports.Store.release`."""
        return holding.release(self._kept(tenant_key), subject, now)

    async def readmit(self, tenant_key: str, subject: Subject, now: datetime) -> Decision:
        """See :meth:`memory.ports.Store.readmit`."""
        return holding.readmit(self._kept(tenant_key), subject, now)

    async def decisions(
        self, tenant_key: str, subject_hash: str | None, before: int, limit: int
    ) -> list[Decision]:
        """See :meth:`memory.ports.Store.decisions`."""
        return exporting.newest(self._shelf(tenant_key).decisions, subject_hash, before, limit)

    async def tombstones(
        self, tenant_key: str, subject_hash: str | None, before: int, limit: int
    ) -> list[Tombstone]:
        """See :meth:`memory.ports.Store.tombstones`."""
        return exporting.newest(self._shelf(tenant_key).tombstones, subject_hash, before, limit)

    async def concerning(self, tenant_key: str, subject_key: str) -> bytes:
        """See :meth:`memory.ports.Store.concerning`."""
        found = exporting.concerning(self._shelf(tenant_key), subject_key)
        return b"".join(item.bytes for item in sorted(found))

    async def exported(
        self, tenant_key: str, subject_key: str, record_ids: Sequence[UUID], *, vectors: bool
    ) -> list[ExportedRecord]:
        """See :meth:`memory.ports.Store.exported`."""
        shelf = self._shelf(tenant_key)
        return exporting.exported(shelf, subject_key, record_ids, vectors=vectors)

    async def tombstones_of(
        self, tenant_key: str, subject_hash: str, after: Tombstone | None, limit: int
    ) -> list[Tombstone]:
        """See :meth:`memory.ports.Store.tombstones_of`."""
        return exporting.tombstones_of(self._shelf(tenant_key), subject_hash, after, limit)

    async def decisions_of(
        self, tenant_key: str, subject_hash: str, after: int, limit: int
    ) -> list[ExportedDecision]:
        """See :meth:`memory.ports.Store.decisions_of`."""
        return exporting.decisions_of(self._shelf(tenant_key), subject_hash, after, limit)

    async def graph(
        self, tenant_key: str, subject_key: str | None, record_id: UUID | None, limit: int
    ) -> Graph:
        """See :meth:`memory.ports.Store.graph`."""
        return exporting.graph(self._shelf(tenant_key), subject_key, record_id, limit)

    async def purges_of(
        self, tenant_key: str, subject_hash: str, erasure_ids: Sequence[UUID]
    ) -> list[Purging]:
        """See :meth:`memory.ports.Store.purges_of`."""
        return exporting.purges_of(self._shelf(tenant_key), subject_hash, erasure_ids)

    async def register(
        self, tenant_key: str, adapter: str, artefact_id: str, sources: Sequence[UUID]
    ) -> None:
        """See :meth:`memory.ports.Store.register`."""
        self._shelf(tenant_key).register([(adapter, artefact_id)], sources)

    async def purge(self, tenant_key: str, demand: Demand) -> Purged:
        """See :meth:`memory.ports.Store.purge`."""
        shelf = self._shelf(tenant_key)
        owed = _owing(shelf, demand)
        able = {name: demand.indexes[name] for name in owed if name in demand.indexes}

        def elsewhere(artefact: tuple[str, str]) -> bool:
            others = (other for other in self._shelves.values() if other is not shelf)
            return any(artefact in other.artefacts for other in others)

        settled = await drain(ShelfLedger(shelf, elsewhere, self._clock), able, demand)
        return Purged(settled=settled, adapters=owed, outstanding=_owing(shelf, demand))

    async def capabilities(self) -> Capabilities:
        """See :meth:`memory.ports.Store.capabilities`."""
        return Capabilities(store="in-memory", vector_search="in-process")

    async def ready(self, pepper_check: str) -> Readiness:
        """See :meth:`memory.ports.Store.ready`."""
        if self._pepper_check in (None, pepper_check):
            return Readiness(ready=True)
        return Readiness(ready=False, problems=(self._problem(pepper_check),))

    def _problem(self, pepper_check: str) -> str:
        without = self._pepper_check == fingerprint.pepper_check(b"")
        return fingerprint.pepper_problem(pepper_check, first_without=without)

    async def close(self) -> None:
        """Nothing was opened; what is stored stays."""


def _owing(shelf: Shelf, demand: Demand) -> tuple[str, ...]:
    if demand.people is not None:
        return outstanding(shelf, demand.people)
    return tuple(sorted({adapter for adapter, _ in shelf.debts}))
