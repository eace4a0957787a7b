"""What was decided about a person: rows that are only ever added."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from memory.ports import Order
from memory.stores.in_memory.shelf import Shelf
from memory.types import Action, Decision

__all__ = ["block", "complete", "decide", "request", "waiting"]


def decide(
    shelf: Shelf, subject_hash: str, action: Action, now: datetime, **asked: Any
) -> Decision:
    """Add a decision; ``asked`` are its further fields."""
    decision = Decision(
        seq=len(shelf.decisions) + 1, subject_hash=subject_hash, action=action, at=now, **asked
    )
    shelf.decisions.append(decision)
    return decision


def block(shelf: Shelf, subject_hash: str, order: Order) -> None:
    """Refuse what is written about the person from now on."""
    shelf.blocked.add(subject_hash)
    decide(shelf, subject_hash, "block", order.now, erasure_id=order.erasure_id)


def request(shelf: Shelf, order: Order) -> None:
    """Record an erasure that a hold defers, unless it is being asked for once more."""
    if any(one.erasure_id == order.erasure_id for one in waiting(shelf)):
        return
    for subject_hash in _people(shelf, order):
        decide(
            shelf,
            subject_hash,
            "request",
            order.now,
            erasure_id=order.erasure_id,
            reason=order.reason,
            scope=order.scope,
            kinds=order.kinds or (),
            record_id=order.record_id,
        )


def complete(shelf: Shelf, erasure_id: UUID | None, now: datetime) -> None:
    """Say of everybody whose request this was that it is complete."""
    asked = [one for one in shelf.decisions if one.action == "request"]
    for one in asked:
        if one.erasure_id == erasure_id:
            decide(shelf, one.subject_hash, "complete", now, erasure_id=erasure_id)


def waiting(shelf: Shelf) -> list[Decision]:
    """Return the requests that no release has completed yet: one for each erasure, oldest first."""
    done = {one.erasure_id for one in shelf.decisions if one.action == "complete"}
    asked = [one for one in shelf.decisions if one.action == "request"]
    return list({one.erasure_id: one for one in asked if one.erasure_id not in done}.values())


def _people(shelf: Shelf, order: Order) -> list[str]:
    if order.subject is not None:
        return [order.subject.hash]
    if order.record_id is None:
        return []
    return sorted(set(shelf.row(order.record_id).subjects.values()))
