"""The verbs that decide about a person: legal holds, and the end of a block."""

from __future__ import annotations

from memory import validation
from memory.ports import Subject
from memory.service.erasing import Erasing
from memory.types import Decision, Release

__all__ = ["Holding"]


class Holding(Erasing):
    """Each decision is one transaction and leaves a row that is never changed."""

    async def hold(self, tenant_key: str, *, subject_key: str) -> Decision:
        """Put a person under legal hold: nothing about them is erased, by anybody, until released.

        It may come before there is any record; what is remembered, derived or related later takes
        the hold over. A DELETE in SQL is refused, whatever its role. Holding somebody twice changes
        nothing, is recorded twice, and is lifted by one :meth:`release`. A misspelt key is no
        error: it holds somebody of whom nothing is known yet.

        >>> from memory import LegalHoldError, Memory
        >>> shop = Memory().for_tenant("shop")
        >>> told = await shop.remember(text="Eli disputes an invoice", subject_keys="eli")
        >>> decision = await shop.hold(subject_key="eli")
        >>> try:
        ...     await shop.forget(subject_key="eli")
        ... except LegalHoldError as stopped:
        ...     print(stopped.receipt.held, stopped.receipt.deferred)
        1 True
        """
        tenant_key, subject = await self._decided(tenant_key, subject_key)
        return await self._store.hold(tenant_key, subject, self._now())

    async def release(self, tenant_key: str, *, subject_key: str) -> Release:
        """Lift a person's hold and carry out, in the same transaction, the erasures it deferred.

        They start from what there is now: what was remembered since they were asked for goes too.
        A record about somebody else who is held stays, and so does an erasure that waits for it.
        Needs ``memory.grant_operator`` on PostgreSQL. An external index that does not confirm its
        purge is ``outstanding`` in the receipt, and no error: the hold is lifted all the same. Of
        somebody who is not held it changes nothing, is no error, and is recorded:
        ``decisions(subject_key=...)`` says beforehand whether they are.

        >>> from memory import LegalHoldError, Memory
        >>> shop = Memory().for_tenant("shop")
        >>> decision = await shop.hold(subject_key="eli")
        >>> released = await shop.release(subject_key="eli")
        >>> released.decision.action, released.receipts
        ('release', ())
        """
        tenant_key, subject = await self._decided(tenant_key, subject_key)
        done = await self._store.release(tenant_key, subject, self._now())
        receipts = [await self._finished(tenant_key, receipt) for receipt in done.receipts]
        return Release(decision=done.decision, receipts=tuple(receipts))

    async def readmit(self, tenant_key: str, *, subject_key: str) -> Decision:
        """Lift the block that ``forget(block_future=True)`` set: they may be remembered again.

        Needs ``memory.grant_operator`` on PostgreSQL. What was erased stays erased. Of somebody who
        is not blocked it changes nothing, is no error, and is recorded.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> receipt = await shop.forget(subject_key="dana", block_future=True)
        >>> (await shop.readmit(subject_key="dana")).action
        'readmit'
        """
        tenant_key, subject = await self._decided(tenant_key, subject_key)
        return await self._store.readmit(tenant_key, subject, self._now())

    async def decisions(
        self,
        tenant_key: str,
        *,
        subject_key: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Decision]:
        """Return blocks, holds, their ends, and deferred erasures: newest first, at most ``limit``.

        They name people by the hash that :meth:`subject_fingerprint` returns. ``subject_key`` and
        ``before`` are those of :meth:`erasure_history`.

        >>> from memory import Memory
        >>> shop = Memory().for_tenant("shop")
        >>> decision = await shop.hold(subject_key="eli")
        >>> [decision.action for decision in await shop.decisions(subject_key="eli")]
        ['hold']
        """
        tenant_key = validation.tenant(tenant_key)
        below, most = validation.below(before), validation.limit(limit)
        person = await self._evident(tenant_key, subject_key)
        return await self._store.decisions(tenant_key, person, below, most)

    async def _decided(self, tenant_key: str, subject_key: str) -> tuple[str, Subject]:
        tenant_key = validation.tenant(tenant_key)
        subject = self._subject(tenant_key, validation.key(subject_key, "subject_key"))
        await self._claim()
        return tenant_key, subject
