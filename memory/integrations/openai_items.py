"""Items of the OpenAI Agents SDK as a record's text and metadata, and back again."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from memory.errors import InvalidInputError
from memory.redaction import Redacted
from memory.types import Record

__all__ = ["item_of", "role_of", "split"]

_ROLES: Final = ("assistant", "developer", "system", "user")
_SPOKEN: Final = ("content", "output", "summary")
# A provider knows its items again by these: its own prefix, and nothing that somebody said.
_IDS: Final = ("id", "call_id", "approval_request_id")
_PREFIX: Final = (
    "apco?|call|c[iu]|cmp|ctco?|cuo|fco?|fs|ig|lsho?|mcp[alr]?|msg|rs|sho?|toolu|tso?|ws"
)
_ID: Final = re.compile(rf"(?:{_PREFIX})_[A-Za-z0-9_-]{{1,200}}")

_Place = list[str | int]
Redact = Callable[[Sequence[tuple[str, Any]]], Awaitable[list[Redacted]]]


async def split(item: object, field: str, redact: Redact) -> tuple[str, dict[str, Any]]:
    """Return the item's main string, to be found by, and the item without it.

    What ``redact`` would spoil as a string is kept in parts: the arguments of a tool as what they
    say, so that they are JSON afterwards, and an id of the provider's, which masks nothing, in
    pieces.
    """
    if not isinstance(item, Mapping):
        raise InvalidInputError(field, "must be a mapping")
    rest = _copied(item, field)
    parts = await _parts(rest, redact)
    for names in parts.values():
        rest.update(dict.fromkeys(names))
    place = _spoken(rest)
    if place is None:
        named = (rest.get("type"), rest.get("name"))
        text = " ".join(word for word in named if isinstance(word, str) and word) or "item"
        return text, {"item": rest, **parts}
    return _exchange(rest, place, None), {"item": rest, "text": place, **parts}


def _copied(item: Mapping[str, Any], field: str) -> dict[str, Any]:
    try:
        return copy.deepcopy(dict(item))
    except Exception:  # what is no JSON raises what it likes
        failure = InvalidInputError(field, "must hold JSON values only")
    raise failure


def item_of(record: Record) -> dict[str, Any] | None:
    """Return the item that the record was made from, as it was masked; None: it was made of none.

    A host may have corrected an item with metadata of its own.
    """
    try:
        return _item_of(record)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


def role_of(versions: Sequence[Record]) -> str:
    """Return who said what stands in an item's versions: the newest role that is known."""
    for version in versions:
        item = version.metadata.get("item")
        role = item.get("role") if isinstance(item, Mapping) else None
        if role in _ROLES:
            return str(role)
    return "user"


def _item_of(record: Record) -> dict[str, Any]:
    item = copy.deepcopy(dict(record.metadata["item"]))
    if place := record.metadata.get("text"):
        _exchange(item, place, record.text)
    for name, value in record.metadata.get("json", {}).items():
        item[name] = json.dumps(value, ensure_ascii=False)
    for name, pieces in record.metadata.get("ids", {}).items():
        item[name] = "".join(pieces)
    return item


async def _parts(item: Mapping[str, Any], redact: Redact) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in _IDS:
        value = item.get(name)
        if (
            isinstance(value, str)
            and _ID.fullmatch(value)
            and await _masks(redact, {"item": {name: value}})
        ):
            # Three digits are nobody's number.
            pieces = [value[start : start + 3] for start in range(0, len(value), 3)]
            found.setdefault("ids", {})[name] = pieces
    source = item.get(name := "arguments")
    if isinstance(source, str):
        try:
            value = json.loads(source, parse_constant=_refuse)
            inside = {"json": {name: value}}
            if await _masks(redact, inside) or await _masks(redact, {"item": {name: source}}):
                found |= inside
        except (ValueError, RecursionError):
            pass  # no JSON, or none that can be stored: masked as the text that it is
    return found


async def _masks(redact: Redact, metadata: dict[str, Any]) -> bool:
    [masked] = await redact([("-", metadata)])
    return bool(masked.paths)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _spoken(item: Mapping[str, Any]) -> _Place | None:
    """Return where the first string stands that somebody said or a tool returned."""
    for name in _SPOKEN:
        value = item.get(name)
        if isinstance(value, str) and value.strip():
            return [name]
        for position, part in enumerate(value if isinstance(value, list) else ()):
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str) and text.strip():
                return [name, position, "text"]
    return None


def _exchange(item: Any, place: _Place, value: str | None) -> Any:
    """Put the value at its place in the item; return what was there."""
    *way, last = place
    for step in way:
        item = item[step]
    old, item[last] = item[last], value
    return old
