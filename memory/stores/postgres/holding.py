"""Decisions about a person: each is one statement, and one transaction."""

from __future__ import annotations

from datetime import datetime

from memory.ports import Subject
from memory.repositories import decisions
from memory.stores.postgres.base import Base
from memory.types import Decision, Release

__all__ = ["Holding"]


class Holding(Base):
    """The methods of :class:`memory.ports.Store` that hold, release and readmit.

    The database gives its own time. A caller's transaction is READ COMMITTED.
    """

    async def hold(self, tenant_key: str, subject: Subject, now: datetime) -> Decision:
        """See :meth:`memory.ports.Store.hold`."""
        return await self._access.several(lambda c: decisions.hold(c, tenant_key, subject))

    async def release(self, tenant_key: str, subject: Subject, now: datetime) -> Release:
        """See :meth:`memory.ports.Store.release`."""
        sealed = not self._access.joined
        return await self._access.several(
            lambda c: decisions.release(c, tenant_key, subject, sealed=sealed)
        )

    async def readmit(self, tenant_key: str, subject: Subject, now: datetime) -> Decision:
        """See :meth:`memory.ports.Store.readmit`."""
        return await self._access.several(lambda c: decisions.readmit(c, tenant_key, subject))

    async def decisions(
        self, tenant_key: str, subject_hash: str | None, before: int, limit: int
    ) -> list[Decision]:
        """See :meth:`memory.ports.Store.decisions`."""
        return await self._access.single(
            lambda c: decisions.newest(c, tenant_key, subject_hash, before, limit)
        )
