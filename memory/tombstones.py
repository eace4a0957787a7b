"""The stream of tombstones beside the backups: JSON lines, written and verified. Pure.

A stream begins with a line that names its format. Then come, tenant by tenant, every tombstone of
the chain from its first on, and a ``head`` line with the position the chain ends at; last a line
that counts the tombstones. Each digest covers every field and the digest before it, so an edited,
missing or moved line shows, and so does a stream that was cut short. Who rewrites the whole stream
can compute every digest anew: an anchor kept elsewhere finds that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, cast, get_args
from uuid import UUID

from memory import validation
from memory.errors import InvalidInputError
from memory.fingerprint import TOMBSTONE_FORMAT, tombstone_digest
from memory.types import Anchor, Reason, Scope, Tombstone

__all__ = ["Verified", "footer", "head", "header", "line", "read", "verify"]

STREAM: Final = "erasable-memory tombstones 1"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HEX: Final = frozenset("0123456789abcdef")
_COUNTS: Final = ("memories", "derived", "provenance_edges", "artefacts")


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
        for text in lines:
            if isinstance(text, str | bytes) and not text.strip():
                continue
            self._number += 1
            stone = self._line(self._parsed(text))
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
            self._require(values.get("tombstones") == self._count, "must count the tombstones")
            self._ended = True
        else:
            self._require(False, "must be a tombstone, a head or the end")
        return None

    def _tombstone(self, values: dict[str, Any]) -> Tombstone:
        found = self._checked(values)
        newest = self._newest
        if newest is None:
            self._require(found.tenant_key not in self._finished, "must follow its tenant's others")
        else:
            self._require(found.tenant_key == newest.tenant_key, "must follow the head of a tenant")
        seq, previous = (0, "") if newest is None else (newest.seq, newest.digest)
        self._require(found.seq == seq + 1, "must be the next of its chain")
        self._require(found.previous == previous, "must continue its chain")
        self._require(found.digest == tombstone_digest(found), "must have the digest of its fields")
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
        self._require(given == ended, "must be the end of the chain before it")
        self._finished.add(values["tenant_key"])
        self._newest = None

    def _parsed(self, text: str | bytes) -> dict[str, Any]:
        # What json raises quotes the text, so it must not become the context of ours.
        try:
            values = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            values = None
        self._require(isinstance(values, dict), "must be a JSON object")
        return cast("dict[str, Any]", values)

    def _checked(self, values: dict[str, Any]) -> Tombstone:
        names = {item.name for item in fields(Tombstone)}
        self._require(values.keys() == names | {"type"}, "must have the fields of a tombstone")
        self._require(values["format"] == TOMBSTONE_FORMAT, "must be of a format known here")
        self._require(
            all(_is_count(values[name]) for name in (*_COUNTS, "seq")), "must have whole numbers"
        )
        self._require(_is_key(values["tenant_key"]), "must name its tenant")
        self._require(
            values["reason"] in get_args(Reason) and values["scope"] in get_args(Scope),
            "must have a known reason and scope",
        )
        self._require(
            _is_hash(values["subject_hash"])
            and _is_hash(values["digest"])
            and (values["previous"] == "" or _is_hash(values["previous"])),
            "must have hashes of 64 hexadecimal digits",
        )
        erasure_id, erased_at = _uuid(values["erasure_id"]), _moment(values["erased_at"])
        self._require(
            erasure_id is not None and erased_at is not None, "must have an id and a time"
        )
        given = {name: values[name] for name in names - {"erasure_id", "erased_at"}}
        return Tombstone(
            **given, erasure_id=cast("UUID", erasure_id), erased_at=cast("datetime", erased_at)
        )

    def _require(self, holds: bool, rule: str) -> None:
        if not holds:
            raise InvalidInputError(f"tombstones.{self._number}", rule)


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_key(value: object) -> bool:
    # A lone surrogate has no UTF-8, and so no digest.
    return (
        isinstance(value, str) and value != "" and not any("\ud800" <= c <= "\udfff" for c in value)
    )


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= _HEX


def _uuid(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _moment(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
