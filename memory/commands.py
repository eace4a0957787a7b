"""What the service tells a store to do, and what a search answers.

Commands arrive validated, redacted and embedded: a store does no policy of its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory.types import Hit, Operator, Origin, Reason, Scope, Strategy

__all__ = ["Condition", "Draft", "Filters", "Found", "Order", "Query", "Subject", "Sweep"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A person a record is directly about: the key to find by and the hash for evidence."""

    key: str = field(repr=False)
    hash: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A record to be written. ``own_id`` says that the caller chose the id, so a retry may come.

    ``terms`` are the distinct terms of the text with their frequencies; ``length`` their sum.
    ``dated`` says that the caller gave ``occurred_at``.
    """

    record_id: UUID
    own_id: bool
    origin: Origin
    kind: str
    text: str = field(repr=False)
    metadata: Mapping[str, Any] = field(repr=False)
    redacted: tuple[str, ...] = field(repr=False)
    subjects: tuple[Subject, ...] = ()
    record_key: str | None = field(default=None, repr=False)
    embedding: array[float] | None = field(default=None, repr=False)
    embedding_model: str | None = None
    occurred_at: datetime
    dated: bool
    expires_at: datetime | None = None
    terms: Mapping[str, int] = field(repr=False)

    @property
    def length(self) -> int:
        """Terms in the text, repetitions included."""
        return sum(self.terms.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """What the value at a path of the metadata must be; see ``memory.comparisons``."""

    path: tuple[str, ...] = field(repr=False)
    operator: Operator
    value: Any = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """What a recall or a listing is limited to; empty means no limit.

    ``subject_keys`` is any-of, or all-of with ``every_subject``; ``since`` is inclusive and
    ``until`` exclusive on ``occurred_at``; ``metadata`` is containment (a JSON object whose pairs
    the record's metadata all holds) and ``where`` compares values in it. ``record_keys`` and
    ``key_prefix`` are of keys that were given, not of ids that stand in for one. ``superseded``
    versions are left out unless asked for; what has expired always is.
    """

    subject_keys: tuple[str, ...] = field(default=(), repr=False)
    every_subject: bool = False
    kinds: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    metadata: Mapping[str, Any] | None = field(default=None, repr=False)
    where: tuple[Condition, ...] = ()
    record_keys: tuple[str, ...] = field(default=(), repr=False)
    key_prefix: str | None = field(default=None, repr=False)
    superseded: bool = False
    now: datetime

    @property
    def narrow(self) -> bool:
        """Whether the candidates can be found by whom they are about or by their keys."""
        return bool(self.subject_keys or self.record_keys or self.key_prefix)


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """One search within the filters.

    ``terms`` are for ``lexical`` and ``keyword``, ``embedding`` for ``vector``, both for
    ``hybrid``; ``recent`` takes neither. Hits below ``min_score`` do not count towards ``limit``.
    ``hybrid`` takes ``depth`` candidates from each side, and adds ``neighbours`` (0 to 1) of the
    greater score of its neighbouring turns.
    """

    strategy: Strategy
    filters: Filters
    limit: int
    terms: tuple[str, ...] = field(default=(), repr=False)
    embedding: array[float] | None = field(default=None, repr=False)
    embedding_model: str | None = None
    min_score: float | None = None
    neighbours: float = 0.0
    depth: int = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a store found: best first. ``how`` says in words how it searched.

    ``skipped`` counts candidates embedded by another model, or as many as were looked at where
    there are ``more``; ``holds_any`` is whether the tenant
    holds any record at all (asked only when nothing was found).
    """

    hits: tuple[Hit, ...]
    exact: bool
    how: str
    skipped: int = 0
    more: bool = False
    holds_any: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """An erasure to carry out: by ``subject`` (narrowed by ``kinds``) or one ``record_id``.

    ``block`` refuses, from the same transaction on, what is written about the subject.
    """

    erasure_id: UUID
    reason: Reason
    scope: Scope
    subject: Subject | None = None
    record_id: UUID | None = None
    kinds: tuple[str, ...] | None = None
    dry_run: bool = False
    expect: str | None = None
    block: bool = False
    now: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """An erasure that names nobody, in transactions of ``batch`` records and what is derived.

    Of a whole tenant, by ``scope``; or of what retention says: records that have expired ``now``
    and, with ``before``, those of the ``kinds`` (None: of any) that occurred before it.
    """

    erasure_id: UUID
    reason: Reason
    scope: Literal["retention", "tenant"]
    kinds: tuple[str, ...] | None = None
    before: datetime | None = None
    batch: int
    now: datetime
