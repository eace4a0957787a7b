"""Erasing from a shelf: what goes, what is counted, and the evidence that stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from memory import fingerprint, lineage
from memory.errors import ConflictError
from memory.ports import Order
from memory.stores.in_memory.shelf import Owed, Row, Shelf
from memory.types import Anchor, Counts, Receipt, Tombstone

__all__ = ["erase", "outstanding"]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class _Plan:
    """What an order would erase: ``about`` maps a subject hash to the records counted for it."""

    roots: frozenset[UUID]
    gone: frozenset[UUID]
    about: dict[str, set[UUID]]
    bystanders: frozenset[str]
    lost: dict[tuple[str, str], set[UUID]]


def erase(shelf: Shelf, order: Order) -> Receipt:
    """Carry the order out, or only describe it for a dry run."""
    plan = _planned(shelf, order)
    receipt = _receipt(shelf, order, plan)
    if order.expect not in (None, receipt.closure):
        raise ConflictError(
            "expect: the records to erase are not those of the dry run; rehearse again with dry_run"
        )
    if order.dry_run:
        return receipt
    for subject_hash in sorted(plan.about):
        _bury(shelf, order, subject_hash, _counts(shelf, plan.about[subject_hash], plan))
    _owe(shelf, plan)
    shelf.remove(plan.gone)
    newest = shelf.tombstones[-1]
    owing = outstanding(shelf, receipt.subject_hashes)
    return replace(
        receipt,
        bystander_keys=(),
        adapters=tuple(sorted({*receipt.adapters, *owing})),
        outstanding=owing,
        complete=not owing,
        completed_at=None if owing else order.now,
        anchor=Anchor(seq=newest.seq, digest=newest.digest),
    )


def outstanding(shelf: Shelf, subject_hashes: Collection[str]) -> tuple[str, ...]:
    """Return the adapters that owe a purge for these people."""
    people = frozenset(subject_hashes)
    return tuple(
        sorted({adapter for (adapter, _), owed in shelf.debts.items() if owed.people & people})
    )


def _planned(shelf: Shelf, order: Order) -> _Plan:
    roots = frozenset(_roots(shelf, order))
    gone = frozenset(lineage.closure(roots, shelf.derived_from))
    about: dict[str, set[UUID]] = {}
    if order.subject is not None:
        named = {order.subject.key}
        about[order.subject.hash] = set(gone)
    else:
        named = set().union(*(shelf.rows[root].subjects for root in roots))
        for record_id in gone:
            for subject_hash in shelf.rows[record_id].subjects.values():
                about.setdefault(subject_hash, set()).add(record_id)
    everybody = set().union(*(shelf.rows[record_id].subjects for record_id in gone))
    lost = {item: sources for item, sources in shelf.artefacts.items() if sources & gone}
    return _Plan(
        roots=roots, gone=gone, about=about, bystanders=frozenset(everybody - named), lost=lost
    )


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


def _counts(shelf: Shelf, record_ids: Collection[UUID], plan: _Plan) -> Counts:
    records = [shelf.rows[record_id].record for record_id in record_ids]
    memories = sum(record.origin == "remembered" for record in records)
    return Counts(
        memories=memories,
        derived=len(records) - memories,
        provenance_edges=sum(len(record.sources) for record in records),
        artefacts=sum(not sources.isdisjoint(record_ids) for sources in plan.lost.values()),
    )


def _receipt(shelf: Shelf, order: Order, plan: _Plan) -> Receipt:
    return Receipt(
        erasure_id=order.erasure_id,
        tenant_key=shelf.tenant_key,
        subject_hashes=tuple(sorted(plan.about)),
        reason=order.reason,
        scope=order.scope,
        counts=_counts(shelf, plan.gone, plan),
        kinds=dict(sorted(Counter(shelf.rows[item].record.kind for item in plan.gone).items())),
        cascade_depth=lineage.depth(plan.roots, shelf.derived_from),
        bystanders=len(plan.bystanders),
        bystander_keys=tuple(sorted(plan.bystanders)),
        adapters=tuple(sorted({adapter for adapter, _ in plan.lost})),
        complete=False,
        dry_run=order.dry_run,
        closure=fingerprint.closure_digest(plan.gone),
        erased_at=order.now,
    )


def _bury(shelf: Shelf, order: Order, subject_hash: str, counts: Counts) -> None:
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


def _owe(shelf: Shelf, plan: _Plan) -> None:
    for item, sources in plan.lost.items():
        people = {
            subject_hash
            for source in sources & plan.gone
            for subject_hash in shelf.rows[source].subjects.values()
        }
        shelf.debts[item] = Owed(people=frozenset(people))
        del shelf.artefacts[item]
