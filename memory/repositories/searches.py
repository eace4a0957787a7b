"""Finding records: by meaning, by words, by time; each in one statement, exact over what is there.

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

from memory.database import AnyRow, fetch
from memory.ports import Query
from memory.repositories.conditions import Shape, candidates, values
from memory.repositories.rows import answer, hits
from memory.repositories.tenancy import SETTING
from memory.types import Hit

__all__ = ["POOL", "by_meaning", "by_time", "by_words", "count_others", "holds_any", "pool"]

POOL: Final = 10_000
"""Most candidates that are ranked in this process where the database has no pgvector."""

# Two vectors share a space: one length, and one model where both are named.
_COMPARABLE: Final = """
    r.embedding_dims = cardinality($4::real[])
    and coalesce(r.embedding_model = $5::text, true)
"""


@lru_cache
def _by_meaning(shape: Shape, extension: str) -> str:
    return answer(f"""
    with c as materialized (
        select r.record_id, case when {_COMPARABLE} then
            r.embedding::{extension}.vector operator({extension}.<=>)
            (select $4::real[]::{extension}.vector)
        end as distance
        from {candidates(shape, first=7)}
            and r.embedding is not null
    )
    select
        c.record_id,
        1 - c.distance as score,
        (select count(*) from c as other where other.distance is null) as skipped
    from c where c.distance is not null and ($6::float8 is null or 1 - c.distance >= $6)
    order by c.distance, c.record_id desc
    limit $3""")


async def by_meaning(
    connection: AsyncConnection, tenant_key: str, query: Query, extension: str
) -> tuple[list[Hit], int]:
    """Rank by cosine similarity with pgvector; return the hits and how many were not compared."""
    shape = Shape.of(query.filters)
    rows = await fetch(
        connection,
        _by_meaning(shape, extension),
        tenant_key,
        query.filters.now,
        query.limit,
        query.embedding,
        query.embedding_model,
        query.min_score,
        *values(query.filters),
    )
    return hits(tenant_key, rows), rows[0].skipped if rows else 0


@lru_cache
def _count_others(shape: Shape) -> str:
    return f"""
{SETTING}
select n.others from s
cross join lateral (
    select count(*) as others
    from {candidates(shape, first=6)}
        and r.embedding is not null and not ({_COMPARABLE})
        and ($3::integer is not null)
    limit 1
) as n
"""


async def count_others(connection: AsyncConnection, tenant_key: str, query: Query) -> int:
    """Count the candidates that were embedded by another model."""
    shape = Shape.of(query.filters)
    rows = await fetch(
        connection,
        _count_others(shape),
        tenant_key,
        query.filters.now,
        query.limit,
        query.embedding,
        query.embedding_model,
        *values(query.filters),
    )
    return int(rows[0].others)


@lru_cache
def _pool(shape: Shape) -> str:
    return f"""
{SETTING}
select p.record_id, p.embedding, p.embedding_model from s
cross join lateral (
    select r.record_id, r.embedding, r.embedding_model
    from {candidates(shape, first=4)}
        and r.embedding is not null
    order by r.record_id desc
    limit $3
) as p
"""


async def pool(connection: AsyncConnection, tenant_key: str, query: Query) -> list[AnyRow]:
    """Return the newest candidates with their vectors, one more than the pool if there are more."""
    return await fetch(
        connection,
        _pool(Shape.of(query.filters)),
        tenant_key,
        query.filters.now,
        POOL + 1,
        *values(query.filters),
    )


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
