"""How hits are scored and ordered, the same in both stores. Pure.

``lexical``: the share of the query's distinct terms that the record holds; a record with none is
no hit. ``keyword``: BM25. ``vector``: cosine similarity in float64 over float32 values. ``hybrid``:
keyword and vector, each scaled to 0 to 1 over the candidates, and added. ``recent``: newest first
by ``occurred_at``; its hits have no score and say 0.0. Equal ranks go by ``record_id`` descending,
which for UUIDv7 is newest first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

from memory.types import Strategy

__all__ = [
    "BM25_B",
    "BM25_K1",
    "FREQUENCY_MOST",
    "HOW",
    "at_least",
    "best",
    "bm25",
    "candidates_note",
    "fuse",
    "idf",
    "lexical_score",
]

Rank = TypeVar("Rank", float, datetime)

BM25_K1: Final = 1.2
BM25_B: Final = 0.75
"""The parameters of BM25: how soon a repeated term saturates, and how much length counts."""

FREQUENCY_MOST: Final = 32_767
"""A term's frequency is kept up to here, in a smallint."""

# Single precision tells cosines apart no further.
_EQUAL: Final = 1e-6

HOW: Final[Mapping[Strategy, str]] = {
    "lexical": "ranked by share of distinct query terms present; "
    "no stemming, no synonyms, no semantic match",
    "keyword": "ranked by BM25 (k1 1.2, b 0.75); no stemming, no synonyms, no semantic match",
    "vector": "ranked by cosine similarity",
    "hybrid": "ranked by cosine similarity and BM25, each scaled to 0 to 1 over the candidates "
    "of this query, and added",
    "recent": "newest first by time of occurrence; not matched against anything",
}
"""What a search did, in the words of the note; a store may add to them."""


def candidates_note(depth: int) -> str:
    """Return what ``hybrid`` compares: it may leave out what neither side has among its best."""
    return f"{HOW['hybrid']}; the best {depth:,} of each side are the candidates"


def lexical_score(query: Collection[str], terms: Collection[str]) -> float:
    """Return the share, 0 to 1, of the query's distinct terms that are among ``terms``."""
    present = sum(1 for term in query if term in terms)
    return present / len(query) if query else 0.0


def idf(records: int, holding: int) -> float:
    """Return the weight of a term that ``holding`` of ``records`` records hold.

    ``ln(1 + (N - df + 0.5) / (df + 0.5))``, as in Lucene's BM25Similarity: the form of Robertson
    and Sparck Jones, with the 1 that keeps common terms above zero. Superseded and expired versions
    count until they are erased.
    """
    records = max(records, holding)
    return math.log(1 + (records - holding + 0.5) / (holding + 0.5))


def bm25(weights: Mapping[str, float], terms: Mapping[str, int], length: int, mean: float) -> float:
    """Return the score of a record for a query's terms and their :func:`idf`.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with k1
    1.2 and b 0.75. ``length`` is the record's number of terms, repetitions included, and ``mean``
    the tenant's. Rounded to nine decimals, so that equal scores are ties in whatever order they
    were added up.
    """
    norm = BM25_K1 * (1 - BM25_B + BM25_B * length / mean)
    held = (
        (weight, min(terms[term], FREQUENCY_MOST))
        for term, weight in weights.items()
        if term in terms
    )
    score = sum(weight * (BM25_K1 + 1) * count / (count + norm) for weight, count in held)
    return round(score * 1e9) / 1e9


def fuse(
    candidates: Mapping[UUID, tuple[float, float | None]],
    *,
    neighbours: float = 0.0,
    adjacent: Iterable[tuple[UUID, UUID]] = (),
) -> list[tuple[float, UUID]]:
    """Return the score of each candidate from its keyword score and its cosine.

    Each side is scaled by its least and greatest over all candidates (min-max) and both are added;
    reciprocal rank fusion was measured worse than BM25 alone on conversations. Without a cosine (no
    vector, or of another model) a candidate has the least one. A side on which all are equal tells
    nothing apart: it gives each 1, or 0 where all are zero or below. ``adjacent`` are pairs of a
    candidate and a neighbouring turn; ``neighbours`` is the share of the greatest of its
    neighbours' scores that is added; a neighbour that is no candidate has 0.
    """
    cosines = [cosine for _, cosine in candidates.values() if cosine is not None]
    lowest = min(cosines, default=0.0)
    by_words = _scaled([keyword for keyword, _ in candidates.values()])
    by_meaning = _scaled(
        [lowest if cosine is None else cosine for _, cosine in candidates.values()]
    )
    sums = map(sum, zip(by_words, by_meaning, strict=True))
    fused: dict[UUID, float] = dict(zip(candidates, sums, strict=True))
    added = dict.fromkeys(candidates, 0.0)
    for one, other in adjacent:
        added[one] = max(added[one], fused.get(other, 0.0))
    return [(fused[one] + neighbours * added[one], one) for one in candidates]


def _scaled(scores: Sequence[float]) -> list[float]:
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if high - low < _EQUAL:
        return [1.0 if high > _EQUAL else 0.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def at_least(
    scored: Iterable[tuple[float, UUID]], least: float | None
) -> Iterable[tuple[float, UUID]]:
    """Leave out what scores below ``least``, if that is given."""
    return scored if least is None else (item for item in scored if item[0] >= least)


def best(ranked: Iterable[tuple[Rank, UUID]], limit: int) -> list[tuple[Rank, UUID]]:
    """Return the ``limit`` greatest, ties by id descending; ids compare by their bytes."""
    return heapq.nlargest(limit, ranked, key=lambda item: (item[0], item[1].bytes))
