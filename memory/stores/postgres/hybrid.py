"""How the PostgreSQL store searches by words and meaning at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from memory import ranking, vectors
from memory.database import Access, AnyRow
from memory.ports import Found, Query
from memory.repositories import hybrid
from memory.repositories.measuring import Measured
from memory.stores.postgres import meaning

__all__ = ["find"]


async def find(access: Access, tenant_key: str, query: Query, measured: Measured) -> Found:
    """Take the best of both sides and fuse the exact scores of all of them."""
    depth = max(query.depth, query.limit)
    sides = replace(query, limit=depth, min_score=None)
    near = await meaning.find(access, tenant_key, replace(sides, strategy="vector"), measured)
    ids = [hit.record.record_id for hit in near.hits]
    rows = await access.single(
        lambda c: hybrid.scores(c, tenant_key, sides, ids, measured.extension)
    )
    candidates = {
        row.record_id: (float(row.score), cosine) for row, cosine in _compared(rows, query)
    }
    adjacent: list[tuple[UUID, UUID]] = []
    if query.neighbours and candidates:
        adjacent = await access.single(lambda c: hybrid.adjacent(c, tenant_key, candidates))
    fused = ranking.fuse(candidates, neighbours=query.neighbours, adjacent=adjacent)
    scored = ranking.at_least(fused, query.min_score)
    hits = await meaning.best_of(access, tenant_key, scored, query.limit)
    by_words = sum(row.way is not None for row in rows)
    return replace(
        near,
        hits=hits,
        exact=near.exact and max(len(ids), by_words) < depth,
        how=f"{ranking.candidates_note(depth)}; by vector: {near.how}",
    )


def _compared(rows: Iterable[AnyRow], query: Query) -> Iterable[tuple[AnyRow, float | None]]:
    """Pair each row with its cosine, computed here where the database has no pgvector."""
    asked = query.embedding or ()
    square = vectors.square(asked)
    for row in rows:
        if "cosine" in row._mapping:
            yield row, row.cosine
            continue
        held = row.embedding
        alike = held is not None and vectors.comparable(
            query.embedding_model, len(asked), row.embedding_model, len(held)
        )
        yield row, vectors.cosine(asked, held, square * vectors.square(held)) if alike else None
