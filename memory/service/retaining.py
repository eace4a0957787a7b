"""The verbs that erase without naming a person: what retention says, and a whole tenant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from memory import validation
from memory.errors import InvalidInputError, LegalHoldError
from memory.ids import uuid7
from memory.ports import Sweep
from memory.service.erasing import Erasing
from memory.service.notes import kept
from memory.types import Reason, Receipt

__all__ = ["Retaining"]


class Retaining(Erasing):
    """Each goes batch by batch, each batch in a transaction of its own: a crash loses nothing.

    Run again, it does what was left, under another ``erasure_id``.
    """

    async def expire(
        self,
        tenant_key: str,
        *,
        now: datetime | None = None,
        kinds: str | Sequence[str] | None = None,
        older_than: timedelta | None = None,
        batch: int = 1_000,
    ) -> Receipt:
        """Erase what retention says, and everything derived from it: a job for every night.

        That is every record whose ``expires_at`` has come; and, with ``older_than``, those of the
        ``kinds`` (None: of any) whose ``occurred_at`` is longer ago. The reason is
        ``retention_policy``, the tombstones are one per person and batch. ``now`` (default: the
        clock) may not lie in the future, since what is erased too early does not come back.
        ``batch`` is 1 to 1,000 records, beside what was derived from them.

        What a legal hold keeps is passed by and counted in ``held``, and is no error: the next run
        finds it again. Raises ``PartialErasureError`` as :meth:`forget` does.

        >>> from datetime import timedelta
        >>> from memory import Memory
        >>> service = Memory()
        >>> receipt = await service.expire("shop", kinds="episodic", older_than=timedelta(days=90))
        >>> receipt.reason, receipt.counts.records
        ('retention_policy', 0)
        """
        tenant_key = validation.tenant(tenant_key)
        clock = self._now()
        moment = clock if now is None else validation.moment(now, "now")
        if moment > clock:
            raise InvalidInputError("now", "must not lie in the future")
        if kinds is not None and older_than is None:
            raise InvalidInputError("kinds", "must come with older_than")
        return await self._sweep(
            tenant_key,
            Sweep(
                erasure_id=uuid7(),
                reason="retention_policy",
                scope="retention",
                kinds=None if kinds is None else validation.kinds(kinds),
                before=None if older_than is None else validation.before(moment, older_than),
                batch=validation.limit(batch, "batch"),
                now=moment,
            ),
        )

    async def forget_tenant(
        self,
        tenant_key: str,
        *,
        confirm: str,
        reason: Reason = "operator",
        batch: int = 1_000,
    ) -> Receipt:
        """Erase everything a tenant holds, batch by batch; ``confirm`` repeats the tenant key.

        Artefacts become purges. What stays is evidence and names nobody: tombstones, decisions, the
        tenant's key, and the hash of whoever is blocked or held. What is written meanwhile may
        stay too: stop the writers first.

        Raises ``LegalHoldError``, after everything else is erased, when a hold keeps records; it
        is not completed by a release: call it again. Raises ``PartialErasureError`` as
        :meth:`forget` does.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Dana moved", subject_keys="customer:dana")
        >>> receipt = await shop.forget_tenant(confirm="shop")
        >>> receipt.scope, receipt.counts.records
        ('tenant', 1)
        """
        tenant_key = validation.tenant(tenant_key)
        if confirm != tenant_key:
            raise InvalidInputError("confirm", "must repeat the tenant key")
        return await self._sweep(
            tenant_key,
            Sweep(
                erasure_id=uuid7(),
                reason=validation.reason(reason),
                scope="tenant",
                batch=validation.limit(batch, "batch"),
                now=self._now(),
            ),
        )

    async def _sweep(self, tenant_key: str, sweep: Sweep) -> Receipt:
        await self._claim()
        receipt = await self._finished(tenant_key, await self._store.sweep(tenant_key, sweep))
        if receipt.held and sweep.scope == "tenant":
            raise LegalHoldError(kept(receipt), receipt)
        self._require_purged(receipt)
        return receipt
