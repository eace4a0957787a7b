"""The verbs that erase, and what follows an erasure."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memory import validation
from memory.errors import InvalidInputError, LegalHoldError, PartialErasureError
from memory.ids import uuid7
from memory.ports import Demand, Order
from memory.service.base import Base, utc_now
from memory.service.events import publish
from memory.service.notes import kept, owing
from memory.types import Purged, Reason, Receipt

__all__ = ["Erasing"]

_logger = logging.getLogger("memory.erasure")


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
        block_future: bool = False,
    ) -> Receipt:
        """Erase a person: every record about them and everything derived from those.

        Other people's memories go too where one was about both, or was derived from both; a dry run
        counts and names them. ``kinds`` narrows what it starts from, never the cascade. ``expect``
        is the ``closure`` of a dry run: where something else would go now, nothing does and
        ``ConflictError`` is raised. Erasing somebody unknown leaves a tombstone that says zero.
        ``reason`` is a code for the evidence: ``subject_request``, ``retention_policy`` or
        ``operator``. With ``block_future``, what is written about the person from now on is refused
        with ``SubjectBlockedError``, until :meth:`readmit`; it is of a whole person, not of kinds.

        Raises ``PartialErasureError``, after the database is clean, when an external index has not
        confirmed its purge: call again, or :meth:`purge_outstanding`. Raises ``LegalHoldError``
        when the person is held, or somebody else whose records derive from theirs: what the hold
        keeps stays, :meth:`release` completes the erasure as if it were asked for then, and a block
        holds at once.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Dana moved", subject_keys="customer:dana")
        >>> made = await shop.derive(kind="summary", text="New address", sources=told)
        >>> plan = await shop.forget(subject_key="customer:dana", dry_run=True)
        >>> receipt = await shop.forget(subject_key="customer:dana", expect=plan.closure)
        >>> receipt.counts.memories, receipt.counts.derived, receipt.complete
        (1, 1, True)
        """
        tenant_key = validation.tenant(tenant_key)
        key = validation.key(subject_key, "subject_key")
        block = validation.flag(block_future, "block_future")
        if block and kinds is not None:
            raise InvalidInputError("block_future", "blocks a whole person: leave out kinds")
        order = Order(
            erasure_id=uuid7(),
            reason=validation.reason(reason),
            scope="subject" if kinds is None else "kinds",
            subject=self._subject(tenant_key, key),
            kinds=None if kinds is None else validation.kinds(kinds),
            dry_run=validation.flag(dry_run, "dry_run"),
            expect=None if expect is None else validation.closure(expect),
            block=block,
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

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Wrong number", subject_keys="dana")
        >>> receipt = await shop.forget_record(record_id=told.record.record_id, reason="operator")
        >>> receipt.scope, receipt.counts.records
        ('record', 1)
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

    async def purge_outstanding(self, tenant_key: str, *, due_only: bool = False) -> Purged:
        """Ask the registered indexes again for every purge that is still owed.

        What has failed waits longer after each failure, up to about an hour. A call by hand ignores
        that; ``due_only`` honours it, for a worker that calls again and again.

        >>> from memory import Memory
        >>> await Memory().purge_outstanding("shop")
        Purged(settled=0, adapters=(), outstanding=())
        """
        tenant_key = validation.tenant(tenant_key)
        demand = self._demand(due_only=validation.flag(due_only, "due_only"))
        return await self._store.purge(tenant_key, demand)

    async def _erase(self, tenant_key: str, order: Order) -> Receipt:
        if order.dry_run:
            return await self._store.erase(tenant_key, order)
        await self._claim()
        receipt = await self._finished(tenant_key, await self._store.erase(tenant_key, order))
        if receipt.held or receipt.deferred:
            raise LegalHoldError(kept(receipt), receipt)
        self._require_purged(receipt)
        return receipt

    async def _finished(self, tenant_key: str, receipt: Receipt) -> Receipt:
        """Ask the indexes for what a committed erasure left them to purge; publish its event."""
        if receipt.outstanding and self._store.calls_indexes:
            receipt = await self._purged(tenant_key, receipt)
        await publish(self._events, receipt, self._purge_timeout)
        return receipt

    def _require_purged(self, receipt: Receipt) -> None:
        if receipt.outstanding and self._store.calls_indexes:
            raise PartialErasureError(owing(receipt), receipt)

    async def _purged(self, tenant_key: str, receipt: Receipt) -> Receipt:
        """Have the indexes purge; the erasure is committed: its receipt reaches the caller."""
        # A sweep names nobody: its purges are those of the whole tenant.
        people = receipt.subject_hashes or None
        try:
            purged = await self._store.purge(tenant_key, self._demand(people=people))
            still = purged.outstanding
        except Exception as error:  # the debt can wait
            _logger.error("purging failed: %s", type(error).__name__)  # noqa: TRY400 - a traceback may quote
            still = receipt.outstanding
        outstanding = tuple(name for name in receipt.outstanding if name in still)
        complete = not (outstanding or receipt.held or receipt.deferred)
        return replace(
            receipt,
            outstanding=outstanding,
            complete=complete,
            completed_at=self._now_at_any_rate(receipt.erased_at) if complete else None,
        )

    def _now_at_any_rate(self, after: datetime) -> datetime:
        try:
            return max(after, self._now())
        except Exception as error:  # a host's clock
            _logger.error("the clock failed: %s", type(error).__name__)  # noqa: TRY400 - a traceback may quote
            return max(after, utc_now())

    def _demand(self, *, people: tuple[str, ...] | None = None, due_only: bool = False) -> Demand:
        return Demand(
            indexes=self._indexes, timeout=self._purge_timeout, people=people, due_only=due_only
        )
