"""How LangGraph's items are kept as records: keys, filters and namespaces. Pure.

A label of a namespace holds no period, so that ``users.123..prefs`` is the key ``prefs`` in
``("users", "123")`` and nothing else, and what lies under a namespace begins with its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from memory.errors import InvalidInputError
from memory.metadata import MAX_DEPTH
from memory.types import Operator, Record

__all__ = ["KIND", "Keys", "created_at", "later", "literal", "matches", "where"]

KIND: Final = "langgraph"
"""The kind of the records of a store that is given none."""

Namespace = tuple[str, ...]
Condition = tuple[tuple[str, ...], Operator, Any]

_OPERATORS: Final[dict[str, Operator]] = {
    "$eq": "==",
    "$ne": "!=",
    "$lt": "<",
    "$lte": "<=",
    "$gt": ">",
    "$gte": ">=",
}


class Keys:
    """The keys of the records of one kind of items: no two kinds share one, nor does a host."""

    def __init__(self, kind: str) -> None:
        # No kind holds a slash or a colon, so that no key begins with two roots.
        self.root = f"{KIND}:" if kind == KIND else f"{KIND}/{kind}:"

    def record_key(self, namespace: Sequence[str], key: str) -> str:
        """Return the key of the record that holds an item."""
        return f"{self.root}{'.'.join(namespace)}..{key}"

    def split(self, key: str) -> tuple[Namespace, str] | None:
        """Return the namespace and key of a record's key; None where it is not an item's."""
        namespace, separator, rest = key.removeprefix(self.root).partition("..")
        if not key.startswith(self.root) or not separator:
            return None
        return tuple(namespace.split(".")) if namespace else (), rest

    def beginning(self, namespace: Sequence[str]) -> str:
        """Return what the keys of everything under a namespace begin with."""
        return f"{self.root}{'.'.join(namespace)}." if namespace else self.root

    def behind(self, namespace: Sequence[str], *, deeper: bool) -> str:
        """Return a bound above every key of a namespace and, if ``deeper``, of those under it."""
        # The character after the period: labels that go on with it belong to other namespaces.
        return f"{self.root}{'.'.join(namespace)}{'/' if deeper else './'}"


def matches(namespace: Sequence[str], kind: str, path: Sequence[str]) -> bool:
    """Say whether a namespace begins or ends as a path does; ``*`` stands for any label."""
    if kind not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {kind}")
    if len(namespace) < len(path):
        return False
    start = 0 if kind == "prefix" else len(namespace) - len(path)
    labels = namespace[start : start + len(path)]
    return all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True))


def literal(path: Sequence[str]) -> Namespace:
    """Return the labels before the first wildcard."""
    return tuple(path[: path.index("*")] if "*" in path else path)


def where(filter_: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Condition]:
    """Yield what a filter asks of the value at ``path``; raise ``ValueError`` for its operator."""
    if not isinstance(filter_, Mapping) or len(path) >= MAX_DEPTH:
        raise InvalidInputError("filter", f"must be a mapping, in at most {MAX_DEPTH - 1} levels")
    for key, wanted in filter_.items():
        place = (*path, key)
        if not isinstance(wanted, Mapping) or not wanted:
            yield place, "==", wanted
        elif any(isinstance(name, str) and name.startswith("$") for name in wanted):
            for name, operand in wanted.items():
                if name not in _OPERATORS:
                    raise ValueError(f"Unsupported operator: {name}")
                yield place, _OPERATORS[name], operand
        else:
            yield from where(wanted, place)


def created_at(record: Record) -> datetime:
    """Return when the item was first put; a record that does not say was put once."""
    given = record.metadata.get("created_at")
    try:
        found = datetime.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        found = None
    return record.occurred_at if found is None or found.tzinfo is None else found


def later(moment: datetime, minutes: float) -> datetime:
    """Return the time so many minutes later."""
    if not isinstance(minutes, int | float) or isinstance(minutes, bool):
        raise InvalidInputError("ttl", "must be a number of minutes")
    try:
        return moment + timedelta(minutes=minutes)
    except (OverflowError, ValueError):
        rule = "must be minutes that end within the years 1 to 9999"
        failure = InvalidInputError("ttl", rule)
    raise failure
