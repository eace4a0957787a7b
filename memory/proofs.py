"""What an anchor proves of one person's tombstones, without a database. Pure.

An anchor is a position of a tenant's chain and its digest, kept where the chain's keepers cannot
reach. Each digest covers the one before it, so whoever has an anchor and the tombstones up to it
can tell that none of these was changed, moved, added or left out since the anchor was taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from uuid import UUID

from memory import entries, tombstones, validation
from memory.errors import InvalidInputError
from memory.types import Anchor, Tombstone

__all__ = ["Proof", "prove"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What the anchor vouches for, of what was asked for; oldest first.

    ``whole`` is true where the lines began with the first tombstone of the chain: then there are no
    others up to the anchor. ``beyond`` counts those asked for that came after the anchor, which
    hang together with it and which nothing vouches for yet.

    >>> from memory import Proof
    >>> Proof(tombstones=(), whole=True, beyond=0)
    Proof(whole=True, beyond=0)
    """

    tombstones: tuple[Tombstone, ...] = field(repr=False)
    whole: bool
    beyond: int


def prove(
    lines: Iterable[str | bytes],
    *,
    anchor: Anchor,
    subject_hash: str | None = None,
    erasure_id: UUID | str | None = None,
) -> Proof:
    """Verify a chain up to an anchor and return the tombstones of a person, or of an erasure.

    ``lines`` are a stream (:mod:`memory.tombstones`), read to its end, or a part of one tenant's
    chain: tombstones' lines, one after the other, from anywhere up to the anchor at least. The line
    of one tombstone is enough where the anchor is its own. Given neither a hash nor an id, all that
    the anchor vouches for is returned; nothing found is no error.

    Raises ``InvalidInputError``, which names the line and the rule and never a value: for anything
    that was edited, moved or left out, and where no chain passes through the anchor.

    >>> import memory
    >>> shop = memory.Memory().for_tenant("shop")
    >>> receipt = await shop.forget(subject_key="customer:dana")
    >>> kept = receipt.anchor  # on paper, or in another system
    >>> lines = [memory.tombstones.line(stone) for stone in await shop.erasure_history()]
    >>> memory.prove(lines, anchor=kept, erasure_id=receipt.erasure_id).whole
    True
    """
    if not isinstance(anchor, Anchor):
        raise InvalidInputError("anchor", "must be a position in the chain, not None")
    if subject_hash is not None and not entries.is_hash(subject_hash):
        raise InvalidInputError("subject_hash", "must be 64 hexadecimal digits")
    erasure = None if erasure_id is None else validation.record_id(erasure_id, "erasure_id")
    found = _Found(anchor, subject_hash, erasure)
    for stone in _verified(lines):
        found.see(stone)
    return found.proof()


class _Found:
    """What is found of one tenant, which is the one whose chain passes through the anchor."""

    def __init__(self, anchor: Anchor, subject_hash: str | None, erasure_id: UUID | None) -> None:
        self._anchor = anchor
        self._subject_hash = subject_hash
        self._erasure_id = erasure_id
        self._passed: str | None = None
        self._tenant: str | None = None
        self._whole = False
        self._before: list[Tombstone] = []
        self._beyond = 0

    def see(self, stone: Tombstone) -> None:
        if self._passed is not None and stone.tenant_key != self._passed:
            return
        if stone.tenant_key != self._tenant:
            self._tenant, self._whole, self._before = stone.tenant_key, stone.seq == 1, []
        if self._asked_for(stone):
            if self._passed is None:
                self._before.append(stone)
            else:
                self._beyond += 1
        if Anchor(seq=stone.seq, digest=stone.digest) == self._anchor:
            self._passed = stone.tenant_key

    def _asked_for(self, stone: Tombstone) -> bool:
        return self._subject_hash in (None, stone.subject_hash) and self._erasure_id in (
            None,
            stone.erasure_id,
        )

    def proof(self) -> Proof:
        if self._passed is None:
            raise InvalidInputError("tombstones", "must pass through the anchor")
        return Proof(tombstones=tuple(self._before), whole=self._whole, beyond=self._beyond)


def _verified(lines: Iterable[str | bytes]) -> Iterator[Tombstone]:
    """Yield the tombstones of a stream, or of a part of a chain, each verified with those before.

    A stream says with its first line that it is one, and is then held to its end.
    """
    rest = entries.filled(lines)
    for text in rest:
        if entries.parsed(text, 1).get("type") == "stream":
            yield from tombstones.read(chain([text], rest))
        else:
            yield from _part(chain([text], rest))


def _part(lines: Iterable[str | bytes]) -> Iterator[Tombstone]:
    before: Tombstone | None = None
    for number, text in enumerate(lines, 1):
        values = entries.parsed(text, number)
        stone = entries.tombstone(values, number)
        if before is None:
            # The first of a chain has nothing before it, and no other has that.
            follows = (stone.seq == 1) == (stone.previous == "")
        else:
            follows = (stone.tenant_key, stone.seq, stone.previous) == (
                before.tenant_key,
                before.seq + 1,
                before.digest,
            )
        if values["type"] != "tombstone" or not follows:
            raise InvalidInputError(f"tombstones.{number}", "must be the next of its chain")
        before = stone
        yield stone
