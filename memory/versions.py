"""What a draft becomes: its record, its line of versions, and whether it is a retry. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory import metadata
from memory.ports import Draft
from memory.types import Record

__all__ = ["Head", "Placed", "line", "placed", "recorded", "same_content"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The newest version of a line; ``current`` is false once it was superseded."""

    record_id: UUID
    version: int
    current: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """A draft with its version; ``superseded`` by a later draft of the same batch."""

    draft: Draft
    version: int = 1
    superseded: bool = False


def line(draft: Draft) -> str:
    """Return the key of the draft's line of versions: its own, or its id."""
    return str(draft.record_id) if draft.record_key is None else draft.record_key


def placed(drafts: Sequence[Draft], heads: Mapping[str, Head]) -> list[Placed]:
    """Give each draft the version after the newest of its line, the batch's own included."""
    last = {line(draft): position for position, draft in enumerate(drafts)}
    newest = {key: head.version for key, head in heads.items()}
    found = []
    for position, draft in enumerate(drafts):
        key = line(draft)
        newest[key] = version = newest.get(key, 0) + 1
        found.append(Placed(draft=draft, version=version, superseded=last[key] != position))
    return found


def recorded(
    tenant_key: str,
    item: Placed,
    written_at: datetime,
    *,
    subject_keys: Collection[str] = (),
    sources: Collection[UUID] = (),
) -> Record:
    """Return the record a draft became; without ``subject_keys`` it is about the draft's own."""
    draft = item.draft
    return Record(
        tenant_key=tenant_key,
        record_id=draft.record_id,
        origin=draft.origin,
        kind=draft.kind,
        text=draft.text,
        metadata=draft.metadata,
        subject_keys=tuple(sorted(subject_keys or {subject.key for subject in draft.subjects})),
        sources=tuple(sorted(sources)),
        redacted=draft.redacted,
        record_key=line(draft),
        version=item.version,
        embedding_model=draft.embedding_model if draft.embedding else None,
        embedding_dims=None if draft.embedding is None else len(draft.embedding),
        occurred_at=draft.occurred_at,
        created_at=written_at,
        expires_at=draft.expires_at,
        superseded_at=written_at if item.superseded else None,
    )


def same_content(record: Record, direct: Collection[str], draft: Draft) -> bool:
    """Say whether the draft is a retry of this record and not another memory under its id.

    ``direct`` are the people the record is directly about. Times count where the caller gave them.
    """
    return (
        record.origin == draft.origin
        and record.text == draft.text
        and record.kind == draft.kind
        and metadata.canonical(record.metadata) == metadata.canonical(draft.metadata)
        and set(direct) == {subject.key for subject in draft.subjects}
        and record.record_key == line(draft)
        and (not draft.dated or record.occurred_at == draft.occurred_at)
        and (draft.expires_at is None or record.expires_at == draft.expires_at)
    )
