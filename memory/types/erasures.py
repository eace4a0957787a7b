"""What an erasure did, what it leaves, and what was decided about a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from memory import rendering
from memory.plain import plain
from memory.types.codes import Action, Reason, Scope

__all__ = ["Anchor", "Counts", "Decision", "Purged", "Receipt", "Release", "Tombstone"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Anchor:
    """A position in a tenant's chain of tombstones, to be kept outside the database.

    >>> from memory import Memory
    >>> receipt = await Memory().forget("shop", subject_key="customer:dana")
    >>> receipt.anchor.seq, len(receipt.anchor.digest)
    (1, 64)
    """

    seq: int
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What one erasure removed. ``records`` is ``memories`` plus ``derived``, versions included.

    >>> from memory import Counts
    >>> Counts(memories=2, derived=1).records
    3
    """

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

    >>> from memory import Memory
    >>> receipt = await Memory().forget("shop", subject_key="customer:dana")
    >>> receipt.counts.records, receipt.reason, receipt.complete
    (0, 'subject_request', True)
    >>> dict(receipt.summary())["outstanding indexes"]
    'none'
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
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        return [
            ("reason", f"{self.reason}, scope {self.scope}"),
            ("memories", self.counts.memories),
            ("derived", self.counts.derived),
            ("kinds", kinds or "none"),
            ("provenance edges", self.counts.provenance_edges),
            ("artefacts", self.counts.artefacts),
            ("cascade depth", self.cascade_depth),
            ("other people touched", self.bystanders),
            ("kept by a legal hold", self.held),
            ("outstanding indexes", ", ".join(self.outstanding) or "none"),
            ("newest tombstone", "none" if self.anchor is None else self.anchor.seq),
            ("complete", "dry run" if self.dry_run else "yes" if self.complete else "no"),
        ]

    @property
    def title(self) -> str:
        """What became of it, in two or three words."""
        if self.dry_run:
            return "Would be deferred by a legal hold" if self.deferred else "Would be erased"
        if self.deferred:
            return "Deferred by a legal hold"
        return "Erased" if self.complete else "Erased, not complete"

    def _repr_html_(self) -> str:
        # The id of a dry run is of no erasure; what it is for is its closure.
        first = ("closure", self.closure) if self.dry_run else ("erasure", self.erasure_id)
        rows = [first, *self.summary()]
        return rendering.facts(rows, caption=self.title)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tombstone:
    """The immutable, content-free evidence of one erasure, one per person and transaction.

    ``digest`` covers every other field and ``previous``, the digest before it in the tenant's
    chain; :func:`memory.fingerprint.tombstone_digest` recomputes it.

    >>> from memory import Memory
    >>> shop = Memory(subject_pepper="from a secret manager").for_tenant("shop")
    >>> receipt = await shop.forget(subject_key="customer:dana")
    >>> [stone] = await shop.erasure_history()
    >>> stone.subject_hash == shop.subject_fingerprint(subject_key="customer:dana")
    True
    >>> stone.to_dict()["type"], stone.scope, stone.memories
    ('tombstone', 'subject', 0)
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

    def _repr_html_(self) -> str:
        rows = [
            ("erasure", self.erasure_id),
            ("erased at", f"{self.erased_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("person, by hash", f"{self.subject_hash[:16]}…"),
            ("reason", f"{self.reason}, scope {self.scope}"),
            ("memories", self.memories),
            ("derived", self.derived),
            ("provenance edges", self.provenance_edges),
            ("artefacts", self.artefacts),
            ("digest", f"{self.digest[:16]}…"),
            ("digest before it", f"{self.previous[:16]}…" if self.previous else "none: the first"),
        ]
        return rendering.facts(rows, caption=f"Tombstone {self.seq}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What was decided about a person, by whom is the caller's to know. Immutable, content-free.

    ``request`` is an erasure that a legal hold defers, ``complete`` says that it was carried out;
    both carry its ``erasure_id``, as a ``block`` does that came with an erasure. A request says
    what was asked for in ``reason``, ``scope``, ``kinds`` and ``record_id``. ``seq`` grows with
    each decision of the tenant, not without gaps.

    >>> from memory import Memory
    >>> decision = await Memory().hold("shop", subject_key="customer:eli")
    >>> decision.action, len(decision.subject_hash)
    ('hold', 64)
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

    >>> from memory import Memory
    >>> released = await Memory().release("shop", subject_key="customer:eli")
    >>> released.decision.action, released.receipts
    ('release', ())
    """

    decision: Decision
    receipts: tuple[Receipt, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Purged:
    """What ``purge_outstanding`` did.

    ``settled`` counts artefacts whose purge was confirmed; ``adapters`` owed something before,
    ``outstanding`` still do.

    >>> from memory import Memory
    >>> purged = await Memory().purge_outstanding("shop")
    >>> purged.settled, purged.outstanding
    (0, ())
    """

    settled: int
    adapters: tuple[str, ...] = ()
    outstanding: tuple[str, ...] = ()
