"""What LangGraph's store interface erases, by the public verbs of a tenant's memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from memory.errors import LegalHoldError, PartialErasureError, UnknownRecordError
from memory.integrations.langgraph_items import Keys
from memory.service import TenantMemory
from memory.types import Reason, Record

__all__ = ["Eraser"]

_PAGE: Final = 200


class Eraser:
    """Erases whole items, every version; one that a hold keeps does not keep the others."""

    def __init__(self, tenant: TenantMemory, keys: Keys) -> None:
        self._tenant = tenant
        self._keys = keys

    async def delete(self, record_keys: Iterable[str], reason: Reason) -> None:
        """Erase every version under these keys, then raise what kept one of them."""
        kept: LegalHoldError | PartialErasureError | None = None
        for line in record_keys:
            for record in await self._tenant.history(record_key=line, include_expired=True):
                try:
                    await self._tenant.forget_record(record_id=record.record_id, reason=reason)
                except UnknownRecordError:  # somebody else's erasure took it
                    continue
                except (LegalHoldError, PartialErasureError) as error:
                    kept = kept or error
        if kept is not None:
            raise kept

    async def sweep(self) -> int:
        """Erase what has expired, and old versions of items that are no more; count records."""
        erased = 0
        owed: PartialErasureError | None = None
        after: Record | None = None
        while True:
            page = await self._tenant.records(
                key_prefix=self._keys.root, include_superseded=True, after=after, limit=_PAGE
            )
            for record in await self._orphans(page):
                try:
                    erased += await self._swept(record)
                except PartialErasureError as error:
                    owed = owed or error
            if len(page) < _PAGE:
                break
            after = page[-1]
        # Their newest versions last: a sweep that stopped finds the rest of the lines again.
        erased += (await self._tenant.expire()).counts.records
        if owed is not None:
            raise owed
        return erased

    async def _orphans(self, page: Sequence[Record]) -> list[Record]:
        """Return the old versions among these records of items that have no current one."""
        old = [
            record
            for record in page
            if record.superseded_at is not None and self._keys.split(record.record_key)
        ]
        lines = sorted({record.record_key for record in old})
        here = await self._tenant.records(record_keys=lines, limit=_PAGE) if lines else []
        living = {record.record_key for record in here}
        return [record for record in old if record.record_key not in living]

    async def _swept(self, record: Record) -> int:
        """Erase an old version; return how many records went with it."""
        reason: Reason = "retention_policy"
        wanted = record.record_id
        try:
            # What a hold keeps is left to the next sweep: each would record a request for it.
            rehearsed = await self._tenant.forget_record(
                record_id=wanted, reason=reason, dry_run=True
            )
            if rehearsed.held:
                return 0
            done = await self._tenant.forget_record(record_id=wanted, reason=reason)
        except (UnknownRecordError, LegalHoldError):  # it went meanwhile, or was held
            return 0
        return done.counts.records
