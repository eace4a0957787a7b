"""What one tenant holds, and how a record comes into it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from memory import comparisons, lineage, metadata, vectors, versions
from memory.errors import (
    ConflictError,
    SubjectBlockedError,
    UnknownRecordError,
    UnknownSourceError,
)
from memory.ports import Draft, Filters, Subject
from memory.timelines import Purging
from memory.types import Decision, Record, Tombstone

__all__ = ["Owed", "Row", "Shelf", "copied"]


@dataclass(slots=True, repr=False)
class Row:
    """A record with what a search and an erasure need beside it.

    ``subjects`` maps every subject key to its hash; ``direct`` holds the keys not inherited.
    """

    record: Record
    subjects: dict[str, str]
    direct: frozenset[str]
    terms: Mapping[str, int]
    length: int
    embedding: array[float] | None
    square: float

    def relate(self, subjects: Iterable[Subject], *, directly: bool) -> None:
        """Link more subjects; one that is linked already stays as it is."""
        added = {item.key: item.hash for item in subjects if item.key not in self.subjects}
        self.subjects |= added
        if directly:
            self.direct |= added.keys()
        self.record = replace(self.record, subject_keys=tuple(sorted(self.subjects)))

    def expired(self, now: datetime) -> bool:
        """Say whether ``expires_at`` has come."""
        return self.record.expires_at is not None and self.record.expires_at <= now

    @property
    def key(self) -> str:
        """The ``record_key``, or an empty one where only the id stands in for it."""
        record = self.record
        own = record.superseded_at is None and record.record_key == str(record.record_id)
        return "" if own else record.record_key

    def postpone(self, expires_at: datetime, now: datetime) -> bool:
        """Expire later, if it would expire before; false where nothing changes."""
        until = self.record.expires_at
        if until is None or not now < until < expires_at:
            return False
        self.record = replace(self.record, expires_at=expires_at)
        return True

    def matches(self, filters: Filters) -> bool:
        """Say whether the row is current (unless asked otherwise), not expired, and within them."""
        record = self.record
        enough = all if filters.every_subject else any
        return (
            (filters.superseded or record.superseded_at is None)
            and not self.expired(filters.now)
            and (not filters.kinds or record.kind in filters.kinds)
            and (not filters.origins or record.origin in filters.origins)
            and (filters.since is None or filters.since <= record.occurred_at)
            and (filters.until is None or record.occurred_at < filters.until)
            and (
                not filters.subject_keys
                or enough(item in self.subjects for item in filters.subject_keys)
            )
            and (filters.metadata is None or metadata.contains(record.metadata, filters.metadata))
            and all(comparisons.meets(record.metadata, item) for item in filters.where)
            and (not filters.record_keys or self.key in filters.record_keys)
            and (filters.key_prefix is None or _begins(self.key, filters.key_prefix))
        )

    def same_content(self, draft: Draft) -> bool:
        """Say whether the draft is a retry of this row and not another memory under its id."""
        return versions.same_content(self.record, self.direct, draft)


@dataclass(slots=True, repr=False, eq=False)
class Owed:
    """A purge that an index owes since the erasure of ``people``, whose hashes these are."""

    people: frozenset[str]
    erasure_id: UUID
    since: datetime
    attempts: int = 0
    last_error: str | None = None
    next_try_at: datetime | None = None
    lease: UUID | None = None


@dataclass(slots=True, repr=False)
class Shelf:
    """One tenant's rows, provenance, artefacts, debts and evidence.

    ``lines`` maps a ``record_key`` to its versions, oldest first; ``derived_from`` a record to
    those made from it; ``artefacts`` and ``debts`` an ``(adapter, artefact_id)`` to its sources
    and to what is owed; ``purged`` is what was. ``blocked`` and ``held`` are hashes of people.
    """

    tenant_key: str
    rows: dict[UUID, Row] = field(default_factory=dict)
    lines: dict[str, list[UUID]] = field(default_factory=dict)
    derived_from: dict[UUID, set[UUID]] = field(default_factory=dict)
    artefacts: dict[tuple[str, str], set[UUID]] = field(default_factory=dict)
    debts: dict[tuple[str, str], Owed] = field(default_factory=dict)
    purged: list[Purging] = field(default_factory=list)
    tombstones: list[Tombstone] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    decisions: list[Decision] = field(default_factory=list)

    def remember(self, drafts: Sequence[Draft], now: datetime) -> list[Record]:
        """Store all drafts or none; a retry of what is stored is answered with the stored row."""
        added: dict[UUID, Row] = {}
        for draft in drafts:
            row = added.get(draft.record_id) or self.rows.get(draft.record_id)
            if row is None:
                self._admit(item.hash for item in draft.subjects)
                added[draft.record_id] = self._row(draft, now)
            elif not row.same_content(draft):
                raise ConflictError("record_id: already holds other content")
        for row in added.values():
            self._add(row, now)
        return [copied(self.rows[draft.record_id].record) for draft in drafts]

    def derive(self, draft: Draft, sources: Sequence[UUID], now: datetime) -> Record:
        """Store a derived record about everybody its sources are about."""
        self.require_sources(sources)
        for source in sources:
            self._admit(self.rows[source].subjects.values())
        row = self._row(draft, now)
        for source in sources:
            held = self.rows[source].subjects.items()
            row.relate((Subject(key=key, hash=hash_) for key, hash_ in held), directly=False)
            self.derived_from.setdefault(source, set()).add(draft.record_id)
        row.record = replace(row.record, sources=tuple(sorted(sources)))
        self._add(row, now)
        return copied(row.record)

    def supersede(self, record_id: UUID, draft: Draft, now: datetime) -> Record:
        """Store the version after ``record_id``, unless another came first."""
        if self.row(record_id).record.superseded_at is not None:
            raise ConflictError("record_id: a newer version has taken its place")
        return self.remember([draft], now)[0]

    def relate(self, record_id: UUID, subjects: Sequence[Subject]) -> Record:
        """Link subjects to a record and to everything derived from it."""
        row = self.row(record_id)
        self._admit(item.hash for item in subjects if item.key not in row.subjects)
        row.relate(subjects, directly=True)
        for reached in lineage.closure([record_id], self.derived_from):
            self.rows[reached].relate(subjects, directly=False)
        return copied(self.rows[record_id].record)

    def is_held(self, record_id: UUID) -> bool:
        """Say whether the record is about somebody under legal hold."""
        return not self.held.isdisjoint(self.rows[record_id].subjects.values())

    def row(self, record_id: UUID) -> Row:
        """Return a row or raise ``UnknownRecordError``."""
        row = self.rows.get(record_id)
        if row is None:
            raise UnknownRecordError("record_id: no such record")
        return row

    def register(self, artefacts: Iterable[tuple[str, str]], sources: Iterable[UUID]) -> None:
        """Record that each artefact was made from all of these records."""
        self.require_sources(sources)
        self.require_unowed(artefacts)
        for artefact in artefacts:
            self.artefacts.setdefault(artefact, set()).update(sources)

    def require_unowed(self, artefacts: Iterable[tuple[str, str]]) -> None:
        """Raise ``ConflictError`` where a purge is owed, which would take what is written now."""
        if any(artefact in self.debts for artefact in artefacts):
            raise ConflictError(
                "artefact_id: its purge is still owed; purge_outstanding, then register again"
            )

    def require_sources(self, sources: Iterable[UUID]) -> None:
        """Raise ``UnknownSourceError`` unless every source is here."""
        if not all(source in self.rows for source in sources):
            raise UnknownSourceError("sources: no such record")

    def remove(self, record_ids: Iterable[UUID]) -> None:
        """Drop records with their edges and their places in lines and artefacts."""
        for record_id in record_ids:
            record = self.rows.pop(record_id).record
            self.derived_from.pop(record_id, None)
            for source in record.sources:
                self.derived_from.get(source, set()).discard(record_id)
            line = self.lines[record.record_key]
            line.remove(record_id)
            if not line:
                del self.lines[record.record_key]

    def _admit(self, subject_hashes: Iterable[str]) -> None:
        if not self.blocked.isdisjoint(subject_hashes):
            raise SubjectBlockedError()

    def _row(self, draft: Draft, now: datetime) -> Row:
        subjects = {item.key: item.hash for item in draft.subjects}
        embedding = draft.embedding
        record = Record(
            tenant_key=self.tenant_key,
            record_id=draft.record_id,
            origin=draft.origin,
            kind=draft.kind,
            text=draft.text,
            metadata=draft.metadata,
            subject_keys=tuple(sorted(subjects)),
            redacted=draft.redacted,
            record_key=versions.line(draft),
            embedding_model=draft.embedding_model,
            embedding_dims=None if embedding is None else len(embedding),
            occurred_at=draft.occurred_at,
            created_at=now,
            expires_at=draft.expires_at,
        )
        return Row(
            record=record,
            subjects=subjects,
            direct=frozenset(subjects),
            terms=draft.terms,
            length=draft.length,
            embedding=embedding,
            square=0.0 if embedding is None else vectors.square(embedding),
        )

    def _add(self, row: Row, now: datetime) -> None:
        line = self.lines.setdefault(row.record.record_key, [])
        if line:
            previous = self.rows[line[-1]]
            row.record = replace(row.record, version=previous.record.version + 1)
            if previous.record.superseded_at is None:
                previous.record = replace(previous.record, superseded_at=now)
        line.append(row.record.record_id)
        self.rows[row.record.record_id] = row


def _begins(key: str, prefix: str) -> bool:
    return bool(key) and key.startswith(prefix)


def copied(record: Record) -> Record:
    """Return the record with metadata of its own, so that a caller's change stays the caller's."""
    return replace(record, metadata=deepcopy(record.metadata))
