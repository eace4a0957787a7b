"""How the PostgreSQL store searches by meaning."""

from __future__ import annotations

from functools import partial

from memory import ranking, vectors
from memory.database import Access
from memory.ports import Found, Query
from memory.repositories import meaning, reads
from memory.types import Hit

__all__ = ["find"]


async def find(access: Access, tenant_key: str, query: Query, extension: str | None) -> Found:
    """Search by vector; ``extension`` is the schema of pgvector, if there is one."""
    if extension is None:
        return await _in_process(access, tenant_key, query)
    return await _with_pgvector(access, tenant_key, query, extension)


async def _with_pgvector(access: Access, tenant_key: str, query: Query, extension: str) -> Found:
    hits, skipped = await access.single(
        lambda c: meaning.by_meaning(c, tenant_key, query, extension)
    )
    if not hits:
        skipped = await access.single(lambda c: meaning.count_others(c, tenant_key, query))
    how = f"{ranking.HOW['vector']}, in PostgreSQL with pgvector"
    return Found(hits=tuple(hits), exact=True, how=how, skipped=skipped)


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
