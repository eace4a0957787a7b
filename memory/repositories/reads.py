"""Reading records one by one, by line of versions, and page by page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.ports import Filters
from memory.repositories.conditions import Shape, beyond, candidates, values
from memory.repositories.rows import COLUMNS, LINKS, NAMED, record
from memory.repositories.tenancy import SETTING
from memory.types import Record
from memory.versions import Head

__all__ = ["by_ids", "direct_subjects", "get", "heads", "history", "keys", "page"]

_BY_IDS: Final = f"""
{SETTING}
select {COLUMNS}, {LINKS}
from s {NAMED}"""


async def by_ids(
    connection: AsyncConnection, tenant_key: str, record_ids: Sequence[UUID]
) -> dict[UUID, Record]:
    """Return the records that are there, superseded and expired ones too."""
    rows = await fetch(connection, _BY_IDS, tenant_key, list(record_ids), len(record_ids))
    return {row.record_id: record(tenant_key, row) for row in rows}


async def get(
    connection: AsyncConnection, tenant_key: str, record_id: UUID, now: datetime
) -> Record | None:
    """Return one record unless it is absent or expired."""
    found = (await by_ids(connection, tenant_key, [record_id])).get(record_id)
    expired = found is not None and found.expires_at is not None and found.expires_at <= now
    return None if expired else found


_HISTORY: Final = f"""
{SETTING}
select {COLUMNS}, {LINKS}
from s
cross join lateral (
    select r.* from memory.records as r
    where r.tenant_key = s.t
        and (r.record_key = $2 or (r.record_id = $3 and r.record_key is null))
        and (r.expires_at is null or r.expires_at > $4 or $4::timestamptz is null)
    order by r.version desc
    limit 1000000
) as r
order by r.version desc
"""


async def history(
    connection: AsyncConnection, tenant_key: str, record_key: str, now: datetime | None
) -> list[Record]:
    """Return the versions under a key, newest first; a record without one is keyed by its id.

    Without a time expired ones too.
    """
    rows = await fetch(connection, _HISTORY, tenant_key, record_key, _own_key(record_key), now)
    return [record(tenant_key, row) for row in rows]


def _own_key(record_key: str) -> UUID | None:
    try:
        found = UUID(record_key)
    except ValueError:
        return None
    return found if str(found) == record_key else None


_KEYS: Final = f"""
{SETTING}
select k.record_key
from s
cross join lateral (
    select r.record_key from memory.records as r
    where r.tenant_key = s.t and r.record_key > $2::text and r.record_key >= $3::text
        and r.record_key < $4::text and r.superseded_at is null
        and (r.expires_at is null or r.expires_at > $5)
    order by r.record_key
    limit $6
) as k
order by k.record_key
"""


async def keys(
    connection: AsyncConnection,
    tenant_key: str,
    prefix: str,
    after: str,
    now: datetime,
    limit: int,
) -> list[str]:
    """Return the keys of current records, ascending, as one walk along their index."""
    # The greater of the two bounds is where the walk begins; the other only filters.
    values = (after, prefix, beyond(prefix), now, limit)
    rows = await fetch(connection, _KEYS, tenant_key, *values)
    return [row.record_key for row in rows]


@lru_cache
def _page(shape: Shape) -> str:
    return f"""
{SETTING}
select {COLUMNS}, {LINKS}
from s
cross join lateral (
    select r.* from {candidates(shape, first=5)} and ($3::uuid is null or r.record_id < $3)
    order by r.record_id desc
    limit $4
) as r
order by r.record_id desc
"""


async def page(
    connection: AsyncConnection, tenant_key: str, filters: Filters, after: UUID | None, limit: int
) -> list[Record]:
    """Return records by id descending, from below ``after``."""
    statement = _page(Shape.of(filters))
    rows = await fetch(
        connection, statement, tenant_key, filters.now, after, limit, *values(filters)
    )
    return [record(tenant_key, row) for row in rows]


_HEADS: Final = """
select u.key, h.record_id, h.version, h.superseded_at is null as current
from unnest($2::text[], $3::uuid[]) as u (key, id)
cross join lateral (
    (
        select r.record_id, r.version, r.superseded_at from memory.records as r
        where r.tenant_key = $1 and r.record_key = u.key
    )
    union all
    (
        select r.record_id, r.version, r.superseded_at from memory.records as r
        where r.tenant_key = $1 and r.record_id = u.id and r.record_key is null
    )
    order by version desc limit 1
) as h
"""


async def heads(
    connection: AsyncConnection, tenant_key: str, record_keys: Sequence[str]
) -> dict[str, Head]:
    """Return the newest version under each key that has one."""
    ids = [_own_key(key) for key in record_keys]
    rows = await fetch(connection, _HEADS, tenant_key, list(record_keys), ids)
    return {
        row.key: Head(record_id=row.record_id, version=row.version, current=row.current)
        for row in rows
    }


_DIRECT: Final = """
select l.record_id, array_agg(l.subject_key) as subject_keys
from unnest($2::uuid[]) as u (id)
cross join lateral (
    select l.record_id, l.subject_key from memory.record_subjects as l
    where l.tenant_key = $1 and l.record_id = u.id and not l.inherited offset 0
) as l
group by l.record_id
"""


async def direct_subjects(
    connection: AsyncConnection, tenant_key: str, record_ids: Sequence[UUID]
) -> dict[UUID, frozenset[str]]:
    """Return whom these records are directly about."""
    rows = await fetch(connection, _DIRECT, tenant_key, list(record_ids))
    return {row.record_id: frozenset(row.subject_keys) for row in rows}
