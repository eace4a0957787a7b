"""How the PostgreSQL store searches by meaning, and what it says about it."""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import ranking, vectors
from memory.database import Access
from memory.ports import Found, Query
from memory.repositories import across, meaning, reads
from memory.repositories.measuring import Measured
from memory.types import Hit, VectorIndex

__all__ = ["FEW", "find"]

FEW: Final = 10_000
"""So many candidates are compared one by one where an index would do: it takes about 25 ms."""

_EXACT: Final = f"{ranking.HOW['vector']}, in PostgreSQL with pgvector"


async def find(access: Access, tenant_key: str, query: Query, measured: Measured) -> Found:
    """Search by vector, in the way that what was measured allows."""
    if measured.extension is None:
        return await _in_process(access, tenant_key, query)
    if query.filters.subject_keys:
        return await _by_person(access, tenant_key, query, measured.extension)
    index = measured.indexes.get(len(query.embedding or ()))
    return await _across(access, tenant_key, query, measured.extension, index)


async def _by_person(access: Access, tenant_key: str, query: Query, extension: str) -> Found:
    hits, skipped = await access.single(
        lambda c: meaning.by_person(c, tenant_key, query, extension)
    )
    if not hits:
        skipped = await access.single(lambda c: meaning.count_others(c, tenant_key, query))
    return Found(hits=tuple(hits), exact=True, how=_EXACT, skipped=skipped)


async def _across(
    access: Access, tenant_key: str, query: Query, extension: str, index: VectorIndex | None
) -> Found:
    """Compare all candidates where they are few or there is no index; else ask the index first."""
    how = _EXACT
    found = None
    if index is not None:
        found = await _through(access, tenant_key, query, extension, index)
        if not found.exact:
            how += ", through an HNSW index: the nearest may be missing"
        if found.hits is None:
            found, how = None, f"{_EXACT}; the HNSW index did not suffice"
    if found is None:
        found = await access.single(lambda c: across.across(c, tenant_key, query, extension))
    return Found(
        hits=tuple(found.hits or ()),
        exact=found.exact,
        how=how,
        skipped=found.skipped,
        more=found.more,
    )


async def _through(
    access: Access, tenant_key: str, query: Query, extension: str, index: VectorIndex
) -> across.Across:
    """Search with the index at hand, on connections that are set up for it."""

    async def search(connection: AsyncConnection) -> across.Across:
        return await across.across(connection, tenant_key, query, extension, index, FEW)

    async def steered(connection: AsyncConnection) -> across.Across:
        await across.steer(connection)
        return await search(connection)

    async def apart(connection: AsyncConnection) -> across.Across:
        # Undone, so that the caller's transaction goes on with its own settings.
        savepoint = await connection.begin_nested()
        try:
            return await steered(connection)
        finally:
            await savepoint.rollback()

    if access.steered:
        return await access.single(search)
    return await access.several(apart if access.joined else steered)


async def _in_process(access: Access, tenant_key: str, query: Query) -> Found:
    """Rank a bounded pool of the newest candidates here."""
    candidates = await access.single(lambda c: meaning.pool(c, tenant_key, query))
    pool = candidates[: meaning.POOL]
    asked = query.embedding or ()
    length = vectors.norm(asked)
    alike = [
        row
        for row in pool
        if vectors.comparable(
            query.embedding_model, len(asked), row.embedding_model, len(row.embedding)
        )
    ]
    compared = (
        (vectors.cosine(asked, row.embedding, length * vectors.norm(row.embedding)), row.record_id)
        for row in alike
    )
    scored = ranking.best(ranking.at_least(compared, query.min_score), query.limit)
    fetched = partial(
        reads.by_ids, tenant_key=tenant_key, record_ids=[record_id for _, record_id in scored]
    )
    records = await access.single(fetched) if scored else {}
    bounded = len(candidates) > meaning.POOL
    how = f"{ranking.HOW['vector']}, in this process"
    if bounded:
        how += f" over the newest {meaning.POOL:,} candidates only"
    return Found(
        hits=tuple(
            Hit(record=records[record_id], score=score)
            for score, record_id in scored
            if record_id in records
        ),
        exact=not bounded,
        how=how,
        skipped=len(pool) - len(alike),
    )
