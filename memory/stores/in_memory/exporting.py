"""What a shelf holds about a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar
from uuid import UUID

from memory import lineage
from memory.graphs import Graph, LineageNode
from memory.portability import ExportedDecision, ExportedRecord
from memory.stores.in_memory.shelf import Row, Shelf, copied
from memory.timelines import Purging
from memory.types import Decision, Tombstone

__all__ = [
    "concerning",
    "decisions_of",
    "exported",
    "graph",
    "newest",
    "purges_of",
    "tombstones_of",
]

_Entry = TypeVar("_Entry", Decision, Tombstone)


def concerning(shelf: Shelf, subject_key: str) -> set[UUID]:
    """Return the ids of all records that forgetting the person would erase."""
    about = [record_id for record_id, row in shelf.rows.items() if subject_key in row.subjects]
    return lineage.closure(about, shelf.derived_from)


def exported(
    shelf: Shelf, subject_key: str, record_ids: Sequence[UUID], *, vectors: bool
) -> list[ExportedRecord]:
    """Return the records that are still there, ascending, as the person's."""
    artefacts: dict[UUID, list[tuple[str, str]]] = {}
    for artefact, sources in sorted(shelf.artefacts.items()):
        for source in sources:
            artefacts.setdefault(source, []).append(artefact)
    return [
        _exported(shelf, shelf.rows[item], subject_key, vectors, artefacts)
        for item in sorted(record_ids)
        if item in shelf.rows
    ]


def _exported(
    shelf: Shelf,
    row: Row,
    subject_key: str,
    vectors: bool,
    artefacts: dict[UUID, list[tuple[str, str]]],
) -> ExportedRecord:
    record_id = row.record.record_id
    return ExportedRecord.of(
        copied(row.record),
        subject_key,
        directly=subject_key in row.direct,
        embedding=tuple(row.embedding) if vectors and row.embedding is not None else None,
        held=shelf.is_held(record_id),
        derived=tuple(sorted(shelf.derived_from.get(record_id, ()))),
        artefacts=tuple(artefacts.get(record_id, ())),
    )


def tombstones_of(
    shelf: Shelf, subject_hash: str, after: Tombstone | None, limit: int
) -> list[Tombstone]:
    """Return the person's tombstones by erasure, from behind ``after``."""
    found = [stone for stone in shelf.tombstones if stone.subject_hash == subject_hash]
    if after is not None:
        found = [stone for stone in found if _place(stone) > _place(after)]
    return sorted(found, key=_place)[:limit]


def newest(
    entries: Sequence[_Entry], subject_hash: str | None, before: int, limit: int
) -> list[_Entry]:
    """Return entries from below ``before``, the newest first; of one person where named."""
    found = (
        entry
        for entry in reversed(entries)
        if entry.seq < before and subject_hash in (None, entry.subject_hash)
    )
    return list(islice(found, limit))


def decisions_of(shelf: Shelf, subject_hash: str, after: int, limit: int) -> list[ExportedDecision]:
    """Return the decisions about the person, oldest first, from behind ``after``."""
    found = [
        ExportedDecision(seq=one.seq, subject_hash=subject_hash, action=one.action, at=one.at)
        for one in shelf.decisions
        if one.subject_hash == subject_hash and one.seq > after
    ]
    return found[:limit]


def purges_of(shelf: Shelf, subject_hash: str, erasure_ids: Sequence[UUID]) -> list[Purging]:
    """Return what indexes purged and owe of these erasures, and what they owe about the person."""
    owed = (
        Purging(
            adapter=adapter,
            erasure_id=debt.erasure_id,
            artefacts=1,
            at=debt.since,
            settled=False,
            attempts=debt.attempts,
        )
        for (adapter, _), debt in shelf.debts.items()
        if debt.erasure_id in erasure_ids or subject_hash in debt.people
    )
    done = (one for one in shelf.purged if one.erasure_id in erasure_ids)
    found: dict[tuple[UUID, str, bool], Purging] = {}
    for one in (*done, *owed):
        place = (one.erasure_id, one.adapter, one.settled)
        found[place] = _both(found[place], one) if place in found else one
    return [found[place] for place in sorted(found)]


def _both(one: Purging, other: Purging) -> Purging:
    return replace(
        one,
        artefacts=one.artefacts + other.artefacts,
        at=(max if one.settled else min)(one.at, other.at),
        attempts=max(one.attempts, other.attempts),
    )


def _place(stone: Tombstone) -> tuple[UUID, int]:
    return (stone.erasure_id, stone.seq)


def graph(shelf: Shelf, subject_key: str | None, record_id: UUID | None, limit: int) -> Graph:
    """Return what erasing the person or the record takes and its sources, nearest first."""
    if record_id is not None:
        roots = {record_id} & shelf.rows.keys()
    else:
        roots = {item for item, row in shelf.rows.items() if subject_key in row.direct}
    sources = {item: row.record.sources for item, row in shelf.rows.items()}
    down = [item for level in lineage.levels(roots, shelf.derived_from) for item in sorted(level)]
    known = [item for level in lineage.levels(down, sources) for item in sorted(level)]
    order = dict.fromkeys([*down, *known])
    shown = list(order)[:limit]
    gone = set(down) - lineage.spared(filter(shelf.is_held, down), down, sources)
    return Graph(
        nodes=tuple(_node(shelf, item, roots, gone) for item in shown),
        edges=tuple(
            (source, item) for item in shown for source in sources[item] if source in shown
        ),
        records=len(order),
        erased=len(gone),
    )


def _node(shelf: Shelf, record_id: UUID, roots: set[UUID], gone: set[UUID]) -> LineageNode:
    row = shelf.rows[record_id]
    return LineageNode(
        record_id=record_id,
        origin=row.record.origin,
        kind=row.record.kind,
        version=row.record.version,
        superseded=row.record.superseded_at is not None,
        people=len(row.subjects),
        artefacts=sum(record_id in made_from for made_from in shelf.artefacts.values()),
        held=shelf.is_held(record_id),
        root=record_id in roots,
        erased=record_id in gone,
    )
