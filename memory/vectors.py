"""Vectors as the database keeps them: finite float32 values of a sane length. Pure, no numpy.

The bounds of the norm keep a distance computed in single precision away from zero, infinity and
NaN: vectors of all 1e-30 or all 1e30 gave NaN distances.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterable, Sequence
from numbers import Real
from operator import mul
from typing import Any, Protocol

from memory.errors import InvalidInputError

__all__ = [
    "MAX_DIMENSIONS",
    "SupportsToList",
    "Vector",
    "comparable",
    "cosine",
    "norm",
    "square",
    "vector",
]

MAX_DIMENSIONS = 16_000


class SupportsToList(Protocol):
    """An array of numpy, torch and the like."""

    def tolist(self) -> Any:
        """Return the values as plain Python numbers."""
        ...


Vector = Sequence[float] | SupportsToList

_MIN_NORM, _MAX_NORM = 1e-15, 1e15
_NUMBERS = frozenset((float, int))


def vector(value: object, field: str = "embedding") -> array[float]:
    """Return the values packed as float32, or raise ``InvalidInputError``.

    Anything with ``tolist()`` (numpy, torch) or any sequence of real numbers is taken.
    """
    numbers = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(numbers, Sequence) or isinstance(numbers, str | bytes | bytearray):
        raise InvalidInputError(field, "must be a sequence of numbers")
    if not 1 <= len(numbers) <= MAX_DIMENSIONS:
        raise InvalidInputError(field, f"must have 1 to {MAX_DIMENSIONS:,} values")
    rounded = _rounded(numbers, field)
    length = math.nan if rounded is None else norm(rounded)
    if rounded is None or not math.isfinite(length):
        raise InvalidInputError(field, "must be finite in single precision")
    if not _MIN_NORM <= length <= _MAX_NORM:
        raise InvalidInputError(field, "must have a norm between 1e-15 and 1e15")
    return rounded


def _rounded(numbers: Sequence[object], field: str) -> array[float] | None:
    if not _NUMBERS.issuperset(map(type, numbers)):
        numbers = [_real(value, field) for value in numbers]
    try:
        # A third of the time that the array takes to convert the values itself.
        return array("f", struct.pack(f"{len(numbers)}f", *numbers))
    except struct.error:  # an integer beyond float64
        return None


def _real(value: object, field: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise InvalidInputError(field, "must be a sequence of numbers")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def norm(values: Sequence[float]) -> float:
    """Return the Euclidean length, in float64; it is finite when all float32 values are."""
    return math.hypot(*values)


def square(values: Sequence[float]) -> float:
    """Return the square of the Euclidean length."""
    squared: float = sum(map(mul, values, values))
    return squared


def cosine(left: Iterable[float], right: Iterable[float], squares: float) -> float:
    """Return the cosine similarity, in float64; ``squares`` is the product of both squared lengths.

    Its root, not a product of roots: of equal vectors the cosine is 1, not next to it.
    """
    product: float = sum(map(mul, left, right))
    return max(-1.0, min(1.0, product / math.sqrt(squares)))


def comparable(
    model: str | None, dimensions: int, other_model: str | None, other_dimensions: int
) -> bool:
    """Say whether two vectors share a space: one length, and one model where both are named."""
    named_apart = model is not None and other_model is not None and model != other_model
    return dimensions == other_dimensions and not named_apart
