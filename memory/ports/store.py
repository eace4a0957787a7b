"""The one protocol that both stores implement, in the commands of :mod:`memory.commands`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from memory.commands import Draft, Filters, Found, Order, Query, Subject, Sweep
from memory.graphs import Graph
from memory.portability import ExportedDecision, ExportedRecord
from memory.ports.plugs import DerivedIndex
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

__all__ = ["Demand", "Store"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What to ask of the ``indexes``: what is owed about ``people`` (their hashes), or everything.

    ``due_only`` leaves out what failed and whose next try has not come. ``timeout`` is for each
    call.
    """

    indexes: Mapping[str, DerivedIndex]
    timeout: timedelta
    people: tuple[str, ...] | None = None
    due_only: bool = False


class Store(Protocol):
    """Where records live. Two implementations, one contract suite (``tests/contract``).

    Every method takes the tenant first and sees that tenant only. Errors are those of
    :mod:`memory.errors`; whatever a method raises, nothing of it is stored.
    """

    @property
    def system(self) -> str:
        """What telemetry calls the database: OpenTelemetry's ``db.system.name``."""
        ...

    @property
    def calls_indexes(self) -> bool:
        """Whether :meth:`purge` may follow an erasure; false in a transaction of the caller's."""
        ...

    async def claim(self, pepper_check: str) -> None:
        """Record the pepper's check value, or raise ``InstallError`` if another is recorded."""
        ...

    async def remember(self, tenant_key: str, drafts: Sequence[Draft]) -> list[Record]:
        """Store all drafts or none, as new versions where their ``record_key`` exists."""
        ...

    async def derive(
        self,
        tenant_key: str,
        draft: Draft,
        sources: Sequence[UUID],
        artefacts: Sequence[tuple[str, str]] = (),
    ) -> Record:
        """Store a derived record, its provenance, its inherited subjects and its artefacts."""
        ...

    async def supersede(self, tenant_key: str, record_id: UUID, draft: Draft) -> Record:
        """Store ``draft`` as the version after ``record_id``, which must be the current one."""
        ...

    async def relate(self, tenant_key: str, record_id: UUID, subjects: Sequence[Subject]) -> Record:
        """Link more subjects to a record, and to everything derived from it."""
        ...

    async def get(self, tenant_key: str, record_id: UUID, now: datetime) -> Record | None:
        """Return one record, or None if it is absent or expired."""
        ...

    async def history(self, tenant_key: str, record_key: str, now: datetime | None) -> list[Record]:
        """Return every version under the key, newest first; without a time expired ones too."""
        ...

    async def record_keys(
        self, tenant_key: str, prefix: str, after: str, now: datetime, limit: int
    ) -> list[str]:
        """Return keys that begin with ``prefix``, ascending from behind ``after``.

        Of current records that were given one and have not expired.
        """
        ...

    async def postpone(
        self, tenant_key: str, record_ids: Sequence[UUID], expires_at: datetime, now: datetime
    ) -> int:
        """Have records expire later that would expire before, but after ``now``; count them."""
        ...

    async def records(
        self, tenant_key: str, filters: Filters, after: UUID | None, limit: int
    ) -> list[Record]:
        """Return records by ``record_id`` descending, from below ``after``."""
        ...

    async def search(self, tenant_key: str, query: Query) -> Found:
        """Find records; ties go by ``record_id`` descending."""
        ...

    async def erase(self, tenant_key: str, order: Order) -> Receipt:
        """Erase in one transaction; external indexes are not called here.

        The receipt's ``adapters`` had to purge something that went now. Its ``outstanding`` names
        every adapter that still owes a purge for these people, debts of earlier erasures included,
        so that asking again resumes; it is empty for a dry run. It is ``complete`` when nothing is
        outstanding, held or deferred. What a hold keeps stays, and the order is recorded for the
        release to complete. ``expect`` that differs from the closure is a ``ConflictError``.
        """
        ...

    async def sweep(self, tenant_key: str, sweep: Sweep) -> Receipt:
        """Erase batch by batch what the sweep says; what a hold keeps is passed by and counted."""
        ...

    async def hold(self, tenant_key: str, subject: Subject, now: datetime) -> Decision:
        """Put everything about the person, now and later, under legal hold."""
        ...

    async def release(self, tenant_key: str, subject: Subject, now: datetime) -> Release:
        """Lift the hold and carry out the erasures that waited for it, in one transaction."""
        ...

    async def readmit(self, tenant_key: str, subject: Subject, now: datetime) -> Decision:
        """Lift the block."""
        ...

    async def decisions(
        self, tenant_key: str, subject_hash: str | None, before: int, limit: int
    ) -> list[Decision]:
        """Return decisions from below ``before``, the newest first; of one person where named."""
        ...

    async def tombstones(
        self, tenant_key: str, subject_hash: str | None, before: int, limit: int
    ) -> list[Tombstone]:
        """Return tombstones from below ``before``, the newest first; of one person where named."""
        ...

    async def concerning(self, tenant_key: str, subject_key: str) -> bytes:
        """Return the ids of all records that forgetting the person would erase, ascending.

        End to end, 16 bytes each: a million are 16 MB, where a list would take seven times that.
        """
        ...

    async def exported(
        self, tenant_key: str, subject_key: str, record_ids: Sequence[UUID], *, vectors: bool
    ) -> list[ExportedRecord]:
        """Return these records as the person's, ascending, without those that are gone."""
        ...

    async def tombstones_of(
        self, tenant_key: str, subject_hash: str, after: Tombstone | None, limit: int
    ) -> list[Tombstone]:
        """Return the person's tombstones by ``(erasure_id, seq)``, from behind ``after``."""
        ...

    async def decisions_of(
        self, tenant_key: str, subject_hash: str, after: int, limit: int
    ) -> list[ExportedDecision]:
        """Return the decisions about the person by ``seq``, from behind ``after``."""
        ...

    async def graph(
        self, tenant_key: str, subject_key: str | None, record_id: UUID | None, limit: int
    ) -> Graph:
        """Return what erasing the person or the record takes and its sources, nearest first."""
        ...

    async def purges_of(
        self, tenant_key: str, subject_hash: str, erasure_ids: Sequence[UUID]
    ) -> list[Purging]:
        """Return what indexes purged and owe of these erasures, and what they owe about the person.

        By erasure and index; of another erasure only the artefacts made from the person's records.
        """
        ...

    async def register(
        self, tenant_key: str, adapter: str, artefact_id: str, sources: Sequence[UUID]
    ) -> None:
        """Record that an artefact was made from these records."""
        ...

    async def purge(self, tenant_key: str, demand: Demand) -> Purged:
        """Ask the indexes for purges the tenant is owed, and settle what they confirm.

        What another tenant has registered too is settled without a purge. The answer's adapters
        are those that owe something of what was demanded.
        """
        ...

    async def capabilities(self) -> Capabilities:
        """Measure what the store can do."""
        ...

    async def ready(self, pepper_check: str) -> Readiness:
        """Say whether revision, pepper and role allow this process to serve."""
        ...

    async def close(self) -> None:
        """Release what the store itself opened."""
        ...
