"""The store on PostgreSQL: isolation, cascade and evidence are the database's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Self
from uuid import UUID

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from memory import fingerprint
from memory.database import Access, JoinedAccess, OwnAccess, open_engine
from memory.errors import (
    ConflictError,
    InstallError,
    InvalidInputError,
    StoreUnavailableError,
    UnknownRecordError,
)
from memory.ports import DerivedIndex, Draft, Filters, Found, Order, Query, Subject
from memory.repositories import erasures, purges, reads, tenancy, writes
from memory.stores.draining import drain
from memory.stores.finding import find
from memory.types import Capabilities, Purged, Readiness, Receipt, Record, Tombstone
from memory.versions import Placed, line, placed, recorded, same_content

__all__ = ["PostgresStore"]

_CHUNK: Final = 1_000


class PostgresStore:
    """Keeps records in PostgreSQL 15 to 18, with or without pgvector.

    ``source`` is a URL or an ``AsyncEngine`` of the host's (asyncpg); an engine made from a URL is
    closed by :meth:`close`. Connect as a role that ``memory.grant_app`` was called for, never as
    a superuser: a superuser bypasses row level security. ``pooler=True`` is for PgBouncer in
    transaction mode; a host's own engine must then be set up for it.
    """

    def __init__(
        self, source: AsyncEngine | AsyncConnection | URL | str, *, pooler: bool = False
    ) -> None:
        self._own: AsyncEngine | None = None
        self._measured: tuple[Capabilities, str | None] | None = None
        self._access: Access
        if isinstance(source, AsyncConnection):
            self._access = JoinedAccess(source)
            return
        if not isinstance(source, AsyncEngine | URL | str):
            raise InvalidInputError("source", "must be a URL or an engine of create_async_engine")
        if not isinstance(source, AsyncEngine):
            source = self._own = open_engine(source, pooler=pooler)
        self._access = OwnAccess(source, pooler=pooler)

    @classmethod
    def joined(cls, connection: AsyncConnection) -> Self:
        """Return a store that works inside the caller's transaction and commits nothing.

        No external index is called: purges wait until ``purge_outstanding`` on a store with
        transactions of its own. What asks for a retry is a ``RetryableError``: the caller repeats
        the whole transaction.
        """
        if not isinstance(connection, AsyncConnection):
            raise InvalidInputError(
                "connection", "must be an AsyncConnection; a session has one: .connection()"
            )
        return cls(connection)

    @property
    def calls_indexes(self) -> bool:
        """Whether external indexes may be called: not inside the caller's transaction."""
        return not self._access.joined

    async def claim(self, pepper_check: str) -> None:
        """See :meth:`memory.ports.Store.claim`."""
        if await self._access.single(lambda c: tenancy.claim(c, pepper_check)):
            return
        none = fingerprint.pepper_check(b"")
        without = await self._access.single(lambda c: tenancy.recorded(c, none))
        raise InstallError(fingerprint.pepper_problem(pepper_check, first_without=without))

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

    async def get(self, tenant_key: str, record_id: UUID, now: datetime) -> Record | None:
        """See :meth:`memory.ports.Store.get`."""
        return await self._access.single(lambda c: reads.get(c, tenant_key, record_id, now))

    async def history(self, tenant_key: str, record_key: str, now: datetime) -> list[Record]:
        """See :meth:`memory.ports.Store.history`."""
        return await self._access.single(lambda c: reads.history(c, tenant_key, record_key, now))

    async def records(
        self, tenant_key: str, filters: Filters, after: UUID | None, limit: int
    ) -> list[Record]:
        """See :meth:`memory.ports.Store.records`."""
        return await self._access.single(lambda c: reads.page(c, tenant_key, filters, after, limit))

    async def search(self, tenant_key: str, query: Query) -> Found:
        """See :meth:`memory.ports.Store.search`."""
        if query.strategy != "vector":
            return await find(self._access, tenant_key, query, None)
        _, extension = self._measured or await self._measure()
        try:
            return await find(self._access, tenant_key, query, extension)
        except InstallError:
            _, moved = await self._measure()
            if moved == extension:
                raise
        # pgvector went, or to another schema, since it was measured.
        return await find(self._access, tenant_key, query, moved)

    async def erase(self, tenant_key: str, order: Order) -> Receipt:
        """See :meth:`memory.ports.Store.erase`; the caller's transaction is READ COMMITTED."""
        sealed = not self._access.joined
        return await self._access.several(
            lambda c: erasures.forget(c, tenant_key, order, sealed=sealed)
        )

    async def tombstones(self, tenant_key: str, limit: int) -> list[Tombstone]:
        """See :meth:`memory.ports.Store.tombstones`."""
        return await self._access.single(lambda c: erasures.tombstones(c, tenant_key, limit))

    async def register(
        self, tenant_key: str, adapter: str, artefact_id: str, sources: Sequence[UUID]
    ) -> None:
        """See :meth:`memory.ports.Store.register`."""

        async def work(connection: AsyncConnection) -> None:
            await tenancy.enter(connection, tenant_key)
            await writes.register(connection, tenant_key, [(adapter, artefact_id)], sources)

        await self._access.several(work)

    async def purge(self, tenant_key: str, indexes: Mapping[str, DerivedIndex]) -> Purged:
        """See :meth:`memory.ports.Store.purge`."""
        owed = await self._access.single(lambda c: purges.owing(c, tenant_key))
        able = {name: indexes[name] for name in owed if name in indexes}
        settled = await drain(self._access, tenant_key, able) if self.calls_indexes else 0
        outstanding = await self._access.single(lambda c: purges.owing(c, tenant_key))
        return Purged(settled=settled, adapters=owed, outstanding=outstanding)

    async def capabilities(self) -> Capabilities:
        """See :meth:`memory.ports.Store.capabilities`."""
        return (await self._measure())[0]

    async def _measure(self) -> tuple[Capabilities, str | None]:
        self._measured = await self._access.single(tenancy.measure)
        return self._measured

    async def ready(self, pepper_check: str) -> Readiness:
        """See :meth:`memory.ports.Store.ready`; a server that cannot answer is a problem too."""
        try:
            problems = await self._access.single(lambda c: tenancy.problems(c, pepper_check))
        except (InstallError, StoreUnavailableError) as error:
            problems = (str(error),)
        return Readiness(ready=not problems, problems=problems)

    async def close(self) -> None:
        """Close the engine that was made from a URL; a host's engine stays open.

        A call after it opens connections again.
        """
        if self._own is not None:
            await self._own.dispose()


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
