"""Records as they are stored and found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from memory import rendering
from memory.types.codes import Origin, Strategy

__all__ = ["Derived", "Finding", "Hit", "Recall", "Record", "Remembered"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One identifier that redaction masked. It never carries the value.

    ``start`` and ``end`` (exclusive) are character offsets in the original text; ``path`` says
    where that text stood: ``text``, or a metadata path such as ``metadata.trip.contact.0``. A
    ``repr`` shows neither the path, since a key may name a person, nor the ``replacement``, which
    may keep the last digits.

    >>> from memory import redaction
    >>> redaction.scan("Call 98450 12345")
    (Finding(kind='phone_in', start=5, end=16),)
    """

    kind: str
    start: int
    end: int
    replacement: str = field(repr=False)
    path: str = field(default="text", repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One stored memory: ``remembered`` as it was told, or ``derived`` from other records.

    ``subject_keys`` are the people it is about, inherited ones included, sorted. ``sources`` are
    the records a derived one was made from, sorted. ``redacted`` lists the paths that redaction
    masked, so that a masked field differs from an empty one. ``record_key`` names a line of
    versions; a record stored without one is its own line, keyed by its id. ``superseded_at`` is
    set once a newer version has taken its place.

    >>> from memory import Memory
    >>> told = await Memory().remember("shop", text="Dana moved", subject_keys="customer:dana")
    >>> record = told.record
    >>> record.origin, record.kind, record.version, record.subject_keys, record.expires_at
    ('remembered', 'episodic', 1, ('customer:dana',), None)
    """

    tenant_key: str = field(repr=False)
    record_id: UUID
    origin: Origin
    kind: str
    text: str = field(repr=False)
    metadata: Mapping[str, Any] = field(repr=False)
    subject_keys: tuple[str, ...] = field(repr=False)
    sources: tuple[UUID, ...] = ()
    redacted: tuple[str, ...] = field(default=(), repr=False)
    record_key: str = field(repr=False)
    version: int = 1
    embedding_model: str | None = None
    embedding_dims: int | None = None
    occurred_at: datetime
    created_at: datetime
    expires_at: datetime | None = None
    superseded_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered:
    """What ``remember`` and ``supersede`` stored, and what redaction masked on the way.

    >>> from memory import Memory
    >>> told = await Memory().remember("shop", text="Call 98450 12345", subject_keys="dana")
    >>> told.record.redacted, [found.kind for found in told.redactions]
    (('text',), ['phone_in'])
    """

    record: Record
    redactions: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """What ``derive`` stored, and what redaction masked on the way.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> told = await shop.remember(text="Dana moved", subject_keys="customer:dana")
    >>> made = await shop.derive(kind="summary", text="New address", sources=told)
    >>> made.record.sources == (told.record.record_id,)
    True
    """

    record: Record
    redactions: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One record that recall found.

    ``score`` is -1 to 1 for ``vector`` (cosine), above 0 to 1 for ``lexical`` (share of the query's
    distinct terms), above 0 without an upper bound for ``keyword`` (BM25), from 0 for ``hybrid``
    (both scaled to 0 to 1 within this answer's candidates and added), and always 0 for ``recent``,
    which ranks by time.

    >>> from memory import Memory
    >>> shop = Memory().for_tenant("shop")
    >>> told = await shop.remember(text="Dana likes green tea", subject_keys="customer:dana")
    >>> [hit] = (await shop.recall(text="green coffee")).hits
    >>> hit.score, hit.record.text
    (0.5, 'Dana likes green tea')
    """

    record: Record
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Recall:
    """The answer of ``recall``: best first, and how it was found.

    ``exact`` is false when a better match may exist among records that were not compared; ``note``
    says in words how the search was done, and for an empty answer, why it is empty.

    >>> from memory import Memory
    >>> found = await Memory().recall("shop", text="green tea")
    >>> found.strategy, found.exact, found.hits
    ('lexical', True, ())
    >>> found.note.rpartition("; ")[2]
    'nothing found: this tenant holds no records'
    """

    strategy: Strategy
    note: str
    exact: bool
    hits: tuple[Hit, ...]

    def _repr_html_(self) -> str:
        rows = [
            (hit.score, hit.record.origin, hit.record.kind, hit.record.text) for hit in self.hits
        ]
        found = (
            "1 record" if len(rows) == 1 else f"{len(rows)} records" if rows else "nothing found"
        )
        heading = f"{self.strategy}, {'exact' if self.exact else 'not exact'}: {found}"
        header = ("score", "origin", "kind", "text")
        return rendering.table(header, rows, caption=heading, note=self.note)
