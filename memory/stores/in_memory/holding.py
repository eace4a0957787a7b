"""Holds and their release, which carries out the erasures that waited for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memory.ports import Order, Subject
from memory.stores.in_memory.deciding import complete, decide, waiting
from memory.stores.in_memory.erasing import erase
from memory.stores.in_memory.shelf import Shelf
from memory.types import Decision, Receipt, Release

__all__ = ["hold", "readmit", "release"]


def hold(shelf: Shelf, subject: Subject, now: datetime) -> Decision:
    """Keep everything about the person."""
    shelf.held.add(subject.hash)
    return decide(shelf, subject.hash, "hold", now)


def readmit(shelf: Shelf, subject: Subject, now: datetime) -> Decision:
    """Admit writes about the person again."""
    shelf.blocked.discard(subject.hash)
    return decide(shelf, subject.hash, "readmit", now)


def release(shelf: Shelf, subject: Subject, now: datetime) -> Release:
    """Lift the hold and ask again for every erasure that was deferred."""
    shelf.held.discard(subject.hash)
    decision = decide(shelf, subject.hash, "release", now)
    receipts = []
    for request in waiting(shelf):
        receipt = _again(shelf, request, now)
        if receipt is None or not receipt.deferred:
            complete(shelf, request.erasure_id, now)
        if receipt is not None and (receipt.counts.records or not receipt.deferred):
            receipts.append(receipt)
    return Release(decision=decision, receipts=tuple(receipts))


def _again(shelf: Shelf, request: Decision, now: datetime) -> Receipt | None:
    """Carry out a deferred erasure as far as it goes; None where its one record is gone."""
    if request.erasure_id is None or request.reason is None or request.scope is None:
        return None
    order = Order(
        erasure_id=request.erasure_id,
        reason=request.reason,
        scope=request.scope,
        kinds=request.kinds or None,
        record_id=request.record_id,
        now=now,
    )
    if request.record_id is None:
        keys = (
            key
            for row in shelf.rows.values()
            for key, hash_ in row.subjects.items()
            if hash_ == request.subject_hash
        )
        # Nobody has the empty key: of somebody who is gone, a tombstone says zero.
        subject = Subject(key=next(keys, ""), hash=request.subject_hash)
        return erase(shelf, replace(order, subject=subject))
    return erase(shelf, order) if request.record_id in shelf.rows else None
