"""Filters as SQL: which are set decides the statement, their values stay parameters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from memory.ports import Filters

__all__ = ["Shape", "conditions", "values"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Which filters are set: the key under which a statement's text is kept."""

    subjects: bool
    kinds: bool
    origins: bool
    since: bool
    until: bool
    metadata: bool

    @classmethod
    def of(cls, filters: Filters) -> Shape:
        """Return the shape of these filters."""
        return cls(
            subjects=bool(filters.subject_keys),
            kinds=bool(filters.kinds),
            origins=bool(filters.origins),
            since=filters.since is not None,
            until=filters.until is not None,
            metadata=filters.metadata is not None,
        )


def conditions(shape: Shape, *, first: int) -> str:
    """Return ``and ...`` for a record ``r``; parameters count from ``first``, as in values()."""
    templates = (
        (shape.kinds, "r.kind = any (${}::text[])"),
        (shape.origins, "r.origin = any (${}::text[])"),
        (shape.since, "r.occurred_at >= ${}::timestamptz"),
        (shape.until, "r.occurred_at < ${}::timestamptz"),
        (shape.metadata, "r.metadata @> ${}::text::jsonb"),
    )
    wanted = [template for is_set, template in templates if is_set]
    return " ".join(
        f"and {template.format(number)}" for number, template in enumerate(wanted, first)
    )


def values(filters: Filters) -> list[Any]:
    """Return the parameters of :func:`conditions`, in order; the subjects are not among them."""
    found: list[Any] = []
    if filters.kinds:
        found.append(list(filters.kinds))
    if filters.origins:
        found.append(list(filters.origins))
    found += [moment for moment in (filters.since, filters.until) if moment is not None]
    if filters.metadata is not None:
        found.append(json.dumps(filters.metadata, ensure_ascii=False))
    return found
