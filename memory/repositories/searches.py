"""Finding records by words and by time; each in one statement, exact over what is there.

The person comes first: with subjects only their records are read, through the link table. What a
generic plan does with ``= any (subjects)`` and an ``order by distance`` is left no choice: the
candidates are materialised and everything else is probed by its full key. ``memory.each`` stands
for ``unnest``, whose estimate of a parameter makes every generic plan look dear, so that the
server would plan each call anew, which takes longer than running it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import fetch
from memory.ports import Query
from memory.repositories.conditions import Shape, candidates, values
from memory.repositories.rows import answer, hits
from memory.repositories.tenancy import SETTING
from memory.types import Hit

__all__ = ["by_time", "by_words", "holds_any"]

_PRESENT: Final = """
        cross join lateral (
            select count(*) as present from memory.postings as p
            where p.tenant_key = s.t and p.record_id = r.record_id and p.term = any ($4::text[])
            offset 0
        ) as n"""


@lru_cache
def _by_words(shape: Shape) -> str:
    if shape.subjects:
        matched = f"""
            select r.record_id, n.present
            from {candidates(shape, first=6, joined=_PRESENT)} and n.present > 0
        """
    else:
        matched = f"""
            select h.record_id, h.present
            from (
                select p.record_id, count(*) as present from memory.postings as p
                where p.tenant_key = s.t and p.term = any ($4::text[])
                group by p.record_id
                order by count(*) desc, p.record_id desc offset 0
            ) as h
            cross join lateral (
                select from {candidates(shape, first=6)}
                    and r.record_id = h.record_id offset 0
            ) as visible
        """
    return answer(f"""
    select
        m.record_id,
        m.present::float8 / cardinality($4::text[]) as score,
        0 as skipped
    from ({matched}) as m
    where $5::float8 is null or m.present::float8 / cardinality($4::text[]) >= $5
    order by m.present desc, m.record_id desc
    limit $3""")


async def by_words(connection: AsyncConnection, tenant_key: str, query: Query) -> list[Hit]:
    """Rank by the share of the query's distinct terms that a record holds."""
    rows = await fetch(
        connection,
        _by_words(Shape.of(query.filters)),
        tenant_key,
        query.filters.now,
        query.limit,
        list(query.terms),
        query.min_score,
        *values(query.filters),
    )
    return hits(tenant_key, rows)


@lru_cache
def _by_time(shape: Shape) -> str:
    return answer(f"""
    select
        r.record_id,
        0::float8 as score,
        0 as skipped
    from {candidates(shape, first=4)}
    order by r.occurred_at desc, r.record_id desc
    limit $3""")


async def by_time(connection: AsyncConnection, tenant_key: str, query: Query) -> list[Hit]:
    """Return the newest records by the time they occurred."""
    rows = await fetch(
        connection,
        _by_time(Shape.of(query.filters)),
        tenant_key,
        query.filters.now,
        query.limit,
        *values(query.filters),
    )
    found = hits(tenant_key, rows)
    return sorted(found, key=lambda hit: hit.record.occurred_at, reverse=True)


_HOLDS_ANY: Final = f"""
{SETTING}
select r.record_id from s
cross join lateral (
    select r.record_id from memory.records as r where r.tenant_key = s.t limit 1
) as r
"""


async def holds_any(connection: AsyncConnection, tenant_key: str) -> bool:
    """Say whether the tenant holds any record at all."""
    return bool(await fetch(connection, _HOLDS_ANY, tenant_key))
