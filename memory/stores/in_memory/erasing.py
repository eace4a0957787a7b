"""Erasing from a shelf: what goes, what is counted, and the evidence that stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from memory import fingerprint, lineage
from memory.errors import ConflictError
from memory.ports import Order, Sweep
from memory.stores.in_memory.deciding import block, request
from memory.stores.in_memory.shelf import Owed, Row, Shelf
from memory.types import Anchor, Counts, Receipt, Tombstone

__all__ = ["erase", "outstanding", "swept"]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class _Plan:
    """What an erasure would take: of what was ``asked``, the records ``gone``, the rest ``kept``.

    ``about`` maps a subject hash to the records counted for it.
    """

    roots: frozenset[UUID]
    asked: frozenset[UUID]
    gone: frozenset[UUID]
    kept: frozenset[UUID]
    about: dict[str, set[UUID]]
    lost: dict[tuple[str, str], set[UUID]]


def erase(shelf: Shelf, order: Order) -> Receipt:
    """Carry the order out, or only describe it for a dry run."""
    subject = order.subject
    person_held = subject is not None and subject.hash in shelf.held
    roots = frozenset(_roots(shelf, order))
    plan = _planned(
        shelf, roots, about=None if subject is None else subject.hash, keep_all=person_held
    )
    receipt = _described(shelf, order, plan, roots)
    if order.expect not in (None, receipt.closure):
        raise ConflictError(
            "expect: the records to erase are not those of the dry run; rehearse again with dry_run"
        )
    if order.dry_run:
        return receipt
    if order.block and subject is not None:
        block(shelf, subject.hash, order)
    if receipt.deferred:
        request(shelf, order)
    anchor = _carried_out(shelf, order, plan, even_nothing=not receipt.deferred)
    owing = outstanding(shelf, receipt.subject_hashes)
    complete = not (owing or receipt.deferred)
    return replace(
        receipt,
        bystander_keys=(),
        adapters=tuple(sorted({*receipt.adapters, *owing})),
        outstanding=owing,
        complete=complete,
        completed_at=order.now if complete else None,
        anchor=anchor,
    )


def swept(shelf: Shelf, order: Sweep) -> Receipt:
    """Erase what the sweep says, all at once."""
    due = frozenset(item for item, row in shelf.rows.items() if _is_due(row, order))
    plan = _planned(shelf, due, about=None, keep_all=False)
    receipt = _receipt(shelf, order, plan)
    anchor = _carried_out(shelf, order, plan, even_nothing=False)
    complete = not (receipt.adapters or plan.kept & due)
    return replace(
        receipt,
        subject_hashes=(),
        held=len(plan.kept & due),
        outstanding=receipt.adapters,
        complete=complete,
        completed_at=order.now if complete else None,
        closure="",
        anchor=anchor,
    )


def outstanding(shelf: Shelf, subject_hashes: Collection[str]) -> tuple[str, ...]:
    """Return the adapters that owe a purge for these people."""
    people = frozenset(subject_hashes)
    return tuple(
        sorted({adapter for (adapter, _), owed in shelf.debts.items() if owed.people & people})
    )


def _planned(shelf: Shelf, roots: frozenset[UUID], *, about: str | None, keep_all: bool) -> _Plan:
    """Part the closure into what goes and what a hold keeps, and say whom it is counted for.

    That is the one person named, or everybody.
    """
    asked = frozenset(lineage.closure(roots, shelf.derived_from))
    kept = asked
    if not keep_all:
        sources = {item: shelf.rows[item].record.sources for item in asked}
        kept = frozenset(lineage.spared(filter(shelf.is_held, asked), asked, sources))
    made = {item for record_id in kept for item in shelf.derived_from.get(record_id, ())}
    free = frozenset((roots | made) - kept)
    gone = frozenset(lineage.closure(free, shelf.derived_from))
    counted: dict[str, set[UUID]] = {} if about is None else {about: set(gone)}
    if about is None:
        for record_id in gone:
            for subject_hash in shelf.rows[record_id].subjects.values():
                counted.setdefault(subject_hash, set()).add(record_id)
    lost = {item: sources for item, sources in shelf.artefacts.items() if sources & gone}
    return _Plan(roots=free, asked=asked, gone=gone, kept=kept, about=counted, lost=lost)


def _roots(shelf: Shelf, order: Order) -> Iterable[UUID]:
    if order.subject is None:
        return [] if order.record_id is None else [shelf.row(order.record_id).record.record_id]
    key, kinds = order.subject.key, order.kinds
    return [record_id for record_id, row in shelf.rows.items() if _is_root(row, key, kinds)]


def _is_root(row: Row, key: str, kinds: Collection[str] | None) -> bool:
    # Narrowed by kind, a person's summary may be all there is to start from.
    if kinds is None:
        return key in row.direct
    return key in row.subjects and row.record.kind in kinds


def _is_due(row: Row, order: Sweep) -> bool:
    if order.scope == "tenant" or row.expired(order.now):
        return True
    of_kind = order.kinds is None or row.record.kind in order.kinds
    return order.before is not None and of_kind and row.record.occurred_at < order.before


def _counts(shelf: Shelf, record_ids: Collection[UUID], plan: _Plan) -> Counts:
    records = [shelf.rows[record_id].record for record_id in record_ids]
    memories = sum(record.origin == "remembered" for record in records)
    return Counts(
        memories=memories,
        derived=len(records) - memories,
        provenance_edges=sum(len(record.sources) for record in records),
        artefacts=sum(not sources.isdisjoint(record_ids) for sources in plan.lost.values()),
    )


def _described(shelf: Shelf, order: Order, plan: _Plan, roots: frozenset[UUID]) -> Receipt:
    """Return the receipt of an order, with whom it names and whom it touches."""
    subject = order.subject
    if subject is None:
        named = set().union(*(shelf.rows[root].subjects for root in roots))
        hashes = set().union(*(shelf.rows[item].subjects.values() for item in plan.asked))
    else:
        named, hashes = {subject.key}, {subject.hash}
    everybody = set().union(*(shelf.rows[record_id].subjects for record_id in plan.gone))
    bystanders = everybody - named
    return replace(
        _receipt(shelf, order, plan),
        subject_hashes=tuple(sorted(hashes)),
        bystanders=len(bystanders),
        bystander_keys=tuple(sorted(bystanders)),
        deferred=bool(plan.kept) or (subject is not None and subject.hash in shelf.held),
        dry_run=order.dry_run,
    )


def _receipt(shelf: Shelf, order: Order | Sweep, plan: _Plan) -> Receipt:
    return Receipt(
        erasure_id=order.erasure_id,
        tenant_key=shelf.tenant_key,
        subject_hashes=(),
        reason=order.reason,
        scope=order.scope,
        counts=_counts(shelf, plan.gone, plan),
        kinds=dict(sorted(Counter(shelf.rows[item].record.kind for item in plan.gone).items())),
        cascade_depth=lineage.depth(plan.roots, shelf.derived_from),
        bystanders=0,
        held=len(plan.kept),
        adapters=tuple(sorted({adapter for adapter, _ in plan.lost})),
        complete=False,
        closure=fingerprint.closure_digest(plan.asked),
        erased_at=order.now,
    )


def _carried_out(
    shelf: Shelf, order: Order | Sweep, plan: _Plan, *, even_nothing: bool
) -> Anchor | None:
    """Remove what goes and leave the evidence; where nothing goes, only if ``even_nothing``."""
    if not plan.gone and not even_nothing:
        return None
    for subject_hash in sorted(plan.about):
        _bury(shelf, order, subject_hash, _counts(shelf, plan.about[subject_hash], plan))
    _owe(shelf, plan, order)
    shelf.remove(plan.gone)
    newest = shelf.tombstones[-1]
    return Anchor(seq=newest.seq, digest=newest.digest)


def _bury(shelf: Shelf, order: Order | Sweep, subject_hash: str, counts: Counts) -> None:
    tombstone = Tombstone(
        tenant_key=shelf.tenant_key,
        seq=len(shelf.tombstones) + 1,
        erasure_id=order.erasure_id,
        subject_hash=subject_hash,
        reason=order.reason,
        scope=order.scope,
        memories=counts.memories,
        derived=counts.derived,
        provenance_edges=counts.provenance_edges,
        artefacts=counts.artefacts,
        erased_at=order.now,
        format=fingerprint.TOMBSTONE_FORMAT,
        previous=shelf.tombstones[-1].digest if shelf.tombstones else "",
        digest="",
    )
    shelf.tombstones.append(replace(tombstone, digest=fingerprint.tombstone_digest(tombstone)))


def _owe(shelf: Shelf, plan: _Plan, order: Order | Sweep) -> None:
    for item, sources in plan.lost.items():
        # Those of records that stay too: none of them may be held when it is purged.
        people = {
            subject_hash
            for source in sources
            for subject_hash in shelf.rows[source].subjects.values()
        }
        shelf.debts[item] = Owed(
            people=frozenset(people), erasure_id=order.erasure_id, since=order.now
        )
        del shelf.artefacts[item]
