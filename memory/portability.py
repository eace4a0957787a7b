"""What ``export`` yields: everything held about a person, ready for JSON.

The right of access (GDPR Art. 15, DPDP Act 2023 s. 11) covers what is stored, so superseded and
expired records are in it while they are there. Art. 15(4) protects the others: a record about
several people says how many they are, never who; what its text says of them stays in the text, and
is for the host to judge before it hands the export over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from memory.plain import plain
from memory.types import Action, Origin, Record, Tombstone

__all__ = ["Exported", "ExportedDecision", "ExportedRecord"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedRecord:
    """One stored record that an erasure of the person would take, as it is stored.

    ``directly`` is false where it is about the person by what it was derived from; ``other_people``
    counts the others it is about. ``sources`` is what it was derived from, ``derived`` what was
    derived from it; ids may be of records about others. ``artefacts`` are ``(adapter,
    artefact_id)`` pairs; ``embedding`` is there when it was asked for.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> told = await shop.remember(text="Ana and Ben pay", subject_keys=["ana", "ben"])
    >>> [entry] = [entry async for entry in shop.export(subject_key="ana")]
    >>> entry.directly, entry.other_people, entry.to_dict()["text"]
    (True, 1, 'Ana and Ben pay')
    """

    subject_key: str = field(repr=False)
    record_id: UUID
    origin: Origin
    kind: str
    text: str = field(repr=False)
    metadata: Mapping[str, Any] = field(repr=False)
    directly: bool
    other_people: int
    redacted: tuple[str, ...] = field(default=(), repr=False)
    record_key: str = field(repr=False)
    version: int = 1
    embedding_model: str | None = None
    embedding_dims: int | None = None
    embedding: tuple[float, ...] | None = field(default=None, repr=False)
    occurred_at: datetime
    created_at: datetime
    expires_at: datetime | None = None
    superseded_at: datetime | None = None
    held: bool = False
    sources: tuple[UUID, ...] = ()
    derived: tuple[UUID, ...] = ()
    artefacts: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, record: Record, subject_key: str, **more: Any) -> ExportedRecord:
        """Return the record as the person's; ``more`` are the fields a record lacks."""
        values = {item.name: getattr(record, item.name) for item in fields(record)}
        del values["tenant_key"]
        others = set(values.pop("subject_keys")) - {subject_key}
        return cls(**values, subject_key=subject_key, other_people=len(others), **more)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; ``type`` is ``record``."""
        values = {item.name: plain(getattr(self, item.name)) for item in fields(self)}
        values["artefacts"] = [
            {"adapter": adapter, "artefact_id": artefact_id}
            for adapter, artefact_id in self.artefacts
        ]
        return {"type": "record", **values}


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedDecision:
    """What was decided about the person: :class:`memory.Decision` says what there is.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> decision = await shop.hold(subject_key="eli")
    >>> [entry] = [entry async for entry in shop.export(subject_key="eli")]
    >>> entry.to_dict()["type"], entry.action
    ('decision', 'hold')
    """

    seq: int
    subject_hash: str
    action: Action
    at: datetime

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; ``type`` is ``decision``."""
        values = {item.name: plain(getattr(self, item.name)) for item in fields(self)}
        return {"type": "decision", **values}


Exported: TypeAlias = ExportedRecord | Tombstone | ExportedDecision
