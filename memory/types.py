"""What the library returns: frozen, keyword-only dataclasses.

No ``repr`` shows a text, a key or a vector, so that an object that ends up in a log or a traceback
leaks nothing. Times are timezone-aware and in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory import rendering
from memory.plain import plain

__all__ = [
    "Action",
    "Anchor",
    "Capabilities",
    "Check",
    "Counts",
    "Decision",
    "Derived",
    "Finding",
    "Hit",
    "Origin",
    "Purged",
    "Readiness",
    "Reason",
    "Recall",
    "Receipt",
    "Record",
    "Release",
    "Remembered",
    "Scope",
    "Strategy",
    "SubjectMatch",
    "Tombstone",
    "VectorIndex",
]

Origin = Literal["remembered", "derived"]
Reason = Literal["subject_request", "retention_policy", "operator"]
Scope = Literal["subject", "kinds", "record", "retention", "tenant"]
Strategy = Literal["vector", "lexical", "keyword", "hybrid", "recent"]
SubjectMatch = Literal["any", "all"]
Action = Literal["block", "readmit", "hold", "release", "request", "complete"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One identifier that redaction masked. It never carries the value.

    ``start`` and ``end`` (exclusive) are character offsets in the original text; ``path`` says
    where that text stood: ``text``, or a metadata path such as ``metadata.trip.contact.0``. A
    ``repr`` shows neither the path, since a key may name a person, nor the ``replacement``, which
    may keep the last digits.
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
    """What ``remember`` and ``supersede`` stored, and what redaction masked on the way."""

    record: Record
    redactions: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """What ``derive`` stored, and what redaction masked on the way."""

    record: Record
    redactions: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One record that recall found.

    ``score`` is -1 to 1 for ``vector`` (cosine), above 0 to 1 for ``lexical`` (share of the query's
    distinct terms), above 0 without an upper bound for ``keyword`` (BM25), from 0 for ``hybrid``
    (both scaled to 0 to 1 within this answer's candidates and added), and always 0 for ``recent``,
    which ranks by time.
    """

    record: Record
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Recall:
    """The answer of ``recall``: best first, and how it was found.

    ``exact`` is false when a better match may exist among records that were not compared; ``note``
    says in words how the search was done, and for an empty answer, why it is empty.
    """

    strategy: Strategy
    note: str
    exact: bool
    hits: tuple[Hit, ...]

    def _repr_html_(self) -> str:
        rows = [
            (f"{hit.score:.3f}", hit.record.origin, hit.record.kind, hit.record.text)
            for hit in self.hits
        ]
        heading = f"{self.strategy}, {'exact' if self.exact else 'not exact'}: {self.note}"
        return rendering.table(("score", "origin", "kind", "text"), rows, caption=heading)


@dataclass(frozen=True, kw_only=True, slots=True)
class Anchor:
    """A position in a tenant's chain of tombstones, to be kept outside the database."""

    seq: int
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What one erasure removed. ``records`` is ``memories`` plus ``derived``, versions included."""

    memories: int = 0
    derived: int = 0
    provenance_edges: int = 0
    artefacts: int = 0

    @property
    def records(self) -> int:
        """Rows removed from ``memory.records``."""
        return self.memories + self.derived


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What an erasure did; content-free but for the tenant key and a dry run's bystanders.

    ``counts`` and ``kinds`` (records removed per kind) are exact. ``cascade_depth`` is the greatest
    shortest distance of a derived record from the person's own (0: nothing was derived).
    ``bystanders`` counts the other people whose records went too; only a dry run names them, in
    ``bystander_keys``. ``held`` counts the records asked for that a legal hold kept: those under
    hold and those they were derived from; with the scopes ``retention`` and ``tenant``, the ones
    that were due. ``deferred`` is true when the erasure was recorded as a request, which the
    release of the hold completes. ``adapters`` are the external indexes that had to purge
    something, ``outstanding`` those that have not confirmed it; ``complete`` is true when nothing
    is outstanding, held or deferred, and never for a dry run.
    ``closure`` is a digest of the ids asked for; pass a dry run's to ``forget(expect=...)``.
    ``anchor`` is the chain position of the newest tombstone written, None where there is none, or
    where the transaction is the caller's and not yet committed. Times are UTC; ``erased_at`` is
    when the erasure began: tombstones are dated when they are chained, on PostgreSQL some
    milliseconds later.
    The scopes ``retention`` and ``tenant`` name nobody and go in batches: ``subject_hashes`` and
    ``closure`` are empty and ``bystanders`` is 0; the tombstones of the ``erasure_id`` say who.
    """

    erasure_id: UUID
    tenant_key: str = field(repr=False)
    subject_hashes: tuple[str, ...]
    reason: Reason
    scope: Scope
    counts: Counts
    kinds: Mapping[str, int]
    cascade_depth: int
    bystanders: int
    bystander_keys: tuple[str, ...] = field(default=(), repr=False)
    held: int = 0
    deferred: bool = False
    adapters: tuple[str, ...] = ()
    outstanding: tuple[str, ...] = ()
    complete: bool
    dry_run: bool = False
    closure: str
    anchor: Anchor | None = None
    erased_at: datetime
    completed_at: datetime | None = None

    def summary(self) -> list[tuple[str, object]]:
        """Return what a person reads of it: pairs of a label and a number or a few words."""
        return [
            ("memories", self.counts.memories),
            ("derived", self.counts.derived),
            ("provenance edges", self.counts.provenance_edges),
            ("artefacts", self.counts.artefacts),
            ("cascade depth", self.cascade_depth),
            ("other people touched", self.bystanders),
            ("kept by a legal hold", self.held),
            ("outstanding indexes", ", ".join(self.outstanding) or "none"),
            ("complete", "dry run" if self.dry_run else "yes" if self.complete else "no"),
        ]

    def _repr_html_(self) -> str:
        heading = ("erasure", str(self.erasure_id))
        return rendering.table(heading, self.summary(), caption=self.reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tombstone:
    """The immutable, content-free evidence of one erasure, one per person and transaction.

    ``digest`` covers every other field and ``previous``, the digest before it in the tenant's
    chain; :func:`memory.fingerprint.tombstone_digest` recomputes it.
    """

    tenant_key: str = field(repr=False)
    seq: int
    erasure_id: UUID
    subject_hash: str
    reason: Reason
    scope: Scope
    memories: int
    derived: int
    provenance_edges: int
    artefacts: int
    erased_at: datetime
    format: int
    previous: str
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; ``type`` is ``tombstone``."""
        values = {item.name: plain(getattr(self, item.name)) for item in fields(self)}
        return {"type": "tombstone", **values}


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What was decided about a person, by whom is the caller's to know. Immutable, content-free.

    ``request`` is an erasure that a legal hold defers, ``complete`` says that it was carried out;
    both carry its ``erasure_id``, as a ``block`` does that came with an erasure. A request says
    what was asked for in ``reason``, ``scope``, ``kinds`` and ``record_id``. ``seq`` grows with
    each decision of the tenant, not without gaps.
    """

    seq: int
    subject_hash: str
    action: Action
    at: datetime
    erasure_id: UUID | None = None
    reason: Reason | None = None
    scope: Scope | None = None
    kinds: tuple[str, ...] = ()
    record_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """What ``release`` did: the decision, and a receipt for each erasure that had waited for it.

    A receipt that is still ``deferred`` is of an erasure that another hold keeps waiting, and that
    could go on nevertheless.
    """

    decision: Decision
    receipts: tuple[Receipt, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Purged:
    """What ``purge_outstanding`` did.

    ``settled`` counts artefacts whose purge was confirmed; ``adapters`` owed something before,
    ``outstanding`` still do.
    """

    settled: int
    adapters: tuple[str, ...] = ()
    outstanding: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What this store can do, measured on its connection and never guessed.

    ``vector_search`` is ``pgvector`` where the extension ranks inside the database, else
    ``in-process``. ``server_version`` is the server's own (``18.4``), None without a server.
    ``hnsw_dimensions`` are the lengths of vectors that an HNSW index serves.
    """

    store: Literal["in-memory", "postgres"]
    vector_search: Literal["pgvector", "in-process"]
    pgvector_version: str | None = None
    server_version: str | None = None
    hnsw_dimensions: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorIndex:
    """An HNSW index over the vectors of one length; see :mod:`memory.maintenance.indexes`.

    With ``halfvec`` it holds them in half precision. One that is not ``valid`` was left by an
    interrupted build and serves no search. ``bytes`` is its size.
    """

    name: str
    dimensions: int
    halfvec: bool
    m: int
    ef_construction: int
    valid: bool
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Readiness:
    """Whether this process may serve; ``problems`` says in words why not."""

    ready: bool
    problems: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One property of an installation: ``ok`` is true, false, or None where it cannot be read.

    ``detail`` names the database objects and roles that break it, never a key or a text.
    """

    property: str
    ok: bool | None
    detail: str
