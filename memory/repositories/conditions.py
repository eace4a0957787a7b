"""Filters as SQL: which are set decides the statement, their values stay parameters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from memory.ports import Filters

__all__ = ["Shape", "candidates", "conditions", "values"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Which filters are set: the key under which a statement's text is kept."""

    subjects: bool
    every_subject: bool
    superseded: bool
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
            # All of one is any of one, and needs no counting.
            every_subject=filters.every_subject and len(filters.subject_keys) > 1,
            superseded=filters.superseded,
            kinds=bool(filters.kinds),
            origins=bool(filters.origins),
            since=filters.since is not None,
            until=filters.until is not None,
            metadata=filters.metadata is not None,
        )


def candidates(shape: Shape, *, first: int, joined: str = "") -> str:
    """Return the records ``r`` of tenant ``s.t`` within the filters, as ``... where ...``.

    With subjects only their records are read, by their keys. Parameters count from ``first``, as
    in :func:`values`; ``$2`` is the time.
    """
    source = "memory.records as r"
    if shape.subjects:
        source = f"""({_of_subjects(shape, first)}) as c
        cross join lateral (
            select r.* from memory.records as r
            where r.tenant_key = s.t and r.record_id = c.id offset 0
        ) as r"""
    return f"""{source}{joined}
        where r.tenant_key = s.t and {conditions(shape, first=first)}"""


def _of_subjects(shape: Shape, number: int) -> str:
    """Return the ids of the records about any of ``$number``, or about all of them."""
    counted = f"having count(*) >= cardinality(${number}::text[])" if shape.every_subject else ""
    return f"""
            select l.record_id as id
            from memory.each(${number}::text[]) as k (subject_key)
            cross join lateral (
                select l.record_id from memory.record_subjects as l
                where l.tenant_key = s.t and l.subject_key = k.subject_key offset 0
            ) as l
            group by l.record_id {counted}
        """


def conditions(shape: Shape, *, first: int) -> str:
    """Return what a record ``r`` must be besides about its subjects; ``$2`` is the time.

    Parameters count from ``first``, as in :func:`values`.
    """
    templates = (
        (shape.kinds, "r.kind = any (${}::text[])"),
        (shape.origins, "r.origin = any (${}::text[])"),
        (shape.since, "r.occurred_at >= ${}::timestamptz"),
        (shape.until, "r.occurred_at < ${}::timestamptz"),
        (shape.metadata, "r.metadata @> ${}::text::jsonb"),
    )
    wanted = [template for is_set, template in templates if is_set]
    found = ["(r.expires_at is null or r.expires_at > $2)"]
    if not shape.superseded:
        found.append("r.superseded_at is null")
    following = first + 1 if shape.subjects else first
    found += [template.format(number) for number, template in enumerate(wanted, following)]
    return " and ".join(found)


def values(filters: Filters) -> list[Any]:
    """Return the parameters of :func:`candidates`, in order; the time is not among them."""
    found: list[Any] = []
    if filters.subject_keys:
        found.append(list(filters.subject_keys))
    if filters.kinds:
        found.append(list(filters.kinds))
    if filters.origins:
        found.append(list(filters.origins))
    found += [moment for moment in (filters.since, filters.until) if moment is not None]
    if filters.metadata is not None:
        found.append(json.dumps(filters.metadata, ensure_ascii=False))
    return found
