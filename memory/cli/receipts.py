"""What an erasure did, for people and for programs; no key is in either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, Final

from memory.cli.printing import say, table
from memory.plain import plain
from memory.types import Decision, Receipt

__all__ = [
    "decision_values",
    "receipt_values",
    "say_what_is_left",
    "say_what_to_expect",
    "show_receipt",
]

_KEYS: Final = {"tenant_key", "bystander_keys"}


def receipt_values(receipt: Receipt) -> dict[str, Any]:
    """Return plain JSON types."""
    values = {
        item.name: plain(getattr(receipt, item.name))
        for item in fields(receipt)
        if item.name not in _KEYS
    }
    values["counts"] = {**asdict(receipt.counts), "records": receipt.counts.records}
    if receipt.anchor is not None:  # as memory check --anchors reads it
        values["anchor"] = {"tenant_key": receipt.tenant_key, **asdict(receipt.anchor)}
    return values


def decision_values(decision: Decision) -> dict[str, Any]:
    """Return plain JSON types."""
    return {item.name: plain(getattr(decision, item.name)) for item in fields(decision)}


def show_receipt(receipt: Receipt) -> None:
    """Print a table of what went, or of what would go."""
    closure = ("closure", receipt.closure or "none")
    if receipt.dry_run:  # its id is of no erasure
        table(receipt.title, closure, receipt.summary())
    else:
        erasure = ("erasure", str(receipt.erasure_id))
        table(receipt.title, erasure, [*receipt.summary(), closure])


def say_what_to_expect(plan: Receipt, *, known: bool) -> bool:
    """Say what keeps an erasure from being what it may be taken for, and whether anything does."""
    if plan.deferred:
        kept = (
            f"{plan.held} records are kept by a legal hold" if plan.held else "a hold is in force"
        )
        say(f"memory: {kept}: the request would be recorded, and release completes it")
    if not known:
        say("memory: nothing is known of this person, nor was: is the key right?")
    return plan.deferred or not known


def say_what_is_left(receipts: Sequence[Receipt]) -> bool:
    """Say what still has to be done, and whether there is anything."""
    held = sum(receipt.held for receipt in receipts)
    outstanding = sorted({name for receipt in receipts for name in receipt.outstanding})
    if held:
        say(f"memory: {held} records stay under a legal hold")
    if any(receipt.deferred for receipt in receipts):
        say("memory: the request is recorded, and release completes it")
    if outstanding:
        say(f"memory: to be purged from {', '.join(outstanding)} still; see memory purge --help")
    return not all(receipt.complete for receipt in receipts)
