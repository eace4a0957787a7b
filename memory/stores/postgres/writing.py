"""Writing: each verb is one statement, or one transaction of several."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import ConflictError, UnknownRecordError
from memory.ports import Draft, Subject
from memory.repositories import reads, tenancy, writes
from memory.stores.postgres.base import Base
from memory.types import Record
from memory.versions import Placed, line, placed, recorded, same_content

__all__ = ["Writing"]

_CHUNK: Final = 1_000


class Writing(Base):
    """The methods of :class:`memory.ports.Store` that write records and artefacts."""

    async def remember(self, tenant_key: str, drafts: Sequence[Draft]) -> list[Record]:
        """See :meth:`memory.ports.Store.remember`."""
        if any(draft.own_id or draft.record_key is not None for draft in drafts):
            try:
                return await self._access.several(lambda c: _remember(c, tenant_key, drafts))
            except ConflictError as error:
                conflict = error
            if not self._access.joined and all(draft.own_id for draft in drafts):
                # The version that came first may be this one, from an attempt that is retried.
                found = await self._access.several(lambda c: _stored(c, tenant_key, drafts))
                if found is not None:
                    return found
            raise conflict
        items = [Placed(draft=draft) for draft in drafts]
        if len(items) <= _CHUNK:
            return await self._access.single(lambda c: writes.write(c, tenant_key, items))
        return await self._access.several(lambda c: _write(c, tenant_key, items))

    async def derive(
        self,
        tenant_key: str,
        draft: Draft,
        sources: Sequence[UUID],
        artefacts: Sequence[tuple[str, str]] = (),
    ) -> Record:
        """See :meth:`memory.ports.Store.derive`."""
        if draft.record_key is None and not artefacts:
            items = [Placed(draft=draft)]
            work = self._access.single(lambda c: writes.write(c, tenant_key, items, sources))
            return (await work)[0]

        async def work_of_several(connection: AsyncConnection) -> Record:
            await tenancy.enter(connection, tenant_key)
            (item,) = await _placed(connection, tenant_key, [draft])
            (record,) = await writes.write(connection, tenant_key, [item], sources)
            if artefacts:
                await writes.register(connection, tenant_key, artefacts, [draft.record_id])
            return record

        return await self._access.several(work_of_several)

    async def supersede(self, tenant_key: str, record_id: UUID, draft: Draft) -> Record:
        """See :meth:`memory.ports.Store.supersede`."""

        async def work(connection: AsyncConnection) -> Record:
            await tenancy.enter(connection, tenant_key)
            old = (await reads.by_ids(connection, tenant_key, [record_id])).get(record_id)
            if old is None:
                raise UnknownRecordError("record_id: no such record")
            # This version and no other: a newer one may have come since it was read.
            if not await writes.supersede(connection, tenant_key, [record_id]):
                raise ConflictError("record_id: a newer version has taken its place")
            item = Placed(draft=draft, version=old.version + 1)
            return (await writes.write(connection, tenant_key, [item]))[0]

        return await self._access.several(work)

    async def postpone(
        self, tenant_key: str, record_ids: Sequence[UUID], expires_at: datetime, now: datetime
    ) -> int:
        """See :meth:`memory.ports.Store.postpone`."""

        async def work(connection: AsyncConnection) -> int:
            await tenancy.enter(connection, tenant_key)
            return await writes.postpone(connection, tenant_key, record_ids, expires_at, now)

        return await self._access.several(work)

    async def relate(self, tenant_key: str, record_id: UUID, subjects: Sequence[Subject]) -> Record:
        """See :meth:`memory.ports.Store.relate`."""

        async def work(connection: AsyncConnection) -> Record:
            await tenancy.enter(connection, tenant_key)
            await writes.relate(connection, tenant_key, record_id, subjects)
            found = await reads.by_ids(connection, tenant_key, [record_id])
            if record_id not in found:
                raise UnknownRecordError("record_id: no such record")
            return found[record_id]

        return await self._access.several(work)

    async def register(
        self, tenant_key: str, adapter: str, artefact_id: str, sources: Sequence[UUID]
    ) -> None:
        """See :meth:`memory.ports.Store.register`."""

        async def work(connection: AsyncConnection) -> None:
            await tenancy.enter(connection, tenant_key)
            await writes.register(connection, tenant_key, [(adapter, artefact_id)], sources)

        await self._access.several(work)


async def _write(
    connection: AsyncConnection, tenant_key: str, items: Sequence[Placed]
) -> list[Record]:
    """Write in chunks, so that memory does not grow with the batch."""
    records: list[Record] = []
    for start in range(0, len(items), _CHUNK):
        records += await writes.write(connection, tenant_key, items[start : start + _CHUNK])
    return records


async def _remember(
    connection: AsyncConnection, tenant_key: str, drafts: Sequence[Draft]
) -> list[Record]:
    """Store drafts that may be retries or new versions."""
    await tenancy.enter(connection, tenant_key)
    named = [draft.record_id for draft in drafts if draft.own_id]
    stored = await reads.by_ids(connection, tenant_key, named) if named else {}
    direct = await reads.direct_subjects(connection, tenant_key, list(stored)) if stored else {}
    known = {key: (record, direct[key]) for key, record in stored.items()}
    fresh = []
    for draft in drafts:
        if draft.record_id not in known:
            record = recorded(tenant_key, Placed(draft=draft), draft.occurred_at)
            known[draft.record_id] = (record, frozenset(record.subject_keys))
            fresh.append(draft)
        elif not same_content(*known[draft.record_id], draft):
            raise ConflictError("record_id: already holds other content")
    items = await _placed(connection, tenant_key, fresh)
    written = {record.record_id: record for record in await _write(connection, tenant_key, items)}
    return [(stored | written)[draft.record_id] for draft in drafts]


async def _stored(
    connection: AsyncConnection, tenant_key: str, drafts: Sequence[Draft]
) -> list[Record] | None:
    """Return the records if all of them are there with the content of the drafts."""
    await tenancy.enter(connection, tenant_key)
    stored = await reads.by_ids(connection, tenant_key, [draft.record_id for draft in drafts])
    direct = await reads.direct_subjects(connection, tenant_key, list(stored))
    for draft in drafts:
        record = stored.get(draft.record_id)
        if record is None or not same_content(record, direct[draft.record_id], draft):
            return None
    return [stored[draft.record_id] for draft in drafts]


async def _placed(
    connection: AsyncConnection, tenant_key: str, drafts: Sequence[Draft]
) -> list[Placed]:
    """Give each draft its version, and supersede the versions that were current until now."""
    # An id of the caller's own may be the key of a line that is there already.
    named = (draft for draft in drafts if draft.record_key is not None or draft.own_id)
    keys = sorted({line(draft) for draft in named})
    heads = await reads.heads(connection, tenant_key, keys) if keys else {}
    current = [head.record_id for head in heads.values() if head.current]
    if current and not await writes.supersede(connection, tenant_key, current):
        raise ConflictError("record_key: another version came first")
    return placed(drafts, heads)
