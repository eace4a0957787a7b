"""The stream of tombstones beside the backups: JSON lines, written and verified. Pure.

A stream begins with a line that names its format. Then come, tenant by tenant, every tombstone of
the chain from its first on, and a ``head`` line with the position the chain ends at; last a line
that counts the tombstones. Each digest covers every field and the digest before it, so an edited,
missing or moved line shows, and so does a stream that was cut short. Who rewrites the whole stream
can compute every digest anew: an anchor kept elsewhere finds that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from memory import entries, validation
from memory.errors import InvalidInputError
from memory.types import Anchor, Tombstone

__all__ = ["Verified", "footer", "head", "header", "line", "read", "verify"]

STREAM: Final = "erasable-memory tombstones 1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    """What a stream that holds together says: how much it holds, and where each chain ends.

    ``anchors`` maps a tenant to its newest position; keep it, and give it to the next check.

    >>> from memory import tombstones
    >>> tombstones.verify([tombstones.header(), tombstones.footer(0)])
    Verified(tombstones=0)
    """

    tombstones: int
    anchors: Mapping[str, Anchor] = field(repr=False)


def header() -> str:
    """Return the first line of a stream.

    >>> from memory import tombstones
    >>> tombstones.header()
    '{"type":"stream","format":"erasable-memory tombstones 1"}'
    """
    return _json({"type": "stream", "format": STREAM})


def line(tombstone: Tombstone) -> str:
    """Return a tombstone's line.

    >>> import json
    >>> from memory import Memory, tombstones
    >>> shop = Memory().for_tenant("shop")
    >>> receipt = await shop.forget(subject_key="customer:dana")
    >>> [stone] = await shop.erasure_history()
    >>> json.loads(tombstones.line(stone))["seq"]
    1
    """
    return _json(tombstone.to_dict())


def head(tenant_key: str, anchor: Anchor) -> str:
    """Return the line that ends a tenant's chain.

    >>> from memory import Anchor, tombstones
    >>> tombstones.head("shop", Anchor(seq=1, digest="0" * 64))
    '{"type":"head","tenant_key":"shop","seq":1,"digest":"000...000"}'
    """
    values = {"tenant_key": tenant_key, "seq": anchor.seq, "digest": anchor.digest}
    return _json({"type": "head", **values})


def footer(tombstones: int) -> str:
    """Return the last line of a stream.

    >>> from memory import tombstones
    >>> tombstones.footer(3)
    '{"type":"end","tombstones":3}'
    """
    return _json({"type": "end", "tombstones": tombstones})


def verify(lines: Iterable[str | bytes], anchors: Mapping[str, Anchor] | None = None) -> Verified:
    """Read a stream to its end and say what it holds; raises what :func:`read` raises.

    >>> import memory
    >>> lines = [line async for line in memory.export_tombstones(owner_url)]
    >>> memory.tombstones.verify(lines).tombstones
    0
    """
    ends: dict[str, Anchor] = {}
    count = 0
    for stone in read(lines, anchors):
        ends[stone.tenant_key] = Anchor(seq=stone.seq, digest=stone.digest)
        count += 1
    return Verified(tombstones=count, anchors=ends)


def read(
    lines: Iterable[str | bytes], anchors: Mapping[str, Anchor] | None = None
) -> Iterator[Tombstone]:
    """Yield the tombstones of a stream, each verified with the chain up to it.

    ``anchors`` are positions kept elsewhere: a chain that does not pass through its tenant's is
    refused, and so is a stream without that tenant. Holds one line at a time and a set of the
    tenants. What was yielded is final only once the stream has ended: read it to its end before
    acting on it.

    Raises ``InvalidInputError``, which names the line and the rule and never a value.

    >>> from memory import tombstones
    >>> list(tombstones.read([tombstones.header(), tombstones.footer(0)]))
    []
    """
    return _Reader(validation.anchors(anchors)).tombstones(lines)


class _Reader:
    """Follows a stream line by line."""

    def __init__(self, anchors: dict[str, Anchor]) -> None:
        self._anchors = anchors
        self._number = 0
        self._count = 0
        self._newest: Tombstone | None = None
        self._finished: set[str] = set()
        self._ended = False

    def tombstones(self, lines: Iterable[str | bytes]) -> Iterator[Tombstone]:
        for text in entries.filled(lines):
            self._number += 1
            stone = self._line(entries.parsed(text, self._number))
            if stone is not None:
                yield stone
        if not self._ended:
            raise InvalidInputError("tombstones", "must end with its last line: it was cut short")
        if self._anchors:
            raise InvalidInputError("tombstones", "must hold the position of every anchor")

    def _line(self, values: dict[str, Any]) -> Tombstone | None:
        kind = values.get("type")
        self._require(not self._ended, "must not follow the last line")
        if self._number == 1:
            self._require(
                kind == "stream" and values.get("format") == STREAM, f"must say {STREAM!r}"
            )
        elif kind == "tombstone":
            return self._tombstone(values)
        elif kind == "head":
            self._head(values)
        elif kind == "end":
            self._require(self._newest is None, "must follow the head of a tenant")
            counted = values.get("tombstones")
            self._require(
                entries.is_count(counted) and counted == self._count, "must count the tombstones"
            )
            self._ended = True
        else:
            self._require(False, "must be a tombstone, a head or the end")
        return None

    def _tombstone(self, values: dict[str, Any]) -> Tombstone:
        found = entries.tombstone(values, self._number)
        newest = self._newest
        if newest is None:
            self._require(found.tenant_key not in self._finished, "must follow its tenant's others")
        else:
            self._require(found.tenant_key == newest.tenant_key, "must follow the head of a tenant")
        seq, previous = (0, "") if newest is None else (newest.seq, newest.digest)
        self._require(found.seq == seq + 1, "must be the next of its chain")
        self._require(found.previous == previous, "must continue its chain")
        anchor = self._anchors.get(found.tenant_key)
        if anchor is not None and anchor.seq == found.seq:
            self._require(anchor.digest == found.digest, "must pass through its anchor")
            del self._anchors[found.tenant_key]
        self._newest = found
        self._count += 1
        return found

    def _head(self, values: dict[str, Any]) -> None:
        newest = self._newest
        ended = None if newest is None else (newest.tenant_key, newest.seq, newest.digest)
        given = tuple(values.get(name) for name in ("tenant_key", "seq", "digest"))
        ends = given == ended and entries.is_count(values["seq"])
        self._require(ends, "must be the end of the chain before it")
        self._finished.add(values["tenant_key"])
        self._newest = None

    def _require(self, holds: bool, rule: str) -> None:
        if not holds:
            raise InvalidInputError(f"tombstones.{self._number}", rule)


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"))
