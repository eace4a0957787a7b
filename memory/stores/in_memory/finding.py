"""Searching a shelf: every row within the filters is scored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from uuid import UUID

from memory import ranking, vectors
from memory.ports import Found, Query
from memory.stores.in_memory.shelf import Row, Shelf, copied
from memory.types import Hit

__all__ = ["find"]

_Scored = list[tuple[float, UUID]]


def find(shelf: Shelf, query: Query) -> Found:
    """Search by the query's strategy; see :mod:`memory.ranking` for the scores."""
    rows = [row for row in shelf.rows.values() if row.matches(query.filters)]
    exact, how = True, ranking.HOW[query.strategy]
    if query.strategy == "recent":
        times = ((row.record.occurred_at, row.record.record_id) for row in rows)
        scored: _Scored = [(0.0, item) for _, item in ranking.best(times, query.limit)]
    elif query.strategy == "hybrid":
        depth = max(query.depth, query.limit)
        scored, exact = _hybrid(shelf, rows, query, depth)
        how = ranking.candidates_note(depth)
    else:
        scored = _best(_scored(shelf, rows, query), query)
    return Found(
        hits=tuple(
            Hit(record=copied(shelf.rows[item].record), score=score) for score, item in scored
        ),
        exact=exact,
        how=how,
        skipped=sum(_skipped(row, query) for row in rows),
        holds_any=bool(shelf.rows),
    )


def _best(scored: _Scored, query: Query) -> _Scored:
    return ranking.best(ranking.at_least(scored, query.min_score), query.limit)


def _scored(shelf: Shelf, rows: Sequence[Row], query: Query) -> _Scored:
    if query.strategy == "vector":
        return _cosine(rows, query)
    if query.strategy == "keyword":
        return _keyword(shelf, rows, query)
    scored = ((ranking.lexical_score(query.terms, row.terms), row) for row in rows)
    return [(score, row.record.record_id) for score, row in scored if score > 0]


def _keyword(shelf: Shelf, rows: Iterable[Row], query: Query) -> _Scored:
    everything = shelf.rows.values()
    holding = {term: sum(term in row.terms for row in everything) for term in query.terms}
    weights = {
        term: ranking.idf(len(everything), count) for term, count in holding.items() if count
    }
    mean = max(sum(row.length for row in everything), 1) / max(len(everything), 1)
    scored = ((ranking.bm25(weights, row.terms, row.length, mean), row) for row in rows)
    return [(score, row.record.record_id) for score, row in scored if score > 0]


def _hybrid(shelf: Shelf, rows: Sequence[Row], query: Query, depth: int) -> tuple[_Scored, bool]:
    """Fuse the best of both sides; exact where neither side had to leave any out."""
    words, meaning = _keyword(shelf, rows, query), _cosine(rows, query)
    chosen = {item for side in (words, meaning) for _, item in ranking.best(side, depth)}
    keyword, cosine = ({item: score for score, item in side} for side in (words, meaning))
    candidates = {item: (keyword.get(item, 0.0), cosine.get(item)) for item in chosen}
    adjacent = _adjacent(shelf, chosen) if query.neighbours else ()
    fused = ranking.fuse(candidates, neighbours=query.neighbours, adjacent=adjacent)
    exact = len(words) < depth and len(meaning) < depth
    return _best(fused, query), exact


def _adjacent(shelf: Shelf, chosen: Collection[UUID]) -> list[tuple[UUID, UUID]]:
    """Return each chosen record beside the turn before and after it about one of its people."""
    people = {key for item in chosen for key in shelf.rows[item].direct}
    found = []
    for key in people:
        turns = sorted(item for item, row in shelf.rows.items() if key in row.direct)
        found += [
            (one, other)
            for before, after in pairwise(turns)
            for one, other in ((before, after), (after, before))
            if one in chosen
        ]
    return found


def _cosine(rows: Sequence[Row], query: Query) -> _Scored:
    asked = query.embedding or ()
    square = vectors.square(asked)
    return [
        (vectors.cosine(asked, row.embedding, square * row.square), row.record.record_id)
        for row in rows
        if row.embedding is not None and not _skipped(row, query)
    ]


def _skipped(row: Row, query: Query) -> bool:
    """Say whether the row was embedded by another model than the query."""
    return (
        query.embedding is not None
        and row.embedding is not None
        and not vectors.comparable(
            query.embedding_model,
            len(query.embedding),
            row.record.embedding_model,
            len(row.embedding),
        )
    )
