"""What external indexes still owe, by index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import entries, validation
from memory.certifiable import IndexState
from memory.database import Access, AnyRow, fetch
from memory.errors import InvalidInputError
from memory.maintenance.walking import Source, opened, tenants
from memory.repositories import tenancy

__all__ = ["Owed", "debts", "owed", "purges_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Owed:
    """The ``artefacts`` that one index has not confirmed, the oldest of them asked for ``since``.

    ``attempts`` is the most that one of them has failed, ``last_error`` the class of that failure;
    ``next_try_at`` is when a worker asks for the first of them again, None: at once.
    """

    adapter: str
    artefacts: int
    since: datetime
    attempts: int
    last_error: str | None
    next_try_at: datetime | None


_OWED: Final = """
select p.adapter, count(*) as artefacts, min(p.requested_at) as since,
    max(p.attempts) as attempts,
    (array_agg(p.last_error order by p.attempts desc))[1] as last_error,
    nullif(min(coalesce(p.next_try_at, '-infinity')), '-infinity') as next_try_at
from memory.purges as p where p.tenant_key = $1 group by p.adapter
"""


async def owed(engine_or_url: Source, *, tenant_key: str | None = None) -> tuple[Owed, ...]:
    """Return what is owed, by index name: of one tenant, or as the owner of the schema, of all."""
    one = None if tenant_key is None else validation.tenant(tenant_key)
    found: dict[str, Owed] = {}
    async with opened(engine_or_url) as access:
        async for item in debts(access, one):
            known = found.get(item.adapter)
            found[item.adapter] = item if known is None else _both(known, item)
    return tuple(found[name] for name in sorted(found))


_OF_ERASURE: Final = """
with done as (
    select r.adapter, sum(r.artefacts)::bigint as purged, max(r.purged_at) as purged_at
    from memory.purge_receipts as r where r.tenant_key = $1 and r.erasure_id = $2
    group by r.adapter
), people as (
    select coalesce($3::text[], array(
        select distinct t.subject_hash from memory.tombstones as t
        where t.tenant_key = $1 and t.erasure_id = $2
    )) as hashes
), open as (
    select p.adapter, count(*) as owed from memory.purges as p cross join people as w
    where p.tenant_key = $1 and (p.erasure_id = $2 or p.subject_hashes && w.hashes)
    group by p.adapter
)
select adapter, coalesce(done.purged, 0) as purged, done.purged_at, coalesce(open.owed, 0) as owed
from done full join open using (adapter) order by adapter
"""


async def purges_of(
    engine_or_url: Source,
    *,
    tenant_key: str,
    erasure_id: UUID | str,
    subject_hash: str | None = None,
) -> tuple[IndexState, ...]:
    """Return what each external index has purged of an erasure, and what it still owes.

    As the application's role, or the owner. Owed is also what another erasure left of copies made
    from the person's records: of the person whose ``subject_hash`` a tombstone has, or else of all
    whom the erasure's tombstones name. Raises ``InvalidInputError``.

    >>> from uuid import uuid4
    >>> from memory import maintenance
    >>> await maintenance.purges_of(owner_url, tenant_key="shop", erasure_id=uuid4())
    ()
    """
    key, erasure = validation.tenant(tenant_key), validation.record_id(erasure_id, "erasure_id")
    if subject_hash is not None and not entries.is_hash(subject_hash):
        raise InvalidInputError("subject_hash", "must be 64 hexadecimal digits")
    people = None if subject_hash is None else [subject_hash]

    async def read(connection: AsyncConnection) -> list[AnyRow]:
        await tenancy.enter(connection, key)
        return list(await fetch(connection, _OF_ERASURE, key, erasure, people))

    async with opened(engine_or_url) as access:
        return tuple(IndexState(**row._mapping) for row in await access.several(read))


async def debts(access: Access, tenant_key: str | None = None) -> AsyncIterator[Owed]:
    """Yield what is owed by tenant and index: of one tenant, or as the owner, of all."""
    keys = [tenant_key] if tenant_key is not None else [key async for key in tenants(access)]
    for key in keys:
        for row in await access.several(partial(_read, tenant_key=key)):
            yield Owed(**row._mapping)


async def _read(connection: AsyncConnection, tenant_key: str) -> list[AnyRow]:
    await tenancy.enter(connection, tenant_key)
    return list(await fetch(connection, _OWED, tenant_key))


def _both(one: Owed, other: Owed) -> Owed:
    worse = max(one, other, key=lambda item: item.attempts)
    tries = (one.next_try_at, other.next_try_at)
    return Owed(
        adapter=one.adapter,
        artefacts=one.artefacts + other.artefacts,
        since=min(one.since, other.since),
        attempts=worse.attempts,
        last_error=worse.last_error,
        next_try_at=None if None in tries else min(time for time in tries if time is not None),
    )
