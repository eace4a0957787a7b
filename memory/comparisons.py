"""Comparisons of a value in the metadata, for what containment cannot say. Pure.

A path leads to a value as ``#>`` does for ``jsonb``: by keys, and in arrays by positions. What is
not there counts as null. ``==`` and ``!=`` compare whole JSON values; the others compare numbers
with numbers and strings with strings, by code points, and nothing else.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, cast, get_args

from memory.commands import Condition
from memory.errors import InvalidInputError
from memory.metadata import MAX_DEPTH, canonical, metadata
from memory.types import Operator
from memory.validation import key

__all__ = ["comparisons", "meets", "nested", "unnested"]

MAX_COMPARISONS: Final = 100

# As PostgreSQL reads it.
_POSITION = re.compile(r"[ \t\n\v\f\r]*[+-]?\d+", re.ASCII)
_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparisons(value: object, field: str = "where") -> tuple[Condition, ...]:
    """Check ``(path, operator, value)`` triples: at most 100; None is none at all."""
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InvalidInputError(field, "must be a sequence")
    if len(value) > MAX_COMPARISONS:
        raise InvalidInputError(field, f"must not exceed {MAX_COMPARISONS} comparisons")
    return tuple(_comparison(item, f"{field}.{place}") for place, item in enumerate(value))


def _comparison(value: object, field: str) -> Condition:
    if not isinstance(value, tuple | list) or len(value) != 3:
        raise InvalidInputError(field, "must be a path, an operator and a value")
    path, code, operand = value
    steps = (path,) if isinstance(path, str) else path
    if not isinstance(steps, tuple | list) or not 1 <= len(steps) < MAX_DEPTH:
        raise InvalidInputError(f"{field}.0", f"must be 1 to {MAX_DEPTH - 1} keys")
    keys = [key(step, f"{field}.0") if step != "" else "" for step in steps]
    if code not in get_args(Operator):
        raise InvalidInputError(f"{field}.1", f"must be one of {', '.join(get_args(Operator))}")
    wanted = metadata({"": operand}, f"{field}.2")[""]
    if code in _ORDERS and _sort(wanted) is None:
        raise InvalidInputError(f"{field}.2", f"must be a number or a string for {code}")
    return Condition(path=tuple(keys), operator=cast("Operator", code), value=wanted)


def _sort(value: object) -> str | None:
    """Return what a value can be ordered among, None where it has no order."""
    if isinstance(value, str):
        return "string"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else None


def meets(value: Mapping[str, Any], condition: Condition) -> bool:
    """Say whether the metadata is as the condition says."""
    found = _at(value, condition.path)
    if condition.operator in ("==", "!="):
        equal = canonical(found) == canonical(condition.value)
        return equal == (condition.operator == "==")
    if _sort(found) is None or _sort(found) != _sort(condition.value):
        return False
    return _ORDERS[condition.operator](_ordered(found), _ordered(condition.value))


def _ordered(value: Any) -> Any:
    """Return a number as it is written in JSON, which its binary fraction may not be."""
    return value if isinstance(value, str) else Decimal(repr(value))


def _at(value: object, path: Sequence[str]) -> object:
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and _POSITION.fullmatch(step):
            place = int(step)
            value = value[place] if -len(value) <= place < len(value) else None
        else:
            return None
    return value


def nested(condition: Condition) -> dict[str, Any]:
    """Return the metadata that has the condition's value at its path, to be masked."""
    found = condition.value
    for step in reversed(condition.path):
        found = {step: found}
    return cast("dict[str, Any]", found)


def unnested(condition: Condition, masked: Mapping[str, Any]) -> Condition:
    """Return the condition with path and value as they are in what :func:`nested` became."""
    path, found = [], cast("Any", masked)
    for _ in condition.path:
        ((step, found),) = found.items()
        path.append(step)
    return Condition(path=tuple(path), operator=condition.operator, value=found)
