"""Finding records by meaning: by person, or as a pool to rank in this process.

Across a tenant, see :mod:`memory.repositories.across`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import AnyRow, fetch
from memory.ports import Query
from memory.repositories.conditions import Shape, candidates, values
from memory.repositories.rows import answer, hits
from memory.repositories.tenancy import SETTING
from memory.types import Hit

__all__ = ["COMPARABLE", "POOL", "by_person", "count_others", "pool"]

POOL: Final = 10_000
"""Most candidates that are ranked in this process where the database has no pgvector."""

COMPARABLE: Final = """
    r.embedding_dims = cardinality($4::real[])
    and coalesce(r.embedding_model = $5::text, true)
"""
"""Two vectors share a space: one length, and one model where both are named."""


@lru_cache
def _by_person(shape: Shape, extension: str) -> str:
    return answer(f"""
    with c as materialized (
        select r.record_id, case when {COMPARABLE} then
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


async def by_person(
    connection: AsyncConnection, tenant_key: str, query: Query, extension: str
) -> tuple[list[Hit], int]:
    """Compare every vector of the people's; return the hits and how many were not compared.

    The second is 0 where there are no hits: see :func:`count_others`.
    """
    rows = await fetch(
        connection,
        _by_person(Shape.of(query.filters), extension),
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
        and r.embedding is not null and not ({COMPARABLE})
        and ($3::integer is not null)
    limit 1
) as n
"""


async def count_others(connection: AsyncConnection, tenant_key: str, query: Query) -> int:
    """Count the people's records that were embedded by another model."""
    rows = await fetch(
        connection,
        _count_others(Shape.of(query.filters)),
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
select p.record_id, p.embedding from s
cross join lateral (
    select r.record_id, case when {COMPARABLE} then r.embedding end as embedding
    from {candidates(shape, first=7)}
        and r.embedding is not null and ($6::uuid is null or r.record_id < $6)
    order by r.record_id desc
    limit $3
) as p
order by p.record_id desc
"""


async def pool(
    connection: AsyncConnection, tenant_key: str, query: Query, below: UUID | None, most: int
) -> list[AnyRow]:
    """Return the newest candidates below an id, each with its vector if that is comparable."""
    return await fetch(
        connection,
        _pool(Shape.of(query.filters)),
        tenant_key,
        query.filters.now,
        most,
        query.embedding,
        query.embedding_model,
        below,
        *values(query.filters),
    )
