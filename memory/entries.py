"""One line of a stream of tombstones, read with suspicion. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, get_args
from uuid import UUID

from memory import validation
from memory.errors import InvalidInputError
from memory.fingerprint import TOMBSTONE_FORMAT, tombstone_digest
from memory.plain import plain
from memory.types import Reason, Scope, Tombstone

__all__ = ["MAX_LINE", "broken_rule", "filled", "is_count", "is_hash", "parsed", "tombstone"]

MAX_LINE: Final = 8_192
"""The longest line that is read, in characters or bytes; a tombstone's takes a third of it."""

_HEX: Final = frozenset("0123456789abcdef")
_COUNTS: Final = ("memories", "derived", "provenance_edges", "artefacts")


def parsed(text: str | bytes, number: int) -> dict[str, Any]:
    """Return the object of a line; ``number`` names the line in an error."""
    values: Any = None
    # What json raises quotes the text, so it must not become the context of ours.
    if isinstance(text, str | bytes) and len(text) <= MAX_LINE:
        try:
            values = json.loads(text, object_pairs_hook=_object, parse_constant=_refused)
        except (ValueError, TypeError, RecursionError):
            values = None
    if not isinstance(values, dict):
        raise InvalidInputError(f"tombstones.{number}", "must be a JSON object, in one short line")
    return values


def tombstone(values: Mapping[str, Any], number: int) -> Tombstone:
    """Return the tombstone of a line's values, whose digest is that of its fields."""
    rule, found = _digested(values)
    if found is None:
        raise InvalidInputError(f"tombstones.{number}", rule)
    return found


def broken_rule(stone: Tombstone) -> str:
    """Return the rule that a tombstone made by hand breaks, or nothing."""
    if not isinstance(stone.erasure_id, UUID) or not isinstance(stone.erased_at, datetime):
        return "must have an id and a time"
    values = {item.name: getattr(stone, item.name) for item in fields(Tombstone)}
    erased_at = plain(validation.moment(stone.erased_at, "evidence.erased_at"))
    texts = {"type": "tombstone", "erasure_id": str(stone.erasure_id), "erased_at": erased_at}
    return _digested({**values, **texts})[0]


def _digested(values: Mapping[str, Any]) -> tuple[str, Tombstone | None]:
    rule, found = _checked(values)
    if found is not None and found.digest != tombstone_digest(found):
        rule, found = "must have the digest of its fields", None
    return rule, found


def _checked(values: Mapping[str, Any]) -> tuple[str, Tombstone | None]:
    """Return the tombstone, or the rule that its values break."""
    names = {item.name for item in fields(Tombstone)}
    if values.keys() != names | {"type"}:
        return "must have the fields of a tombstone", None
    if not is_count(values["format"]) or values["format"] != TOMBSTONE_FORMAT:
        return "must be of a format known here", None
    if not all(is_count(values[name]) for name in (*_COUNTS, "seq")):
        return "must have whole numbers", None
    if not _is_key(values["tenant_key"]):
        return "must name its tenant", None
    if values["reason"] not in get_args(Reason) or values["scope"] not in get_args(Scope):
        return "must have a known reason and scope", None
    hashes = [values["subject_hash"], values["digest"]]
    # Another value that is false, null or 0, is not the empty string before the first.
    if values["previous"] != "":
        hashes.append(values["previous"])
    if not all(is_hash(value) for value in hashes):
        return "must have hashes of 64 hexadecimal digits", None
    erasure_id, erased_at = _uuid(values["erasure_id"]), _moment(values["erased_at"])
    if erasure_id is None or erased_at is None:
        return "must have an id and a time, in the form they are written in", None
    given = {name: values[name] for name in names - {"erasure_id", "erased_at"}}
    return "", Tombstone(**given, erasure_id=erasure_id, erased_at=erased_at)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Of a key that is there twice every reader takes the one it likes.
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _refused(constant: str) -> None:
    raise ValueError


def is_count(value: object) -> bool:
    """Return whether a value is a whole number that a counter can have."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_key(value: object) -> bool:
    # A lone surrogate has no UTF-8, and so no digest.
    return (
        isinstance(value, str) and value != "" and not any("\ud800" <= c <= "\udfff" for c in value)
    )


def filled(lines: object) -> Iterator[str | bytes]:
    """Return the lines that have something on them; raise ``InvalidInputError`` where none can be.

    An asynchronous generator, as of an export, is none to be iterated here.
    """
    if not isinstance(lines, Iterable):
        raise InvalidInputError("tombstones", "must be lines: an open file, or a list")
    return (text for text in lines if not (isinstance(text, str | bytes) and not text.strip()))


def is_hash(value: object) -> bool:
    """Return whether a value is a hash as tombstones have it."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= _HEX


def _uuid(value: object) -> UUID | None:
    try:
        found = UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if str(found) == value else None


def _moment(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    # Written in UTC and in one form: Python reads some others, which other readers do not.
    aware = found is not None and found.tzinfo is not None
    return found if aware and plain(found) == value else None
