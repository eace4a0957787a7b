"""Records as they are read: one list of columns, one function that makes the type."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC
from typing import Any, Final

from memory.database import AnyRow
from memory.errors import StoreUnavailableError
from memory.repositories.tenancy import SETTING
from memory.types import Hit, Record

__all__ = ["COLUMNS", "LINKS", "NAMED", "answer", "hits", "record"]

COLUMNS: Final = (
    "r.record_id, r.origin, r.kind, r.text, r.metadata::text as metadata, r.redacted, r.record_key,"
    " r.version, r.embedding_model, r.embedding_dims, r.occurred_at, r.created_at, r.expires_at,"
    " r.superseded_at"
)
"""Columns of a record; the vector stays where it is."""

LINKS: Final = """
    array(
        select l.subject_key from memory.record_subjects as l
        where l.tenant_key = s.t and l.record_id = r.record_id order by l.subject_key
    ) as subject_keys,
    case
        when r.origin = 'derived' then array(
            select p.source_id from memory.provenance as p
            where p.tenant_key = s.t and p.derived_id = r.record_id order by p.source_id
        )
        else '{}'
    end as sources
"""
"""Whom the record ``r`` of tenant ``s.t`` is about, and what it was derived from."""

NAMED: Final = """
cross join lateral (
    select r.* from memory.each($2::uuid[]) as u (id)
    cross join lateral (
        select r.* from memory.records as r
        where r.tenant_key = s.t and r.record_id = u.id offset 0
    ) as r
    limit $3
) as r
"""
"""The records ``r`` of tenant ``s.t`` whose ids ``$2`` holds; ``$3`` is how many ids these are."""


def answer(found: str, beside: str = "skipped") -> str:
    """Return the statement that makes records of what ``found`` yields: id, score and ``beside``.

    The best are chosen inside; the order of so few is left to the client.
    """
    return f"""
{SETTING}
select {COLUMNS}, {LINKS}, h.score, h.{beside}
from s
cross join lateral ({found}) as h
cross join lateral (
    select r.* from memory.records as r
    where r.tenant_key = s.t and r.record_id = h.record_id offset 0
) as r
"""


def record(tenant_key: str, row: AnyRow) -> Record:
    """Return the record of a row that has ``COLUMNS`` and ``LINKS``."""
    values = row._mapping
    return Record(
        tenant_key=tenant_key,
        record_id=values["record_id"],
        origin=values["origin"],
        kind=values["kind"],
        text=values["text"],
        metadata=_metadata(values["metadata"]),
        subject_keys=tuple(values["subject_keys"]),
        sources=tuple(values["sources"]),
        redacted=tuple(values["redacted"]),
        record_key=values["record_key"] or str(values["record_id"]),
        version=values["version"],
        embedding_model=values["embedding_model"],
        embedding_dims=values["embedding_dims"],
        occurred_at=_aware(values["occurred_at"]),
        created_at=values["created_at"],
        expires_at=_aware(values["expires_at"]),
        superseded_at=values["superseded_at"],
    )


def _metadata(stored: str) -> dict[str, Any]:
    """Read it as text, since a host's engine may read JSON in a way of its own."""
    try:
        found: dict[str, Any] = json.loads(stored)
    except (ValueError, RecursionError):
        # Written by raw SQL: numbers of thousands of digits, nested in thousands of arrays.
        pass
    else:
        return found
    raise StoreUnavailableError("stored metadata is out of Python's range")


def _aware(moment: Any) -> Any:
    """Put the zone back that asyncpg leaves out where it reads the ends of time.

    It sends the first and the last ``datetime``, "never" to many, as ``infinity``.
    """
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def hits(tenant_key: str, rows: Sequence[AnyRow]) -> list[Hit]:
    """Return the rows of an :func:`answer` as hits: best first, ties by id descending."""
    found = [Hit(record=record(tenant_key, row), score=float(row.score)) for row in rows]
    return sorted(found, key=lambda hit: (hit.score, hit.record.record_id), reverse=True)
