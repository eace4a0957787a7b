"""How hits are scored and ordered, the same in both stores. Pure.

``lexical``: the share of the query's distinct terms that the record holds; a record with none is
no hit. ``vector``: cosine similarity in float64 over float32 values. ``recent``: newest first by
``occurred_at``; its hits have no score and say 0.0. Equal ranks go by ``record_id`` descending,
which for UUIDv7 is newest first.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

from memory.types import Strategy

__all__ = ["HOW", "at_least", "best", "lexical_score"]

Rank = TypeVar("Rank", float, datetime)

HOW: Final[Mapping[Strategy, str]] = {
    "lexical": "ranked by share of distinct query terms present; "
    "no stemming, no synonyms, no semantic match",
    "vector": "ranked by cosine similarity",
    "recent": "newest first by time of occurrence; not matched against anything",
}
"""What a search did, in the words of the note; a store may add to them."""


def lexical_score(query: Collection[str], terms: Collection[str]) -> float:
    """Return the share, 0 to 1, of the query's distinct terms that are among ``terms``."""
    present = sum(1 for term in query if term in terms)
    return present / len(query) if query else 0.0


def at_least(
    scored: Iterable[tuple[float, UUID]], least: float | None
) -> Iterable[tuple[float, UUID]]:
    """Leave out what scores below ``least``, if that is given."""
    return scored if least is None else (item for item in scored if item[0] >= least)


def best(ranked: Iterable[tuple[Rank, UUID]], limit: int) -> list[tuple[Rank, UUID]]:
    """Return the ``limit`` greatest, ties by id descending; ids compare by their bytes."""
    return heapq.nlargest(limit, ranked, key=lambda item: (item[0], item[1].bytes))
