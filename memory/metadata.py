"""Metadata as JSON: copied, bounded, and compared the way ``jsonb`` compares. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from memory.errors import InvalidInputError
from memory.plain import exact

__all__ = ["MAX_BYTES", "MAX_DEPTH", "canonical", "contains", "metadata"]

MAX_BYTES = 64 * 1024
MAX_DEPTH = 32

_NO_NUL = "must not hold a NUL character"
_NO_SURROGATE = "must not hold a lone surrogate"


def metadata(value: object, field: str = "metadata") -> dict[str, Any]:
    """Return a deep copy in plain JSON types, or raise ``InvalidInputError``.

    None is an empty object. Tuples become lists. The object itself is depth 1. The field of an
    error is the place by position (``metadata.0.2``): a key may name a person.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInputError(field, "must be a JSON object")
    # Every value takes a byte of JSON, so that shared references cannot multiply without end.
    budget = iter(range(MAX_BYTES))
    copied: dict[str, Any] = _copied(value, field, 1, budget)
    if len(json.dumps(copied, ensure_ascii=False).encode()) > MAX_BYTES:
        raise InvalidInputError(field, f"must not exceed {MAX_BYTES:,} bytes of JSON")
    return copied


def _copied(value: object, field: str, depth: int, budget: Iterator[int]) -> Any:
    if next(budget, None) is None:
        raise InvalidInputError("metadata", f"must not exceed {MAX_BYTES:,} bytes of JSON")
    if isinstance(value, Mapping | list | tuple):
        if depth > MAX_DEPTH:
            raise InvalidInputError("metadata", f"must not nest deeper than {MAX_DEPTH}")
        if isinstance(value, Mapping):
            return {
                _key(key, f"{field}.{position}"): _copied(
                    item, f"{field}.{position}", depth + 1, budget
                )
                for position, (key, item) in enumerate(value.items())
            }
        return [
            _copied(item, f"{field}.{position}", depth + 1, budget)
            for position, item in enumerate(value)
        ]
    return _scalar(value, field)


def _key(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(field, "must have a string as its key")
    return _string(value, field)


def _scalar(value: object, field: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _string(value, field)
    if isinstance(value, int):
        if value.bit_length() > 1024:
            raise InvalidInputError(field, "must not hold an integer of over 1,024 bits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(field, "must hold finite numbers only")
        return float(value)
    raise InvalidInputError(field, "must hold JSON values only")


def _string(value: str, field: str) -> str:
    value = exact(value)
    if "\0" in value:
        raise InvalidInputError(field, _NO_NUL)
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidInputError(field, _NO_SURROGATE)
    return value


def contains(value: object, pattern: object) -> bool:
    """Say whether JSON ``value`` contains ``pattern``, as ``value @> pattern`` does for ``jsonb``.

    Every pair of an object and every element of an array must be contained in a counterpart;
    order and repetition do not count; 1 equals 1.0 and differs from true.
    """
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(
            key in value and contains(value[key], item) for key, item in pattern.items()
        )
    if isinstance(pattern, list):
        return isinstance(value, list) and _holds(value, pattern)
    return canonical(value) == canonical(pattern)


def _holds(value: list[object], pattern: list[object]) -> bool:
    # Scalars by their hash: two long arrays would else be compared each with each.
    scalars = {canonical(item) for item in value if not isinstance(item, Mapping | list)}
    return all(
        any(contains(item, wanted) for item in value)
        if isinstance(wanted, Mapping | list)
        else canonical(wanted) in scalars
        for wanted in pattern
    )


def canonical(value: object) -> object:
    """Return a form whose equality is that of ``jsonb``, where Python's ``1 == True`` is not."""
    if isinstance(value, Mapping):
        return {key: canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number", Decimal(repr(value))
    return type(value).__name__, value
