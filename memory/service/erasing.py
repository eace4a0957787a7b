"""The verbs that erase, and what follows an erasure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from memory import validation
from memory.errors import LegalHoldError, MemoryServiceError, PartialErasureError
from memory.ids import uuid7
from memory.ports import Order
from memory.service.base import Base
from memory.service.events import publish
from memory.types import Purged, Reason, Receipt

__all__ = ["Erasing"]


class Erasing(Base):
    """Each erasure is one transaction; external indexes are asked after it has committed."""

    async def forget(
        self,
        tenant_key: str,
        *,
        subject_key: str,
        reason: Reason = "subject_request",
        kinds: str | Sequence[str] | None = None,
        dry_run: bool = False,
        expect: str | None = None,
    ) -> Receipt:
        """Erase a person: every record about them and everything derived from those.

        Other people's memories go too where one was about both, or was derived from both; a dry run
        counts and names them. ``kinds`` narrows what it starts from, never the cascade. ``expect``
        is the ``closure`` of a dry run: where something else would go now, nothing does and
        ``ConflictError`` is raised. Erasing somebody unknown leaves a tombstone that says zero.
        ``reason`` is a code for the evidence: ``subject_request``, ``retention_policy`` or
        ``operator``.

        Raises ``PartialErasureError``, after the database is clean, when an external index has not
        confirmed its purge: call again, or :meth:`purge_outstanding`.
        """
        tenant_key = validation.tenant(tenant_key)
        key = validation.key(subject_key, "subject_key")
        order = Order(
            erasure_id=uuid7(),
            reason=validation.reason(reason),
            scope="subject" if kinds is None else "kinds",
            subject=self._subject(tenant_key, key),
            kinds=None if kinds is None else validation.kinds(kinds),
            dry_run=validation.flag(dry_run, "dry_run"),
            expect=None if expect is None else validation.closure(expect),
            now=self._now(),
        )
        return await self._erase(tenant_key, order)

    async def forget_record(
        self,
        tenant_key: str,
        *,
        record_id: UUID | str,
        reason: Reason = "subject_request",
        dry_run: bool = False,
        expect: str | None = None,
    ) -> Receipt:
        """Erase one record and everything derived from it; a tombstone for each of its people.

        Other versions of the record stay. Raises ``UnknownRecordError``, and what :meth:`forget`
        raises.
        """
        tenant_key = validation.tenant(tenant_key)
        order = Order(
            erasure_id=uuid7(),
            reason=validation.reason(reason),
            scope="record",
            record_id=validation.record_id(record_id),
            dry_run=validation.flag(dry_run, "dry_run"),
            expect=None if expect is None else validation.closure(expect),
            now=self._now(),
        )
        return await self._erase(tenant_key, order)

    async def purge_outstanding(self, tenant_key: str) -> Purged:
        """Ask the registered indexes again for every purge that is still owed."""
        return await self._store.purge(validation.tenant(tenant_key), self._indexes)

    async def _erase(self, tenant_key: str, order: Order) -> Receipt:
        if order.dry_run:
            return await self._store.erase(tenant_key, order)
        await self._claim()
        receipt = await self._store.erase(tenant_key, order)
        asked = bool(receipt.outstanding) and self._store.calls_indexes
        if asked:
            receipt = await self._purged(tenant_key, receipt)
        await publish(self._events, receipt)
        if receipt.held:
            raise LegalHoldError("a legal hold keeps what was to be erased", receipt)
        if asked and receipt.outstanding:
            raise PartialErasureError("an external index has not confirmed its purge", receipt)
        return receipt

    async def _purged(self, tenant_key: str, receipt: Receipt) -> Receipt:
        try:
            owing = (await self._store.purge(tenant_key, self._indexes)).outstanding
        except MemoryServiceError:
            # The erasure is committed: its receipt must reach the caller, the debt can wait.
            owing = receipt.outstanding
        outstanding = tuple(name for name in receipt.outstanding if name in owing)
        complete = not outstanding and not receipt.held
        return replace(
            receipt,
            outstanding=outstanding,
            complete=complete,
            completed_at=self._now() if complete else None,
        )
