"""What belongs together on a certificate: tombstones, receipt, indexes, anchor. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Final

from memory import entries, validation
from memory.errors import InvalidInputError
from memory.types import Anchor, Counts, Receipt, Scope, Tombstone

__all__ = [
    "IndexState",
    "Remaining",
    "check_fit",
    "checked_anchor",
    "checked_receipt",
    "indexes",
    "of_one_erasure",
]

# A receipt of these scopes names its people, and one of the first two is about one person alone.
_ONE: Final[frozenset[Scope]] = frozenset({"subject", "kinds"})
_NAMED: Final[frozenset[Scope]] = _ONE | {"record"}


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexState:
    """What one external index did of an erasure: artefacts ``purged``, the last at ``purged_at``.

    ``owed`` are those that it has not confirmed. None for a number: it is not known how many.

    >>> from memory import IndexState
    >>> IndexState(adapter="vectors", purged=2, owed=0)
    IndexState(purged=2, purged_at=None, owed=0)
    """

    adapter: str = field(repr=False)
    purged: int | None
    purged_at: datetime | None = None
    owed: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Remaining:
    """Records about a person that are there and from before an erasure.

    It was to take those that are ``due``. Of the ``unclear`` ones the evidence does not tell: after
    an erasure of the person, what is about others too may have been related to the person since;
    after a sweep that met a hold, what had not expired may have been due by its age.

    >>> from memory import Remaining
    >>> Remaining(due=0)
    Remaining(due=0, unclear=0)
    """

    due: int
    unclear: int = 0


def of_one_erasure(evidence: object, receipt: Receipt | None = None) -> tuple[Tombstone, ...]:
    """Return the tombstones, oldest first: of one erasure and one person, each as it was digested.

    A receipt says of which erasure, where the person has several. Raises ``InvalidInputError``.
    """
    given = (evidence,) if isinstance(evidence, Tombstone) else evidence
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or not given:
        raise InvalidInputError("evidence", "must be a tombstone, or several")
    stones = [stone for stone in given if isinstance(stone, Tombstone)]
    if len(stones) != len(given):
        raise InvalidInputError("evidence", "must be tombstones: a receipt alone proves nothing")
    for stone in stones:
        rule = entries.broken_rule(stone)
        if rule:
            raise InvalidInputError("evidence", rule)
    people = {(stone.tenant_key, stone.subject_hash) for stone in stones}
    if len(people) != 1 or len({stone.seq for stone in stones}) != len(stones):
        raise InvalidInputError("evidence", "must be of one person, each tombstone once")
    if receipt is not None:
        stones = [stone for stone in stones if stone.erasure_id == receipt.erasure_id]
        if not stones:
            raise InvalidInputError("receipt", "must be of the same erasure as the tombstones")
    if len({stone.erasure_id for stone in stones}) != 1:
        raise InvalidInputError("evidence", "must be of one erasure, or come with its receipt")
    return tuple(sorted(stones, key=lambda stone: stone.seq))


def checked_receipt(receipt: object) -> Receipt | None:
    """Return what is a receipt of something that was done; raise ``InvalidInputError``."""
    if receipt is None:
        return None
    if not isinstance(receipt, Receipt) or not _is_sound(receipt):
        raise InvalidInputError("receipt", "must be a receipt")
    if receipt.dry_run:
        raise InvalidInputError("receipt", "must not be a dry run's: nothing was erased")
    return receipt


def check_fit(receipt: Receipt | None, stones: Sequence[Tombstone]) -> None:
    """Raise ``InvalidInputError`` unless these tombstones may be of the receipt's erasure."""
    if receipt is None:
        return
    if any(_of(stone) != _of(receipt) for stone in stones):
        raise InvalidInputError("receipt", "must be of the same erasure as the tombstones")
    if receipt.scope in _NAMED and stones[-1].subject_hash not in receipt.subject_hashes:
        raise InvalidInputError("receipt", "must be of the same person as the tombstones")
    anchor = receipt.anchor
    if any(
        anchor is not None and stone.seq == anchor.seq and stone.digest != anchor.digest
        for stone in stones
    ):
        raise InvalidInputError("receipt", "must have the digest of the tombstone at its anchor")
    if not _counts_fit(receipt, stones):
        raise InvalidInputError("receipt", "must have the counts of one of the tombstones")


def _of(evidence: Tombstone | Receipt) -> tuple[object, ...]:
    return evidence.tenant_key, evidence.erasure_id, evidence.reason, evidence.scope


def _is_sound(receipt: Receipt) -> bool:
    """Return whether what is read of a receipt here has the types that it says."""
    flags = (receipt.dry_run, receipt.deferred, receipt.complete)
    names = (receipt.adapters, receipt.outstanding, receipt.subject_hashes)
    return (
        all(isinstance(flag, bool) for flag in flags)
        and all(isinstance(those, tuple) for those in names)
        and all(isinstance(name, str) for those in names for name in those)
        and isinstance(receipt.counts, Counts)
        and all(entries.is_count(getattr(receipt.counts, item.name)) for item in fields(Counts))
        and entries.is_count(receipt.held)
        and isinstance(receipt.anchor, Anchor | None)
    )


def _counts_fit(receipt: Receipt, stones: Sequence[Tombstone]) -> bool:
    """Return whether one of the tombstones, one for each transaction, can be the receipt's.

    A person's own has the receipt's counts; where there are several people, the receipt has theirs
    together. What a hold kept whole left no tombstone at first.
    """
    if receipt.deferred and receipt.counts == Counts():
        return True
    names = [item.name for item in fields(Counts)]
    counts = [Counts(**{name: getattr(stone, name) for name in names}) for stone in stones]
    if receipt.scope in _ONE:
        return receipt.counts in counts
    return any(
        all(getattr(one, name) <= getattr(receipt.counts, name) for name in names) for one in counts
    )


def checked_anchor(anchor: object, stone: Tombstone) -> Anchor:
    """Return the anchor, or the tombstone's own for None; raise ``InvalidInputError``."""
    own = Anchor(seq=stone.seq, digest=stone.digest)
    if anchor is None:
        return own
    if not isinstance(anchor, Anchor) or not entries.is_count(anchor.seq) or anchor.seq < own.seq:
        raise InvalidInputError("anchor", "must be a position at the newest tombstone or after it")
    if not entries.is_hash(anchor.digest):
        raise InvalidInputError("anchor", "must have a digest of 64 hexadecimal digits")
    if anchor.seq == own.seq and anchor != own:
        raise InvalidInputError("anchor", "must have the digest of the tombstone at its position")
    return anchor


def indexes(
    receipt: Receipt | None, given: object, stones: Sequence[Tombstone]
) -> tuple[IndexState, ...] | None:
    """Return what is known of the indexes; None: nobody says. Raises ``InvalidInputError``.

    What is given goes before the receipt, whose indexes are older; of one that only the receipt
    knows, what it says stands. Nothing said of copies that were counted is nothing known.
    """
    if given is None and receipt is None:
        return None
    states = [] if given is None else _states(given)
    if receipt is not None:
        # What an earlier erasure left is outstanding too, though this one asked nothing of it.
        asked = receipt.adapters if given is None else ()
        names = {*asked, *receipt.outstanding} - {state.adapter for state in states}
        for name in sorted(names):
            owed = None if name in receipt.outstanding else 0
            states.append(IndexState(adapter=name, purged=None, owed=owed))
    if not states and any(stone.artefacts for stone in stones):
        return None
    return tuple(states)


def _states(given: object) -> list[IndexState]:
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidInputError("indexes", "must be states of indexes")
    for number, state in enumerate(given):
        if not isinstance(state, IndexState) or not isinstance(state.adapter, str):
            raise InvalidInputError(f"indexes.{number}", "must be the state of an index")
        for name in ("purged", "owed"):
            value = getattr(state, name)
            if value is not None and not entries.is_count(value):
                raise InvalidInputError(f"indexes.{number}.{name}", "must be a count, or None")
        if state.purged_at is not None:
            validation.moment(state.purged_at, f"indexes.{number}.purged_at")
    return list(given)
