"""How the PostgreSQL store searches by meaning, and what it says about it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from memory import ranking, vectors
from memory.database import Access
from memory.errors import StoreUnavailableError
from memory.ports import Found, Query
from memory.repositories import across, meaning, reads
from memory.repositories.measuring import Measured
from memory.turns import Turns
from memory.types import Hit, VectorIndex

__all__ = ["FEW", "best_of", "find"]

FEW: Final = 10_000
"""So many candidates are compared one by one where an index would do: it takes about 25 ms."""

# Values of vectors that are fetched at a time to be compared in this process.
_VALUES: Final = 1_000_000
_INTERNAL: Final = "XX000"  # PostgreSQL's internal_error, which pgvector raises
_EXACT: Final = f"{ranking.HOW['vector']}, in PostgreSQL with pgvector"


async def find(access: Access, tenant_key: str, query: Query, measured: Measured) -> Found:
    """Search by vector, in the way that what was measured allows."""
    if measured.extension is None:
        return await _in_process(access, tenant_key, query)
    if query.filters.narrow:
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
        if found is not None and not found.exact:
            how += ", through an HNSW index: the nearest may be missing"
        if found is None or found.hits is None:
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
) -> across.Across | None:
    """Search with the index at hand, on connections that are set up for it.

    None if pgvector gives up: a scan fails where vacuum removes the entry that it has come to.
    """

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

    try:
        if access.steered:
            return await access.single(search)
        return await access.several(apart if access.joined else steered)
    except StoreUnavailableError as error:
        if error.sqlstate != _INTERNAL:
            raise
    return None


async def _in_process(access: Access, tenant_key: str, query: Query) -> Found:
    """Rank a bounded pool of the newest candidates here."""
    compared, seen = await _compared(access, tenant_key, query)
    scored = ranking.at_least(compared, query.min_score)
    hits = await best_of(access, tenant_key, scored, query.limit)
    bounded = seen > meaning.POOL
    how = f"{ranking.HOW['vector']}, in this process"
    if bounded:
        how += f" over the newest {meaning.POOL:,} candidates only"
    return Found(
        hits=hits,
        exact=not bounded,
        how=how,
        skipped=min(seen, meaning.POOL) - len(compared),
    )


async def best_of(
    access: Access, tenant_key: str, scored: Iterable[tuple[float, UUID]], limit: int
) -> tuple[Hit, ...]:
    """Return the best as hits; what was erased since it was scored gives way to the next."""
    left = list(scored)
    while chosen := ranking.best(left, limit):
        ids = [record_id for _, record_id in chosen]
        records = await access.single(partial(reads.by_ids, tenant_key=tenant_key, record_ids=ids))
        gone = set(ids) - records.keys()
        if not gone:
            return tuple(Hit(record=records[item], score=score) for score, item in chosen)
        left = [item for item in left if item[1] not in gone]
    return ()


async def _compared(
    access: Access, tenant_key: str, query: Query
) -> tuple[list[tuple[float, UUID]], int]:
    """Return the cosines of the pool, and how many candidates were seen: one more where it ends.

    In portions, since a value takes 32 bytes here, and not at one go: others have their turns.
    """
    asked = query.embedding or ()
    square = vectors.square(asked)
    portion = max(1, _VALUES // len(asked))
    turns = Turns()
    compared: list[tuple[float, UUID]] = []
    seen, below = 0, None
    while seen <= meaning.POOL:
        most = min(portion, meaning.POOL + 1 - seen)
        rows = await access.single(
            partial(meaning.pool, tenant_key=tenant_key, query=query, below=below, most=most)
        )
        for row in rows[: meaning.POOL - seen]:
            await turns.give()
            if row.embedding is not None:
                squares = square * vectors.square(row.embedding)
                score = vectors.cosine(asked, row.embedding, squares)
                compared.append((score, row.record_id))
        seen += len(rows)
        if len(rows) < most:
            break
        below = rows[-1].record_id
    return compared, seen
