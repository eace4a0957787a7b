"""Walks over provenance: what an erasure takes with it. Pure, iterative, safe with cycles.

``derived_from`` maps a record to the records made from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

__all__ = ["closure", "depth", "levels", "spared"]


def levels(roots: Iterable[UUID], derived_from: Mapping[UUID, Collection[UUID]]) -> list[set[UUID]]:
    """Return the roots, then what is one derivation away, and so on; each record once."""
    found: list[set[UUID]] = []
    seen: set[UUID] = set()
    level = set(roots)
    while level:
        found.append(level)
        seen |= level
        level = {made for record in level for made in derived_from.get(record, ())} - seen
    return found


def closure(roots: Iterable[UUID], derived_from: Mapping[UUID, Collection[UUID]]) -> set[UUID]:
    """Return the roots and everything derived from them, directly or not."""
    return set().union(*levels(roots, derived_from))


def depth(roots: Iterable[UUID], derived_from: Mapping[UUID, Collection[UUID]]) -> int:
    """Return the greatest shortest distance from the roots; 0 when nothing was derived."""
    return max(len(levels(roots, derived_from)) - 1, 0)


def spared(
    held: Iterable[UUID], asked: Collection[UUID], sources: Mapping[UUID, Collection[UUID]]
) -> set[UUID]:
    """Return what a hold keeps of the closure ``asked``: the held and all they were made from.

    ``sources`` maps a record to those it was made from.
    """
    return closure(held, sources) & set(asked)
